use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// How often and how fast a lost connection is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconnect {
    /// How many attempts in a row; 0 disables reconnecting.
    pub attempts: u32,
    /// The pause before the second attempt; it doubles with each further one. The first attempt
    /// follows almost at once.
    pub first: Duration,
    /// The longest pause, without jitter.
    pub longest: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self { attempts: 5, first: Duration::from_secs(1), longest: Duration::from_secs(30) }
    }
}

impl Reconnect {
    /// The pause before an attempt, counted from 1, with up to a quarter of jitter, so that many
    /// sessions do not reconnect at the same moment.
    pub(super) fn pause(&self, attempt: u32) -> Duration {
        let steady = match attempt.checked_sub(2) {
            None => Duration::ZERO,
            Some(doublings) => self.first.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)),
        };
        let steady = steady.min(self.longest);
        let spread = if steady.is_zero() { self.first } else { steady } / 4;
        steady + spread.mul_f64(random())
    }
}

/// A random number from 0 to 1. The keys of the standard library's hasher are random.
fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_with_a_quarter_of_jitter() {
        let reconnect = Reconnect::default();
        let between = |attempt, low: u64, high: u64| {
            let pause = reconnect.pause(attempt);
            assert!(pause >= Duration::from_millis(low) && pause <= Duration::from_millis(high), "{pause:?}");
        };
        between(1, 0, 250);
        between(2, 1000, 1250);
        between(4, 4000, 5000);
        between(60, 30_000, 37_500);
    }

    #[test]
    fn random_numbers_differ_and_are_between_zero_and_one() {
        let numbers: Vec<_> = (0..100).map(|_| random()).collect();
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        assert!(numbers.windows(2).any(|pair| pair[0] != pair[1]));
    }
}
