//! Field types, read from and written to a run of bits, most significant bit first.

/// A type that fits in at most 64 bits.
pub trait Bits: Copy {
    /// The most bits that a value may need.
    const BITS: usize;
    /// From the low bits of `bits`.
    fn from_bits(bits: u64) -> Self;
    /// To the low bits; the others are zero.
    fn to_bits(self) -> u64;
}

macro_rules! integer {
    ($($int:ty)*) => {$(
        impl Bits for $int {
            const BITS: usize = <$int>::BITS as usize;
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                bits as $int
            }
            #[inline(always)]
            fn to_bits(self) -> u64 {
                u64::from(self)
            }
        }
    )*};
}
integer!(u8 u16 u32 u64);

impl Bits for bool {
    const BITS: usize = 1;
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
    #[inline(always)]
    fn to_bits(self) -> u64 {
        u64::from(self)
    }
}

/// A type that a `layout!` row may have: one [`Bits`] value, a GID, an array of [`Bits`] values, or another
/// structure.
pub trait Value: Sized {
    /// The most bits that a value may need; for arrays, per element.
    const BITS: usize;
    /// How many elements share the row.
    const COUNT: usize;
    /// Whether the row must have exactly `BITS` bits and begin on a byte: a nested structure.
    const WHOLE: bool = false;
    /// Reads `width` bits from bit `first` of `bytes`.
    fn read(bytes: &[u8], first: usize, width: usize) -> Self;
    /// Writes `width` bits at bit `first` of `bytes` and leaves all others as they are.
    fn write(&self, bytes: &mut [u8], first: usize, width: usize);
}

impl<T: Bits> Value for T {
    const BITS: usize = T::BITS;
    const COUNT: usize = 1;
    #[inline(always)]
    fn read(bytes: &[u8], first: usize, width: usize) -> Self {
        T::from_bits(read_bits(bytes, first, width))
    }
    #[inline(always)]
    fn write(&self, bytes: &mut [u8], first: usize, width: usize) {
        write_bits(bytes, first, width, self.to_bits());
    }
}

impl<T: Bits, const N: usize> Value for [T; N] {
    const BITS: usize = T::BITS;
    const COUNT: usize = N;
    #[inline(always)]
    fn read(bytes: &[u8], first: usize, width: usize) -> Self {
        std::array::from_fn(|i| T::read(bytes, first + i * (width / N), width / N))
    }
    #[inline(always)]
    fn write(&self, bytes: &mut [u8], first: usize, width: usize) {
        for (i, value) in self.iter().enumerate() {
            value.write(bytes, first + i * (width / N), width / N);
        }
    }
}

/// Whether a row of `width` bits from bit `first` can hold a `T`, neither losing bits of the row nor splitting an
/// element.
pub const fn fits<T: Value>(first: usize, width: usize) -> bool {
    let whole = first.is_multiple_of(8) && width == T::BITS;
    width.is_multiple_of(T::COUNT) && width / T::COUNT <= T::BITS && (!T::WHOLE || whole)
}

/// `width` bits (at most 64) from bit `first`. A 64-bit row must begin on a byte.
#[inline(always)]
pub(crate) fn read_bits(bytes: &[u8], first: usize, width: usize) -> u64 {
    let (from, to) = (first / 8, (first + width).div_ceil(8));
    let mut bits = 0u64;
    let mut at = from;
    while at < to {
        bits = (bits << 8) | bytes[at] as u64;
        at += 1;
    }
    (bits >> (to * 8 - first - width)) & mask(width)
}

/// Writes the low `width` bits of `value` at bit `first`.
#[inline(always)]
pub(crate) fn write_bits(bytes: &mut [u8], first: usize, width: usize, value: u64) {
    let (from, to) = (first / 8, (first + width).div_ceil(8));
    let shift = to * 8 - first - width;
    let (mut bits, mut keep) = ((value & mask(width)) << shift, !(mask(width) << shift));
    let mut at = to;
    while at > from {
        at -= 1;
        bytes[at] = (bytes[at] & keep as u8) | bits as u8;
        bits >>= 8;
        keep = (keep >> 8) | (0xff << 56);
    }
}

#[inline(always)]
const fn mask(width: usize) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}
