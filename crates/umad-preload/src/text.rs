//! Names of classes, methods, attributes and statuses, in the words that libibumad's users know.

use std::ffi::{CStr, c_char};

const UNKNOWN: &CStr = c"<unknown>";
/// So spelled by libibumad.
const UNKNOWN_METHOD: &CStr = c"<unknown";

type Names = &'static [(u16, &'static CStr)];

const METHODS: Names = &[
    (0x01, c"Get"),
    (0x02, c"Set"),
    (0x03, c"Send"),
    (0x05, c"Trap"),
    (0x06, c"Report"),
    (0x07, c"TrapRepress"),
    (0x81, c"GetResp"),
    (0x86, c"ReportResp"),
];

const SA_METHODS: Names = &[
    (0x12, c"GetTable"),
    (0x13, c"GetTraceTable"),
    (0x14, c"GetMulti"),
    (0x15, c"Delete"),
    (0x92, c"GetTableResp"),
    (0x94, c"GetMultiResp"),
    (0x95, c"DeleteResp"),
];

const ATTRIBUTES: Names = &[(0x01, c"Class Port Info"), (0x02, c"Notice"), (0x03, c"Inform Info")];

const SM_ATTRIBUTES: Names = &[
    (0x10, c"NodeDescription"),
    (0x11, c"NodeInfo"),
    (0x12, c"SwitchInfo"),
    (0x14, c"GUIDInfo"),
    (0x15, c"PortInfo"),
    (0x16, c"P_KeyTable"),
    (0x17, c"SLtoVLMappingTable"),
    (0x18, c"VLArbitrationTable"),
    (0x19, c"LinearForwardingTable"),
    (0x1a, c"RandomForwardingTable"),
    (0x1b, c"MulticastForwardingTable"),
    (0x1c, c"LinkSpeedWidthPairsTable"),
    (0x1d, c"VendorSpecificMadsTable"),
    (0x1e, c"HierarchyInfo"),
    (0x20, c"SMInfo"),
    (0x30, c"VendorDiag"),
    (0x31, c"LedInfo"),
    (0x32, c"CableInfo"),
    (0x33, c"PortInfoExtended"),
];

const SA_ATTRIBUTES: Names = &[
    (0x11, c"NodeRecord"),
    (0x12, c"PortInfoRecord"),
    (0x13, c"SLtoVLMappingTableRecord"),
    (0x14, c"SwitchInfoRecord"),
    (0x15, c"LinearForwardingTableRecord"),
    (0x16, c"RandomForwardingTableRecord"),
    (0x17, c"MulticastForwardingTableRecord"),
    (0x18, c"SMInfoRecord"),
    (0x19, c"LinkSpeedWidthPairsTableRecord"),
    (0x20, c"LinkRecord"),
    (0x30, c"GuidInfoRecord"),
    (0x31, c"ServiceRecord"),
    (0x33, c"P_KeyTableRecord"),
    (0x35, c"PathRecord"),
    (0x36, c"VLArbitrationTableRecord"),
    (0x38, c"MCMemberRecord"),
    (0x39, c"TraceRecord"),
    (0x3a, c"MultiPathRecord"),
    (0x3b, c"ServiceAssociationRecord"),
    (0x3c, c"HierarchyInfoRecord"),
    (0x3d, c"CableInfoRecord"),
    (0x3e, c"PortInfoExtendedRecord"),
    (0xf3, c"InformInfoRecord"),
];

const CM_ATTRIBUTES: Names = &[
    (0x10, c"ConnectRequest"),
    (0x11, c"MsgRcptAck"),
    (0x12, c"ConnectReject"),
    (0x13, c"ConnectReply"),
    (0x14, c"ReadyToUse"),
    (0x15, c"DisconnectRequest"),
    (0x16, c"DisconnectReply"),
    (0x17, c"ServiceIDResReq"),
    (0x18, c"ServiceIDResReqResp"),
    (0x19, c"LoadAlternatePath"),
    (0x1a, c"AlternatePathResponse"),
    (0x1b, c"SuggestAlternatePath"),
    (0x1c, c"SuggestPathResponse"),
];

fn name_in(tables: &[Names], code: u16) -> Option<&'static CStr> {
    tables.iter().flat_map(|names| names.iter()).find(|(known, _)| *known == code).map(|(_, name)| *name)
}

/// The name of a management class.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn umad_class_str(mgmt_class: u8) -> *const c_char {
    let name = match mgmt_class {
        0x01 | 0x81 => c"Subn",
        0x03 => c"SubnAdm",
        0x04 => c"Perf",
        0x05 => c"BM",
        0x06 => c"DevMgt",
        0x07 => c"ComMgt",
        0x08 => c"SNMP",
        0x10 => c"DevAdm",
        0x11 => c"BootMgt",
        0x12 => c"BIS",
        0x21 => c"CongestionManagment",
        0x09..=0x0f | 0x30..=0x4f => c"Vendor",
        0x13..=0x2f => c"Application",
        _ => UNKNOWN,
    };
    name.as_ptr()
}

/// The name of a method of a class.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn umad_method_str(mgmt_class: u8, method: u8) -> *const c_char {
    let tables: &[Names] = if mgmt_class == 0x03 { &[METHODS, SA_METHODS] } else { &[METHODS] };
    name_in(tables, method.into()).unwrap_or(UNKNOWN_METHOD).as_ptr()
}

/// The name of an attribute of a class; the attribute in network order.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn umad_attribute_str(mgmt_class: u8, attr_id: u16) -> *const c_char {
    let special: Names = match mgmt_class {
        0x01 | 0x81 => SM_ATTRIBUTES,
        0x03 => SA_ATTRIBUTES,
        0x07 => CM_ATTRIBUTES,
        _ => &[],
    };
    name_in(&[ATTRIBUTES, special], u16::from_be(attr_id)).unwrap_or(UNKNOWN).as_ptr()
}

/// What the bits of a status say that all classes share; the status in network order.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn umad_common_mad_status_str(status: u16) -> *const c_char {
    let status = u16::from_be(status);
    let name = match (status & 1, status & 2, status & 0x1c) {
        (1, _, _) => c"Busy",
        (_, 2, _) => c"Redirection required",
        (_, _, 0x04) => c"Bad Version",
        (_, _, 0x08) => c"Method not supported",
        (_, _, 0x0c) => c"Method/Attribute combo not supported",
        (_, _, 0x1c) => c"Invalid attribute/modifier field",
        _ => c"Success",
    };
    name.as_ptr()
}

/// What the bits of a status say that are subnet administration's own; the status in network order.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn umad_sa_mad_status_str(status: u16) -> *const c_char {
    let name = match u16::from_be(status) >> 8 {
        0 => c"Success",
        1 => c"No Resources",
        2 => c"Request Invalid",
        3 => c"No Records",
        4 => c"Too Many Records",
        5 => c"Invalid GID",
        6 => c"Insufficient Components",
        7 => c"Request Denied",
        8 => c"Priority Suggested",
        _ => c"Undefined Error",
    };
    name.as_ptr()
}
