//! The SMPs that the manager asks its devices with. Each kind is counted: one that is new does not compile before.

use weft_mgmt::{Request, SmpRoute};
use weft_wire::{AddressedMad, AttributeId, Mad, SwitchInfo};

use crate::SmpCounts;

/// Lists attributes, each with the counter of a sweep that its SMPs are counted in; without one, none counts them.
macro_rules! counted {
    ($($(#[$doc:meta])* $name:ident { $( $attribute:ident = $id:ident $(in $counter:ident)?, )* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $( $attribute, )* }

        impl $name {
            pub(crate) fn attribute_id(self) -> AttributeId {
                match self { $( Self::$attribute => AttributeId::$id, )* }
            }

            fn counter(self, counts: &mut SmpCounts) -> Option<&mut u64> {
                match self { $( Self::$attribute => None $( .or(Some(&mut counts.$counter)) )?, )* }
            }
        }
    )*};
}

counted! {
    /// An attribute that is read. Subnet administration reads GuidInfo between sweeps, so no sweep counts it.
    Get {
        NodeInfo = NodeInfo in get_node_info,
        NodeDescription = NodeDescription in get_node_description,
        SwitchInfo = SwitchInfo in get_switch_info,
        PortInfo = PortInfo in get_port_info,
        Lft = LinearForwardingTable in get_lft,
        SlToVl = SlToVlTable in get_sl_to_vl,
        VlArbitration = VlArbitrationTable in get_vl_arbitration,
        PKeys = PKeyTable in get_p_keys,
        GuidInfo = GuidInfo,
        SmInfo = SmInfo in get_sm_info,
    }

    /// An attribute that is written.
    Set {
        SwitchInfo = SwitchInfo in set_switch_info,
        PortInfo = PortInfo in set_port_info,
        Lft = LinearForwardingTable in set_lft,
        SlToVl = SlToVlTable in set_sl_to_vl,
        VlArbitration = VlArbitrationTable in set_vl_arbitration,
        PKeys = PKeyTable in set_p_keys,
    }
}

/// The kinds of SMPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SmpKind {
    Get(Get),
    Set(Set),
}

/// An SMP without a route yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SmpRequest {
    kind: SmpKind,
    request: Request,
}

impl SmpRequest {
    /// Asks for an attribute.
    pub(crate) fn get(get: Get, modifier: u32) -> Self {
        Self { kind: SmpKind::Get(get), request: Request::get(get.attribute_id(), modifier) }
    }

    /// Changes an attribute, of 64 bytes at most.
    pub(crate) fn set(set: Set, modifier: u32, value: &[u8]) -> Self {
        Self { kind: SmpKind::Set(set), request: Request::set(set.attribute_id(), modifier, value) }
    }

    /// Writes a switch's PortStateChange, which clears it, and leaves everything else.
    pub(crate) fn clear_change(info: SwitchInfo) -> Self {
        Self::set(Set::SwitchInfo, 0, &SwitchInfo { port_state_change: true, ..info }.encode())
    }

    /// What was sent as `kind`, without its route.
    pub(crate) fn again(kind: SmpKind, sent: &Mad) -> Self {
        let modifier = sent.attribute_modifier();
        match kind {
            SmpKind::Get(get) => Self::get(get, modifier),
            SmpKind::Set(set) => Self::set(set, modifier, sent.smp_data()),
        }
    }

    pub(crate) fn kind(&self) -> SmpKind {
        self.kind
    }

    /// The request by this route, ready to be sent.
    pub(crate) fn by(self, route: &SmpRoute) -> AddressedMad {
        self.request.by(route)
    }
}

impl SmpKind {
    /// Counts one that is sent for the first time.
    pub(crate) fn count_in(self, counts: &mut SmpCounts) {
        let counter = match self {
            Self::Get(get) => get.counter(counts),
            Self::Set(set) => set.counter(counts),
        };
        if let Some(counter) = counter {
            *counter += 1;
            counts.total += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_mgmt::DirectedPath;
    use weft_wire::Method;

    #[test]
    fn a_request_made_again_is_the_same_by_another_way() {
        let first = SmpRequest::set(Set::PKeys, 7, &[3; 64]);
        let sent = first.by(&SmpRoute::Lid(weft_wire::Lid(9)));
        let again = SmpRequest::again(first.kind(), &sent.mad);
        assert_eq!(again.kind(), SmpKind::Set(Set::PKeys));
        let by_path = again.by(&SmpRoute::Directed(DirectedPath::HERE)).mad;
        assert!(by_path.is_directed());
        assert_eq!((by_path.method(), by_path.attribute_id()), (Method::Set, AttributeId::PKeyTable));
        assert_eq!((by_path.attribute_modifier(), by_path.smp_data()), (7, &[3; 64]));
    }

    #[test]
    fn sa_only_reads_count_as_no_other_kind_of_smp() {
        let mut counts = SmpCounts::default();
        SmpKind::Get(Get::GuidInfo).count_in(&mut counts);
        assert_eq!(counts, SmpCounts::default());
        SmpKind::Get(Get::SmInfo).count_in(&mut counts);
        assert_eq!(counts, SmpCounts { get_sm_info: 1, total: 1, ..SmpCounts::default() });
    }
}
