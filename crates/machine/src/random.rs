//! Chance for machines that have none of their own: the driver, or a file, gives a seed, and the seed replays it.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): a counter whose values are
/// scrambled. For choices of traffic and of back-offs, and not for secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Random(u64);

/// What the counter grows by: 2^64 over the golden ratio, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The stream of a seed for one purpose, which is another one for every purpose.
    pub fn of_purpose(seed: u64, purpose: &str) -> Self {
        Self(purpose.bytes().fold(seed, |sum, byte| scramble(sum ^ u64::from(byte))))
    }

    /// The next number.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        scramble(self.0)
    }

    /// One of the numbers below `count`, which is small against 2^32, so that none is much likelier than another; 0 when
    /// there is none.
    #[inline]
    pub fn below(&mut self, count: u32) -> u32 {
        (((self.draw() >> 32) * u64::from(count)) >> 32) as u32
    }

    /// Puts a list into random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            // The bias of the remainder is below 2^-40 for lists of this length.
            let chosen = (self.draw() % (last as u64 + 1)) as usize;
            list.swap(last, chosen);
        }
    }
}

fn scramble(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers that the authors' own program gives for this seed.
    #[test]
    fn the_published_generator() {
        let mut random = Random::new(1_234_567);
        let drawn: [u64; 3] = std::array::from_fn(|_| random.draw());
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn random_numbers_below_a_bound_are_uniform() {
        let mut random = Random::new(7);
        let mut counts = [0_u32; 5];
        for _ in 0..50_000 {
            counts[random.below(5) as usize] += 1;
        }
        // Four standard deviations are under 360.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 360), "{counts:?}");
        assert_eq!((random.below(0), random.below(1)), (0, 0));
    }

    #[test]
    fn every_purpose_has_a_stream_of_its_own() {
        let first = |seed, purpose| Random::of_purpose(seed, purpose).draw();
        assert_eq!(first(1, "rings"), first(1, "rings"));
        assert!(first(1, "rings") != first(2, "rings") && first(1, "rings") != first(1, "pairs"));
    }
}
