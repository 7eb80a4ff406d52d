/// A small seeded generator of random numbers (SplitMix64).
pub(crate) struct Chance(u64);

impl Chance {
    /// A stream of its own for each label, so that a change of one client does not change the
    /// others.
    pub(crate) fn new(seed: u64, labels: &[u64]) -> Self {
        let mut chance = Self(seed);
        for label in labels {
            chance.0 = chance.next() ^ label;
        }
        chance
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, but not including, `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).expect("a usize has at most 64 bits");
        usize::try_from(self.next() % limit).expect("it is below a usize")
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the items; there must be at least one.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
