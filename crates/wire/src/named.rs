//! Enums whose variants have names in text.

/// Declares an enum with a name for each variant, from which `ALL`, `name`, `named`, `Display` and serde's text all follow.
///
/// The crate that uses it depends on serde. Further derives stand above the enum.
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $name:ident {
            $( $(#[$doc:meta])* $variant:ident = $text:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        $visibility enum $name {
            $( $(#[$doc])* #[serde(rename = $text)] $variant, )+
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: [Self; [$( $text, )+].len()] = [$( Self::$variant, )+];

            /// Its name in text.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $text, )+ }
            }

            /// The one of this name.
            pub fn named(text: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|known| known.name() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
