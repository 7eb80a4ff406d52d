use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use super::endpoint::HttpOptions;

/// Whether to retry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Again {
    /// Not at all: the same request would fail again.
    Never,
    /// After the wait that the server asked for, if it did.
    After(Option<Duration>),
}

/// The wait before the next attempt; `None` if there is none. It is exponential backoff with
/// jitter: `random` (0 to 1) is the part of the longest wait, which doubles with each attempt. It
/// is never shorter than the server asks for.
pub(super) fn wait(options: &HttpOptions, tried: u32, again: Again, random: f64) -> Option<Duration> {
    let Again::After(asked) = again else { return None };
    if tried >= options.retries || asked.is_some_and(|asked| asked > options.longest_wait) {
        return None;
    }
    let doubled = options.first_wait.saturating_mul(2_u32.saturating_pow(tried));
    let jittered = doubled.min(options.longest_wait).mul_f64(random);
    Some(asked.unwrap_or(Duration::ZERO).max(jittered))
}

/// A random number from 0 to 1 for the jitter. The keys of each new hasher are random, which spares
/// a dependency on a random number generator.
pub(super) fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(wait: f64) -> Option<Duration> {
        Some(Duration::from_secs_f64(wait))
    }

    #[test]
    fn waits_double_up_to_the_longest_and_chance_takes_a_part() {
        let options = HttpOptions { retries: 10, ..HttpOptions::default() };
        let wait = |tried, random| wait(&options, tried, Again::After(None), random);
        assert_eq!(wait(0, 1.0), seconds(1.0));
        assert_eq!(wait(3, 1.0), seconds(8.0));
        assert_eq!(wait(3, 0.25), seconds(2.0));
        assert_eq!(wait(9, 1.0), seconds(60.0));
        assert_eq!(wait(0, 0.0), seconds(0.0));
        assert_eq!(wait(10, 1.0), None);
    }

    #[test]
    fn a_server_is_not_asked_sooner_than_it_wants() {
        let options = HttpOptions::default();
        let wait = |asked| wait(&options, 0, Again::After(seconds(asked)), 1.0);
        assert_eq!(wait(30.0), seconds(30.0));
        assert_eq!(wait(0.5), seconds(1.0));
        assert_eq!(wait(61.0), None);
        assert_eq!(super::wait(&options, 0, Again::Never, 1.0), None);
    }

    #[test]
    fn random_numbers_differ_and_stay_in_their_range() {
        let numbers: Vec<f64> = (0..100).map(|_| random()).collect();
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        assert!(numbers.iter().any(|number| *number != numbers[0]));
    }
}
