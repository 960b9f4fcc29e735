//! Structures whose fields have defaults of their own.

/// Declares a structure with the default of each field behind its type, from which `Default` follows.
///
/// Derives and other attributes stand above the structure.
#[macro_export]
macro_rules! defaults {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident {
            $( $(#[$doc:meta])* $field_visibility:vis $field:ident: $kind:ty = $default:expr, )+
        }
    ) => {
        $(#[$meta])*
        $visibility struct $name {
            $( $(#[$doc])* $field_visibility $field: $kind, )+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )+ }
            }
        }
    };
}
