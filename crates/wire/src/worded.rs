//! Enums whose variants have sentences for people.

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
