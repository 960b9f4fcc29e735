//! Enums of messages: a field that is the tag names the variant, and the variant's own fields stand beside it. Events have
//! their sentences there, too.

/// Declares such an enum, with the names of its variants in JSON. A field with `= default` may be missing.
#[macro_export]
macro_rules! tagged {
    (
        $(#[$meta:meta])*
        $name:ident by $tag:literal {
            $( $(#[$doc:meta])* $variant:ident = $text:literal
               $( ( $inner:ty ) )?
               $( { $( $(#[$field_doc:meta])* $field:ident : $kind:ty $( = $default:ident )?, )* } )? , )*
        }
    ) => {
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = $tag)]
        $(#[$meta])*
        pub enum $name {
            $(
                $(#[$doc])*
                #[serde(rename = $text)]
                $variant $( ($inner) )?
                $( { $( $(#[$field_doc])* $( #[serde($default)] )? $field: $kind, )* } )?,
            )*
        }

        impl $name {
            /// The names of all of them in JSON, in their order.
            pub const NAMES: &'static [&'static str] = &[ $( $text, )* ];

            /// Its name in JSON.
            pub fn name(&self) -> &'static str {
                match self { $( Self::$variant { .. } => $text, )* }
            }

            /// Takes it out of the fields of a message.
            ///
            /// # Errors
            /// When the fields are not those of one that this version knows.
            pub fn read(mut fields: $crate::fields::Fields) -> Result<Self, serde_json::Error> {
                let name: String = fields.take($tag)?;
                Ok(match name.as_str() {
                    $(
                        $text => Self::$variant
                            $( (fields.rest::<$inner>()?) )?
                            $( { $( $field: $crate::tagged!(@take fields $field $( $default )?), )* } )?,
                    )*
                    _ => return Err(serde::de::Error::unknown_variant(&name, Self::NAMES)),
                })
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let fields = <$crate::fields::Fields as serde::Deserialize>::deserialize(from)?;
                Self::read(fields).map_err(serde::de::Error::custom)
            }
        }
    };
    (@take $fields:ident $field:ident) => { $fields.take(stringify!($field))? };
    (@take $fields:ident $field:ident default) => { $fields.take_or_default(stringify!($field))? };
}
/// Declares an enum of events as [`tagged`] does, with the sentence of each behind it: the arguments of `format!`, in which the
/// event's fields stand by their names.
#[macro_export]
macro_rules! told {
    (
        $(#[$meta:meta])*
        $name:ident by $tag:literal {
            $( $(#[$doc:meta])* $variant:ident = $text:literal
               $( ( $inner:ident : $inner_type:ty ) )?
               $( { $( $(#[$field_doc:meta])* $field:ident : $kind:ty, )* } )?
               => ( $($sentence:tt)* ), )*
        }
    ) => {
        $crate::tagged! {
            $(#[$meta])*
            $name by $tag {
                $( $(#[$doc])* $variant = $text
                   $( ( $inner_type ) )?
                   $( { $( $(#[$field_doc])* $field : $kind, )* } )?, )*
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(
                        Self::$variant $( ($inner) )? $( { $( $field, )* } )? => {
                            // A sentence need not say everything.
                            $( $( let _ = $field; )* )?
                            write!(f, $($sentence)*)
                        }
                    )*
                }
            }
        }
    };
}
