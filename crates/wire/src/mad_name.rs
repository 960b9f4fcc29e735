//! Names of MADs for one line of text: `SubnGet(NodeInfo)`.

use std::fmt;

use crate::{AttributeId, Mad, Method, MgmtClass};

/// A MAD's class, method and attribute as the architecture writes them, such as `SubnAdmGetTable(PathRecord)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadName {
    class: MgmtClass,
    method: Method,
    attribute: AttributeId,
}

impl Mad {
    /// What this is, for display.
    pub fn name(&self) -> MadName {
        MadName { class: self.class(), method: self.method(), attribute: self.attribute_id() }
    }
}

impl fmt::Display for MadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            MgmtClass::SubnLid | MgmtClass::SubnDirected => f.write_str("Subn")?,
            MgmtClass::SubnAdm => f.write_str("SubnAdm")?,
            MgmtClass::Perf => f.write_str("Perf")?,
            other => write!(f, "{other} ")?,
        }
        write!(f, "{}(", self.method)?;
        let known = matches!(self.class, MgmtClass::SubnLid | MgmtClass::SubnDirected)
            || self.attribute.code() < FIRST_OF_A_CLASS;
        match own_name(self.class, self.attribute) {
            Some(name) => f.write_str(name)?,
            None if known => write!(f, "{}", self.attribute)?,
            None => write!(f, "{:#x}", self.attribute.code())?,
        }
        f.write_str(")")
    }
}

/// What a number stands for in this class alone (IBA 15.2.5, 16.1.3, A10.4.3).
fn own_name(class: MgmtClass, attribute: AttributeId) -> Option<&'static str> {
    let names: &[(AttributeId, &str)] = match class {
        MgmtClass::SubnAdm => crate::sa_attribute::NAMES,
        MgmtClass::Perf => &PERFORMANCE,
        MgmtClass::CongestionControl => crate::congestion_attribute::NAMES,
        _ => &[],
    };
    names.iter().find(|(number, _)| *number == attribute).map(|(_, name)| *name)
}

/// Below this, numbers mean the same in every class (IBA 13.4.8).
const FIRST_OF_A_CLASS: u16 = 0x10;

const PERFORMANCE: [(AttributeId, &str); 13] = [
    (AttributeId::PORT_SAMPLES_CONTROL, "PortSamplesControl"),
    (AttributeId::PORT_SAMPLES_RESULT, "PortSamplesResult"),
    (AttributeId::PORT_COUNTERS, "PortCounters"),
    (AttributeId::PORT_RCV_ERROR_DETAILS, "PortRcvErrorDetails"),
    (AttributeId::PORT_XMIT_DISCARD_DETAILS, "PortXmitDiscardDetails"),
    (AttributeId::PORT_OP_RCV_COUNTERS, "PortOpRcvCounters"),
    (AttributeId::PORT_FLOW_CTL_COUNTERS, "PortFlowCtlCounters"),
    (AttributeId::PORT_VL_OP_PACKETS, "PortVLOpPackets"),
    (AttributeId::PORT_VL_OP_DATA, "PortVLOpData"),
    (AttributeId::PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS, "PortVLXmitFlowCtlUpdateErrors"),
    (AttributeId::PORT_VL_XMIT_WAIT_COUNTERS, "PortVLXmitWaitCounters"),
    (AttributeId::PortCountersExtended, "PortCountersExtended"),
    (AttributeId::PORT_SAMPLES_RESULT_EXTENDED, "PortSamplesResultExtended"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Smp;

    #[track_caller]
    fn called(class: MgmtClass, method: Method, attribute: u16, name: &str) {
        let mut mad = Mad::default();
        Smp::mgmt_class.set(&mut mad.0, class);
        Smp::method.set(&mut mad.0, method);
        Smp::attribute_id.set(&mut mad.0, AttributeId::from_code(attribute));
        assert_eq!(mad.name().to_string(), name);
    }

    #[test]
    fn the_same_number_has_another_name_in_another_class() {
        called(MgmtClass::SubnDirected, Method::Get, 0x11, "SubnGet(NodeInfo)");
        called(MgmtClass::SubnLid, Method::TrapRepress, 0x02, "SubnTrapRepress(Notice)");
        called(MgmtClass::SubnAdm, Method::GetTable, 0x11, "SubnAdmGetTable(NodeRecord)");
        called(MgmtClass::SubnAdm, Method::Set, 0xff10, "SubnAdmSet(VmMove)");
        called(MgmtClass::Perf, Method::Set, 0x12, "PerfSet(PortCounters)");
        called(MgmtClass::Perf, Method::Get, 0x1d, "PerfGet(PortCountersExtended)");
        called(MgmtClass::Perf, Method::GetResp, 0x01, "PerfGetResp(ClassPortInfo)");
        called(MgmtClass::CongestionControl, Method::Set, 0x16, "CongestionControl Set(CACongestionSetting)");
        called(MgmtClass::OpenIbPing, Method::Send, 0, "OpenIbPing Send(0x0)");
        called(MgmtClass::from_code(0x0a), Method::from_code(0x7f), 0x17, "0xa 0x7f(0x17)");
    }
}
