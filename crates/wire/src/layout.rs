//! The macros from which structures, MADs, codes and attributes follow.

/// One row of a structure's table, for printing and for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The field's first bit, counted from the structure's most significant bit.
    pub first: usize,
    /// How many bits it has.
    pub width: usize,
    /// Its name, as in the architecture but in snake case.
    pub name: &'static str,
}

/// A handle on one field: reads it from, and patches it in, the bytes of a whole structure.
///
/// What a handle does not name it leaves alone, so reserved bits survive a hop.
#[derive(Clone, Copy, Debug)]
pub struct Field<T, const SIZE: usize, const FIRST: usize, const WIDTH: usize>(core::marker::PhantomData<T>);

impl<T: crate::Value, const SIZE: usize, const FIRST: usize, const WIDTH: usize>
    Field<T, SIZE, FIRST, WIDTH>
{
    #[doc(hidden)]
    pub const fn new() -> Self {
        Self(core::marker::PhantomData)
    }

    /// The field's value in `bytes`.
    #[inline(always)]
    pub fn get(self, bytes: &[u8; SIZE]) -> T {
        T::read(bytes, FIRST, WIDTH)
    }

    /// Writes the field's low bits into `bytes`.
    #[inline(always)]
    #[allow(clippy::needless_pass_by_value)]
    pub fn set(self, bytes: &mut [u8; SIZE], value: T) {
        value.write(bytes, FIRST, WIDTH);
    }
}

impl<T: crate::Value, const SIZE: usize, const FIRST: usize, const WIDTH: usize> Default
    for Field<T, SIZE, FIRST, WIDTH>
{
    fn default() -> Self {
        Self::new()
    }
}

