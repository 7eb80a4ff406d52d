use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// How often and how fast a lost connection is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconnect {
    /// How many times in a row; 0 to give up at once.
    pub attempts: u32,
    /// The pause before the second try; the first follows almost at once. It doubles with each.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self { attempts: 5, first: Duration::from_secs(1), longest: Duration::from_secs(30) }
    }
}

impl Reconnect {
    /// The pause before a try, counted from 1: a quarter of it is chance, so that many sessions do
    /// not come back at one moment.
    pub(super) fn pause(&self, attempt: u32) -> Duration {
        let steady = match attempt.checked_sub(2) {
            None => Duration::ZERO,
            Some(doublings) => self.first.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)),
        };
        let steady = steady.min(self.longest);
        let spread = if steady.is_zero() { self.first } else { steady } / 4;
        steady + spread.mul_f64(chance())
    }
}

/// A number from 0 to 1. The standard library's hash keys are random.
fn chance() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_with_a_quarter_of_chance() {
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
    fn chance_differs_and_stays_between_zero_and_one() {
        let chances: Vec<_> = (0..100).map(|_| chance()).collect();
        assert!(chances.iter().all(|chance| (0.0..1.0).contains(chance)));
        assert!(chances.windows(2).any(|pair| pair[0] != pair[1]));
    }
}
