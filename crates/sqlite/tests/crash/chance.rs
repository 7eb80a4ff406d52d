use std::time::{Duration, SystemTime};

/// Random numbers from a seed, which is printed if the test fails.
pub(crate) struct Chance {
    seed: u64,
    state: u64,
}

impl Chance {
    pub(crate) fn new() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is after 1970");
        let seed = since.as_secs() ^ (u64::from(since.subsec_nanos()) << 32);
        Self { seed, state: seed }
    }

    /// A time from `shortest` up to `longest`.
    pub(crate) fn between(&mut self, shortest: Duration, longest: Duration) -> Duration {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let range = (longest - shortest).as_micros().max(1);
        shortest + Duration::from_micros(mixed % u64::try_from(range).expect("the range is short"))
    }
}

impl Drop for Chance {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed was {}", self.seed);
        }
    }
}