/// Declares fixed-size structures, each from its table of `first bit, width, name: type` rows.
///
/// The rows must cover a structure from its first bit to its last without gap or overlap, and every type must
/// be wide enough for its row; otherwise the table does not compile:
///
/// ```compile_fail
/// weft_wire::layout! {
///     /// Bit 4 to 7 are missing.
///     pub struct Gap: 1 { 0, 4, low: u8; }
/// }
/// ```
/// ```compile_fail
/// weft_wire::layout! {
///     /// The second row begins inside the first.
///     pub struct Overlap: 2 { 0, 8, a: u8; 4, 12, b: u16; }
/// }
/// ```
/// ```compile_fail
/// weft_wire::layout! {
///     /// Sixteen bits in eight.
///     pub struct Narrow: 2 { 0, 16, a: u8; }
/// }
/// ```
/// ```
/// weft_wire::layout! {
///     /// A complete table.
///     pub struct Whole: 2 {
///         /// The upper half.
///         0, 4, high: u8;
///         /// The rest.
///         4, 12, low: u16;
///     }
/// }
/// let mut bytes = Whole { high: 0xa, low: 0xbcd }.encode();
/// assert_eq!(bytes, [0xab, 0xcd]);
/// Whole::low.set(&mut bytes, 0x123);
/// assert_eq!(Whole::decode(&bytes), Whole { high: 0xa, low: 0x123 });
/// ```
///
/// A structure can be a row of another, whole and on a byte:
///
/// ```
/// weft_wire::layout! {
///     /// Two bytes.
///     pub struct Inner: 2 { 0, 16, all: u16; }
/// }
/// weft_wire::layout! {
///     /// A byte, then those.
///     pub struct Outer: 3 { 0, 8, first: u8; 8, 16, inner: Inner; }
/// }
/// assert_eq!(Outer { first: 1, inner: Inner { all: 0x203 } }.encode(), [1, 2, 3]);
/// assert_eq!(Outer::inner.get(&[1, 2, 3]), Inner { all: 0x203 });
/// ```
/// ```compile_fail
/// weft_wire::layout! {
///     /// Two bytes.
///     pub struct Inner: 2 { 0, 16, all: u16; }
/// }
/// weft_wire::layout! {
///     /// Half of the structure would be lost.
///     pub struct Cut: 1 { 0, 8, inner: Inner; }
/// }
/// ```
#[macro_export]
macro_rules! layout {
    ($(
        $(#[$meta:meta])*
        $vis:vis struct $name:ident: $size:literal {
            $( $(#[$row_meta:meta])* $first:literal, $width:literal, $field:ident: $ty:ty; )*
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis struct $name {
            $( $(#[$row_meta])* pub $field: $ty, )*
        }

        #[allow(non_upper_case_globals)]
        impl $name {
            /// How many bytes the structure has.
            pub const SIZE: usize = $size;

            /// The structure's rows, in order.
            pub const TABLE: &'static [$crate::Row] =
                &[$( $crate::Row { first: $first, width: $width, name: stringify!($field) } ),*];

            $(
                #[doc = concat!("Handle on bits ", stringify!($first), " and on, ", stringify!($width), " of them.")]
                pub const $field: $crate::Field<$ty, $size, $first, $width> = $crate::Field::new();
            )*

            const COVERED: () = {
                let mut next = 0;
                $(
                    assert!($first >= next, concat!("overlap before ", stringify!($field)));
                    assert!($first <= next, concat!("gap before ", stringify!($field)));
                    assert!($crate::fits::<$ty>($first, $width), concat!("type too narrow: ", stringify!($field)));
                    next = $first + $width;
                )*
                assert!(next == $size * 8, "the rows do not end where the structure does");
            };

            /// Reads every row. Any bytes are a valid structure.
            #[inline]
            pub fn decode(bytes: &[u8; $size]) -> Self {
                const { Self::COVERED };
                Self { $( $field: Self::$field.get(bytes), )* }
            }

            /// Writes every row: the inverse of `decode`.
            #[inline]
            pub fn encode(&self) -> [u8; $size] {
                let mut bytes = [0; $size];
                $( Self::$field.set(&mut bytes, self.$field); )*
                bytes
            }
        }

        impl $crate::Value for $name {
            const BITS: usize = $size * 8;
            const COUNT: usize = 1;
            const WHOLE: bool = true;
            #[inline]
            fn read(bytes: &[u8], first: usize, _width: usize) -> Self {
                Self::decode(bytes[first / 8..].first_chunk().expect("the row has the structure's length"))
            }
            #[inline]
            fn write(&self, bytes: &mut [u8], first: usize, _width: usize) {
                bytes[first / 8..first / 8 + $size].copy_from_slice(&self.encode());
            }
        }

        impl Default for $name {
            /// All bits zero.
            fn default() -> Self {
                Self::decode(&[0; $size])
            }
        }

        const _: () = $name::COVERED;
    )+};
}

/// Declares structures that begin as every MAD does (IBA 13.4.2); a structure's own rows go on where the common header ends.
macro_rules! mads {
    ($( $(#[$meta:meta])* $name:ident: $size:literal { $($rows:tt)* } )+) => {
        layout! {$(
            $(#[$meta])*
            pub struct $name: $size {
                /// 1.
                0, 8, base_version: u8;
                /// The class.
                8, 8, mgmt_class: crate::MgmtClass;
                /// The class's version.
                16, 8, class_version: u8;
                /// The method, response bit included.
                24, 8, method: crate::Method;
                /// The status; in a directed-route SMP its first bit is the direction.
                32, 16, status: u16;
                /// Hop pointer and hop count in a directed-route SMP; of others not used.
                48, 16, class_specific: u16;
                /// The transaction.
                64, 64, transaction_id: crate::TransactionId;
                /// The attribute.
                128, 16, attribute_id: crate::AttributeId;
                /// Reserved.
                144, 16, reserved_144: u16;
                /// What part of the attribute.
                160, 32, attribute_modifier: u32;
                $($rows)*
            }
        )+}
    };
}

/// Declares open codes: named values, and every other value kept as it is.
///
/// The type is the number itself, so reading one costs nothing. The names are constants that can be matched on;
/// a `match` therefore always has an arm for values without a name. In text a code is its name, or its number.
macro_rules! codes {
    ($(
        $(#[$meta:meta])*
        $name:ident($int:ty), $bits:literal {
            $( $(#[$code_meta:meta])* $code:ident = $value:literal, )*
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($int);

        #[allow(non_upper_case_globals)]
        impl $name {
            $( $(#[$code_meta])* pub const $code: Self = Self($value); )*

            const NAMES: &'static [(&'static str, $int)] = &[$( (stringify!($code), $value) ),*];

            /// From the number on the wire.
            #[inline(always)]
            pub const fn from_code(code: $int) -> Self {
                Self(code)
            }

            /// To the number on the wire.
            #[inline(always)]
            pub const fn code(self) -> $int {
                self.0
            }
        }

        impl crate::Bits for $name {
            const BITS: usize = $bits;
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                Self(bits as $int)
            }
            #[inline(always)]
            fn to_bits(self) -> u64 {
                u64::from(self.0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match Self::NAMES.iter().find(|(_, value)| *value == self.0) {
                    Some((name, _)) => f.pad(name),
                    None => write!(f, "{:#x}", self.0),
                }
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;

            /// Reads a name, or a number in hexadecimal digits behind `0x`.
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match Self::NAMES.iter().find(|(name, _)| *name == text) {
                    Some((_, value)) => Ok(Self(*value)),
                    None => <$int>::from_str_radix(text.trim_start_matches("0x"), 16).map(Self),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() { serializer.collect_str(self) } else { self.0.serialize(serializer) }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
                } else {
                    <$int>::deserialize(deserializer).map(Self)
                }
            }
        }
    )+};
}

/// Declares attributes of one class, with the names that the architecture gives them.
macro_rules! attributes {
    ($( $(#[$doc:meta])* $attribute:ident = $code:literal, $name:literal; )+) => {
        $( $(#[$doc])* pub const $attribute: AttributeId = AttributeId::from_code($code); )+

        pub(crate) const NAMES: &[(AttributeId, &str)] = &[$( ($attribute, $name) ),+];
    };
}
