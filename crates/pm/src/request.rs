//! The requests that the manager makes.

use weft_mgmt::{perf, subnet_administration};
use weft_wire::{
    AddressedMad, AttributeId, Details, Gid, InformInfo, InformInfoRecord, Lid, Method, MgmtClass, NodeType,
    Notice, PortCounters, PortCountersExtended, PortNum, PortRcvErrorDetails, PortVlXmitWaitCounters,
    RepathDetails, RepathKind, SaMad, ServiceLevel, SmKey, Smp, TransactionId, TrapNumber, sa_attribute,
    trap,
};

/// The kind of node that a notice of a class manager comes from (IBA 13.4.8.2).
const CLASS_MANAGER: NodeType = NodeType::from_code(4);

/// What is asked of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// PortCounters.
    Basic,
    /// PortCountersExtended.
    Extended,
    /// PortVLXmitWaitCounters.
    Lanes,
    /// PortRcvErrorDetails.
    Errors,
    /// Sets counters of PortCounters to zero: CounterSelect, and CounterSelect2 from bit 16 on.
    ResetBasic(u32),
    /// The same of PortCountersExtended.
    ResetExtended(u32),
    /// The same of PortVLXmitWaitCounters, by lane.
    ResetLanes(u16),
    /// The same of PortRcvErrorDetails.
    ResetErrors(u16),
}

impl What {
    /// A bit for each attribute that is read; a reset has none.
    pub(crate) fn bit(self) -> u8 {
        match self {
            Self::Basic => 1,
            Self::Extended => 2,
            Self::Lanes => 4,
            Self::Errors => 8,
            _ => 0,
        }
    }
}

/// A request to a port's performance agent.
pub(crate) fn counters(lid: Lid, sl: ServiceLevel, port: PortNum, what: What) -> AddressedMad {
    // Every attribute begins with a byte of its own and PortSelect.
    let select = [0, port.0];
    let (port_select, attribute) = (port, attribute(what));
    let set = |zero: &[u8]| perf(lid, sl, Method::Set, attribute, zero);
    match what {
        What::Basic | What::Extended | What::Lanes | What::Errors => {
            perf(lid, sl, Method::Get, attribute, &select)
        }
        What::ResetBasic(bits) => {
            let (counter_select, counter_select2) = (bits as u16, (bits >> 16) as u8);
            let zero =
                PortCounters { port_select, counter_select, counter_select2, ..PortCounters::default() };
            set(&zero.encode())
        }
        What::ResetExtended(bits) => {
            let (counter_select, counter_select2) = (bits as u16, bits >> 16);
            let none = PortCountersExtended::default();
            let zero = PortCountersExtended { port_select, counter_select, counter_select2, ..none };
            set(&zero.encode())
        }
        What::ResetLanes(counter_select) => {
            let none = PortVlXmitWaitCounters::default();
            let zero = PortVlXmitWaitCounters { port_select, counter_select, ..none };
            set(&zero.encode())
        }
        What::ResetErrors(counter_select) => {
            let none = PortRcvErrorDetails::default();
            let zero = PortRcvErrorDetails { port_select, counter_select, ..none };
            set(&zero.encode())
        }
    }
}

fn attribute(what: What) -> AttributeId {
    match what {
        What::Basic | What::ResetBasic(_) => AttributeId::PORT_COUNTERS,
        What::Extended | What::ResetExtended(_) => AttributeId::PortCountersExtended,
        What::Lanes | What::ResetLanes(_) => AttributeId::PORT_VL_XMIT_WAIT_COUNTERS,
        What::Errors | What::ResetErrors(_) => AttributeId::PORT_RCV_ERROR_DETAILS,
    }
}

/// Asks a device whether it is there.
pub(crate) fn probe(lid: Lid, sl: ServiceLevel) -> AddressedMad {
    perf(lid, sl, Method::Get, AttributeId::ClassPortInfo, &[])
}

/// Whether a MAD is subnet administration's answer about this attribute.
pub(crate) fn is_answer_about(attribute: AttributeId, mad: &AddressedMad) -> bool {
    let mad = &mad.mad;
    mad.class() == MgmtClass::SubnAdm && mad.attribute_id() == attribute && mad.method().is_response()
}

/// Subscribes to a generic trap, whoever it is about.
pub(crate) fn subscribe(lid: Lid, sl: ServiceLevel, trap_number: TrapNumber) -> AddressedMad {
    let info = InformInfo {
        lid_range_begin: Lid(InformInfo::ALL),
        is_generic: 1,
        subscribe: 1,
        notice_type: InformInfo::ALL,
        trap_number,
        qpn: weft_wire::QpNum::GSI,
        resp_time_value: 16,
        producer_type: InformInfo::ALL_PRODUCERS,
        ..InformInfo::default()
    };
    subnet_administration(lid, sl, Method::Set, AttributeId::InformInfo, 0, &info.encode())
}

/// Asks for all subscriptions of a port.
pub(crate) fn subscriptions(lid: Lid, sl: ServiceLevel, subscriber_gid: Gid) -> AddressedMad {
    let record = InformInfoRecord { subscriber_gid, ..InformInfoRecord::default() };
    let attribute = sa_attribute::INFORM_INFO_RECORD;
    // SubscriberGID is the first component.
    subnet_administration(lid, sl, Method::GetTable, attribute, 1, &record.encode())
}

/// The notices that hosts may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tell {
    /// To use this service level towards the hot spot.
    Repath(ServiceLevel),
    /// To leave it.
    Unpath(ServiceLevel),
    /// To leave all of them.
    Wildcard,
}

/// Asks the subnet manager to tell a host, or all that have subscribed when `target` is 0: SubnAdmSet(Notice).
pub(crate) fn notice(
    manager: Lid,
    sl: ServiceLevel,
    own: Lid,
    target: Lid,
    hot_spot: Lid,
    tell: Tell,
) -> AddressedMad {
    let (number, kind, service_level) = match tell {
        Tell::Repath(slow) => (trap::REPATH, RepathKind::HOT_SPOT, slow),
        Tell::Unpath(slow) => (trap::UNPATH, RepathKind::HOT_SPOT, slow),
        Tell::Wildcard => (trap::UNPATH, RepathKind::WILDCARD, ServiceLevel(0)),
    };
    let details = RepathDetails { kind, service_level, dlid: hot_spot, target, ..RepathDetails::default() };
    let notice = Notice::generic(CLASS_MANAGER, own, &Details::Repath(number, details));
    subnet_administration(manager, sl, Method::Set, AttributeId::Notice, 0, &notice.encode())
}

/// Shows subnet administration a key.
pub(crate) fn with_key(mut request: AddressedMad, key: SmKey) -> AddressedMad {
    SaMad::sm_key.set(&mut request.mad.0, key);
    request
}

/// Gives a request its transaction id.
pub(crate) fn with_id(mut request: AddressedMad, id: u32) -> AddressedMad {
    Smp::transaction_id.set(&mut request.mad.0, TransactionId(u64::from(id)));
    request
}

/// The answer to a Report.
pub(crate) fn report_response(report: &AddressedMad) -> AddressedMad {
    let mut answer = *report;
    SaMad::method.set(&mut answer.mad.0, Method::ReportResp);
    answer
}
