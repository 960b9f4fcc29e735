//! What a MAD is called where one line has to say it: `SubnGet(NodeInfo)`.

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

/// What a number stands for in this class alone (IBA 15.2.5, 16.1.3).
fn own_name(class: MgmtClass, attribute: AttributeId) -> Option<&'static str> {
    let names: &[(u16, &str)] = match class {
        MgmtClass::SubnAdm => &ADMINISTRATION,
        MgmtClass::Perf => &PERFORMANCE,
        _ => &[],
    };
    names.iter().find(|(number, _)| *number == attribute.code()).map(|(_, name)| *name)
}

/// Below this, numbers mean the same in every class (IBA 13.4.8).
const FIRST_OF_A_CLASS: u16 = 0x10;

const ADMINISTRATION: [(u16, &str); 19] = [
    (0x11, "NodeRecord"),
    (0x12, "PortInfoRecord"),
    (0x13, "SLtoVLMappingTableRecord"),
    (0x14, "SwitchInfoRecord"),
    (0x15, "LinearForwardingTableRecord"),
    (0x16, "RandomForwardingTableRecord"),
    (0x17, "MulticastForwardingTableRecord"),
    (0x18, "SMInfoRecord"),
    (0x20, "LinkRecord"),
    (0x30, "GuidInfoRecord"),
    (0x31, "ServiceRecord"),
    (0x33, "P_KeyTableRecord"),
    (0x35, "PathRecord"),
    (0x36, "VLArbitrationTableRecord"),
    (0x38, "MCMemberRecord"),
    (0x39, "TraceRecord"),
    (0x3a, "MultiPathRecord"),
    (0x3b, "ServiceAssociationRecord"),
    (0xf3, "InformInfoRecord"),
];

const PERFORMANCE: [(u16, &str); 13] = [
    (0x10, "PortSamplesControl"),
    (0x11, "PortSamplesResult"),
    (0x12, "PortCounters"),
    (0x15, "PortRcvErrorDetails"),
    (0x16, "PortXmitDiscardDetails"),
    (0x17, "PortOpRcvCounters"),
    (0x18, "PortFlowCtlCounters"),
    (0x19, "PortVLOpPackets"),
    (0x1a, "PortVLOpData"),
    (0x1b, "PortVLXmitFlowCtlUpdateErrors"),
    (0x1c, "PortVLXmitWaitCounters"),
    (0x1d, "PortCountersExtended"),
    (0x1f, "PortExtendedSpeedsCounters"),
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
        called(MgmtClass::Perf, Method::Set, 0x12, "PerfSet(PortCounters)");
        called(MgmtClass::Perf, Method::Get, 0x1d, "PerfGet(PortCountersExtended)");
        called(MgmtClass::Perf, Method::GetResp, 0x01, "PerfGetResp(ClassPortInfo)");
        called(MgmtClass::OpenIbPing, Method::Send, 0, "OpenIbPing Send(0x0)");
        called(MgmtClass::from_code(0x0a), Method::from_code(0x7f), 0x17, "0xa 0x7f(0x17)");
    }
}
