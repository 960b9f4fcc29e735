//! Moves of a virtual machine's address: which switches are written, in which order, and what becomes of rows that are not
//! safe. Each is a word where people read and write, and a code on the wire.

use weft_wire::{VmMoveLate, VmMoveMethod, VmMoveOrder};

macro_rules! ways {
    ($(#[$meta:meta])* $name:ident, $code:ident { $( $(#[$doc:meta])* $variant:ident = $word:literal, )* }) => {
        weft_wire::named! {
            #[derive(Default, PartialOrd, Ord)]
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
            $(#[$meta])*
            pub enum $name {
                $( $(#[$doc])* $variant = $word, )*
            }
        }

        impl $name {
            /// What a code says; `None` for one without a name.
            pub fn of_code(code: $code) -> Option<Self> {
                match code {
                    $( $code::$variant => Some(Self::$variant), )*
                    _ => None,
                }
            }
        }

        impl From<$name> for $code {
            fn from(name: $name) -> Self {
                match name { $( $name::$variant => Self::$variant, )* }
            }
        }
    };
}

ways! {
    /// How the subnet manager chooses the switches that it writes.
    #[cfg_attr(feature = "schema", schemars(rename = "VmMethod"))]
    Method, VmMoveMethod {
        /// The fewest switches of a fat tree; falls back to the others.
        // Those that stand between two leaves, by their tuples (FTreeMinRC; vSwitch paper of 2017, 6.2).
        #[default]
        FtreeMinrc = "ftreeminrc",
        /// Every switch whose row differs.
        // ItRC; vSwitch paper of 2015, algorithm 1.
        Itrc = "itrc",
        /// Every switch whose row does not lead nearer to the new place.
        Skyline = "skyline",
        /// Every block of every switch.
        // By tables computed from scratch: what a subnet manager does that knows nothing of virtual machines.
        Full = "full",
    }
}

ways! {
    /// What waits for what while switches are written.
    #[cfg_attr(feature = "schema", schemars(rename = "VmUpdate"))]
    UpdateOrder, VmMoveOrder {
        /// A switch is written when the next written switch on its new path has acknowledged.
        #[default]
        Ordered = "ordered",
        /// As `ordered`, but the last switches, those around the old place, drop packets until those of the old way are gone.
        // Or send them a detour for the meantime, see `LatePolicy`.
        OrderedLate = "ordered-late",
        /// Packets are dropped first.
        // By port 255, at every switch that is written (vSwitch paper of 2015, VI-C).
        DropFirst = "drop-first",
        /// All at once.
        Unordered = "unordered",
    }
}

ways! {
    /// What is done where an order alone is not safe: a new row could turn packets of the old way round and close a circle.
    #[cfg_attr(feature = "schema", schemars(rename = "VmLate"))]
    LatePolicy, VmMoveLate {
        /// The switch sends packets a detour until those of the old way are gone, or drops them where there is none.
        #[default]
        Detour = "detour",
        /// The switch drops packets until then.
        Wait = "wait",
        /// The move is refused.
        Refuse = "refuse",
    }
}

impl Method {
    /// What is tried, in order, until a plan can be proved.
    pub fn chain(self) -> &'static [Self] {
        match self {
            Self::Full => &[Self::Full],
            Self::Itrc => &[Self::Itrc],
            Self::FtreeMinrc => &[Self::FtreeMinrc, Self::Skyline, Self::Itrc],
            Self::Skyline => &[Self::Skyline, Self::Itrc],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_of_a_move_is_a_code_and_back() {
        for method in Method::ALL {
            assert_eq!(Method::of_code(VmMoveMethod::from(method)), Some(method));
        }
        for order in UpdateOrder::ALL {
            assert_eq!(UpdateOrder::of_code(VmMoveOrder::from(order)), Some(order));
        }
        for policy in LatePolicy::ALL {
            assert_eq!(LatePolicy::of_code(VmMoveLate::from(policy)), Some(policy));
        }
        assert_eq!(Method::of_code(VmMoveMethod::from_code(0xff)), None);
    }
}
