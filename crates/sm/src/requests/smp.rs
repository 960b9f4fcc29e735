//! The SMPs that the manager asks its devices with. Each kind is counted: one that is new does not compile before.

use weft_mgmt::{Request, SmpRoute};
use weft_wire::{AddressedMad, AttributeId, Mad, SwitchInfo};

use crate::SmpCounts;

/// An attribute that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Get {
    NodeInfo,
    NodeDescription,
    SwitchInfo,
    PortInfo,
    Lft,
    SlToVl,
    VlArbitration,
    PKeys,
    GuidInfo,
    SmInfo,
}

/// An attribute that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    SwitchInfo,
    PortInfo,
    Lft,
    SlToVl,
    VlArbitration,
    PKeys,
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

impl Get {
    fn attribute_id(self) -> AttributeId {
        match self {
            Self::NodeInfo => AttributeId::NodeInfo,
            Self::NodeDescription => AttributeId::NodeDescription,
            Self::SwitchInfo => AttributeId::SwitchInfo,
            Self::PortInfo => AttributeId::PortInfo,
            Self::Lft => AttributeId::LinearForwardingTable,
            Self::SlToVl => AttributeId::SlToVlTable,
            Self::VlArbitration => AttributeId::VlArbitrationTable,
            Self::PKeys => AttributeId::PKeyTable,
            Self::GuidInfo => AttributeId::GuidInfo,
            Self::SmInfo => AttributeId::SmInfo,
        }
    }
}

impl Set {
    pub(crate) fn attribute_id(self) -> AttributeId {
        match self {
            Self::SwitchInfo => AttributeId::SwitchInfo,
            Self::PortInfo => AttributeId::PortInfo,
            Self::Lft => AttributeId::LinearForwardingTable,
            Self::SlToVl => AttributeId::SlToVlTable,
            Self::VlArbitration => AttributeId::VlArbitrationTable,
            Self::PKeys => AttributeId::PKeyTable,
        }
    }
}

impl SmpKind {
    /// Counts one that is sent for the first time.
    pub(crate) fn count_in(self, counts: &mut SmpCounts) {
        let counter = match self {
            Self::Get(Get::NodeInfo) => &mut counts.get_node_info,
            Self::Get(Get::NodeDescription) => &mut counts.get_node_description,
            Self::Get(Get::SwitchInfo) => &mut counts.get_switch_info,
            Self::Get(Get::PortInfo) => &mut counts.get_port_info,
            Self::Get(Get::Lft) => &mut counts.get_lft,
            Self::Get(Get::SlToVl) => &mut counts.get_sl_to_vl,
            Self::Get(Get::VlArbitration) => &mut counts.get_vl_arbitration,
            Self::Get(Get::PKeys) => &mut counts.get_p_keys,
            Self::Get(Get::SmInfo) => &mut counts.get_sm_info,
            // Subnet administration reads it between sweeps, whose counts these are.
            Self::Get(Get::GuidInfo) => return,
            Self::Set(Set::SwitchInfo) => &mut counts.set_switch_info,
            Self::Set(Set::PortInfo) => &mut counts.set_port_info,
            Self::Set(Set::Lft) => &mut counts.set_lft,
            Self::Set(Set::SlToVl) => &mut counts.set_sl_to_vl,
            Self::Set(Set::VlArbitration) => &mut counts.set_vl_arbitration,
            Self::Set(Set::PKeys) => &mut counts.set_p_keys,
        };
        *counter += 1;
        counts.total += 1;
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
