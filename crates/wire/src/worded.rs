//! Types that are declared with the text that people see, and types that are this text for serde too.

/// Declares an enum with the text of each variant behind it: the arguments of `write!`, in which the variant's fields stand by
/// their names. `Display` follows.
///
/// ```
/// weft_wire::worded! {
///     /// Why a door stays shut.
///     #[derive(Clone, Copy, Debug)]
///     pub enum Shut {
///         /// It has no handle.
///         NoHandle => ("no handle"),
///         /// Its key is another one.
///         Key(number: u8) => ("key {number} opens it"),
///         /// It opens later.
///         Hours {
///             /// From then on.
///             from: u8,
///         } => ("opens at {:02}:00", from),
///     }
/// }
/// assert_eq!(Shut::NoHandle.to_string(), "no handle");
/// assert_eq!(Shut::Key(3).to_string(), "key 3 opens it");
/// assert_eq!(Shut::Hours { from: 7 }.to_string(), "opens at 07:00");
/// ```
#[macro_export]
macro_rules! worded {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $name:ident {
            $(
                $(#[$doc:meta])* $variant:ident
                $( ( $($inner:ident: $inner_kind:ty),+ ) )?
                $( { $( $(#[$field_doc:meta])* $field:ident: $kind:ty, )+ } )?
                => ( $($text:tt)+ ),
            )+
        }
    ) => {
        $(#[$meta])*
        $visibility enum $name {
            $(
                $(#[$doc])* $variant
                $( ( $($inner_kind),+ ) )?
                $( { $( $(#[$field_doc])* $field: $kind, )+ } )?,
            )+
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $( Self::$variant $( ( $($inner),+ ) )? $( { $($field),+ } )? => write!(f, $($text)+), )+
                }
            }
        }
    };
}

/// Has a structure displayed by the arguments of `write!`, in which those fields stand by their names that are listed.
///
/// ```
/// struct Door {
///     floor: u8,
///     number: u16,
/// }
/// weft_wire::displayed!(Door { floor, number } => "{floor}.{number:03}");
/// assert_eq!(Door { floor: 2, number: 7 }.to_string(), "2.007");
///
/// struct Floor(u8);
/// weft_wire::displayed!(Floor(number) => "floor {number}");
/// assert_eq!(Floor(2).to_string(), "floor 2");
/// ```
#[macro_export]
macro_rules! displayed {
    ($name:ident $(<$life:lifetime>)? $( ($($inner:ident),+) )? $( {$($field:ident),+} )? => $($text:tt)+) => {
        impl std::fmt::Display for $name $(<$life>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let Self $( ($($inner),+) )? $( {$($field,)+ ..} )? = self;
                write!(f, $($text)+)
            }
        }
    };
}

/// Has serde write types as they are displayed, and read them as they are parsed.
///
/// The crate that uses it depends on serde.
#[macro_export]
macro_rules! serde_as_text {
    ($($name:ident)+) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}
