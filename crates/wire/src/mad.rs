//! The management datagram: its common header and the two kinds of SMP (IBA 13.4.2, 14.2.1).

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    AttributeId, Lid, MKey, Method, MgmtClass, Oui, PortNum, QKey, QpNum, ServiceLevel, TransactionId,
};

/// How many bytes a MAD has.
pub const MAD_SIZE: usize = 256;

/// Where the 64 data bytes of an SMP begin.
pub const SMP_DATA: std::ops::Range<usize> = 64..128;

/// A reserved byte and the vendor's identifier in a vendor-specific MAD with RMPP (IBA 16.5.1).
const VENDOR_OUI: std::ops::Range<usize> = 36..40;

/// Where the 192 data bytes of a performance MAD begin.
pub const PERF_DATA: std::ops::Range<usize> = 64..256;

/// Where a directed-route SMP has the ports to leave by; the first entry is not used (IBA 14.2.1.2).
pub const INITIAL_PATH: std::ops::Range<usize> = 128..192;

/// Where a directed-route SMP has the ports of arrival; the first entry is not used (IBA 14.2.1.2).
pub const RETURN_PATH: std::ops::Range<usize> = 192..256;

/// The deepest directed route: hop pointer and hop count go to 63 (IBA 14.2.1.2).
pub const HOPS_MAX: usize = 63;

/// One management datagram. Its length is checked once, here; decoding never fails afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mad(pub [u8; MAD_SIZE]);

/// Bytes that are not a MAD, because there are not 256 of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAMad {
    /// How many there were.
    pub length: usize,
}

crate::displayed!(NotAMad { length } => "a MAD has 256 bytes, not {length}");

impl std::error::Error for NotAMad {}

impl Mad {
    /// The common header.
    pub fn header(&self) -> MadHeader {
        MadHeader::decode(self.0.first_chunk().expect("a MAD is longer than its header"))
    }

    /// Writes the common header and leaves the rest as it is.
    pub fn set_header(&mut self, header: &MadHeader) {
        self.0[..MadHeader::SIZE].copy_from_slice(&header.encode());
    }

    /// The management class.
    pub fn class(&self) -> MgmtClass {
        Smp::mgmt_class.get(&self.0)
    }

    /// The method, response bit included.
    pub fn method(&self) -> Method {
        Smp::method.get(&self.0)
    }

    /// The attribute id.
    pub fn attribute_id(&self) -> AttributeId {
        Smp::attribute_id.get(&self.0)
    }

    /// The attribute modifier.
    pub fn attribute_modifier(&self) -> u32 {
        Smp::attribute_modifier.get(&self.0)
    }

    /// The transaction id.
    pub fn transaction_id(&self) -> TransactionId {
        Smp::transaction_id.get(&self.0)
    }

    /// The status without a directed-route SMP's direction bit.
    pub fn status(&self) -> u16 {
        let status = Smp::status.get(&self.0);
        if self.is_directed() { status & !crate::status::DIRECTION } else { status }
    }

    /// Whose vendor-specific MAD this is; 0 for every class but those from 0x30 to 0x4f.
    pub fn oui(&self) -> Oui {
        let [_, a, b, c] = *self.0[VENDOR_OUI].first_chunk().expect("the range has 4 bytes");
        if self.class().has_oui() { Oui(u32::from_be_bytes([0, a, b, c])) } else { Oui(0) }
    }

    /// Whether this answers something: by its response bit, or as TrapRepress, which has none.
    pub fn is_answer(&self) -> bool {
        self.method().is_response() || self.method() == Method::TrapRepress
    }

    /// Whether this is a directed-route SMP.
    pub fn is_directed(&self) -> bool {
        self.class() == MgmtClass::SubnDirected
    }

    /// Whether this is an SMP of either kind.
    pub fn is_smp(&self) -> bool {
        matches!(self.class(), MgmtClass::SubnLid | MgmtClass::SubnDirected)
    }

    /// The 64 data bytes of an SMP.
    pub fn smp_data(&self) -> &[u8; 64] {
        self.0[SMP_DATA].first_chunk().expect("the range has 64 bytes")
    }

    /// The 64 data bytes of an SMP, to write.
    pub fn smp_data_mut(&mut self) -> &mut [u8; 64] {
        self.0[SMP_DATA].first_chunk_mut().expect("the range has 64 bytes")
    }

    /// Copies a structure of at most 64 bytes to the front of the SMP data and clears the rest.
    ///
    /// # Panics
    /// When `attribute` is longer than 64 bytes, which no SMP attribute is.
    pub fn set_smp_data(&mut self, attribute: &[u8]) {
        let data = self.smp_data_mut();
        *data = [0; 64];
        data[..attribute.len()].copy_from_slice(attribute);
    }

    /// The first `N` bytes of the SMP data, for a structure's `decode`.
    ///
    /// # Panics
    /// When `N` is more than 64, which no SMP attribute has.
    pub fn smp_attribute<const N: usize>(&self) -> &[u8; N] {
        self.0[SMP_DATA].first_chunk().expect("an SMP attribute has at most 64 bytes")
    }
}

impl Default for Mad {
    fn default() -> Self {
        Self([0; MAD_SIZE])
    }
}

impl TryFrom<&[u8]> for Mad {
    type Error = NotAMad;
    fn try_from(bytes: &[u8]) -> Result<Self, NotAMad> {
        bytes.try_into().map(Self).map_err(|_| NotAMad { length: bytes.len() })
    }
}

impl fmt::Debug for Mad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let h = self.header();
        write!(
            f,
            "{} {}({}) mod {:#x} tid {} status {:#06x}",
            h.mgmt_class, h.method, h.attribute_id, h.attribute_modifier, h.transaction_id, h.status
        )
    }
}

impl Serialize for Mad {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(&crate::hex::Hex(&self.0))
        } else {
            serializer.serialize_bytes(&self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Mad {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(MadVisitor)
        } else {
            deserializer.deserialize_bytes(MadVisitor)
        }
    }
}

struct MadVisitor;

impl<'de> Visitor<'de> for MadVisitor {
    type Value = Mad;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the 256 bytes of a MAD")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Mad, E> {
        Mad::try_from(bytes).map_err(E::custom)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Mad, E> {
        let bytes = crate::hex::parse(text).ok_or_else(|| E::custom("not hexadecimal digits"))?;
        Mad::try_from(bytes.as_slice()).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Mad, A::Error> {
        let mut mad = Mad::default();
        for byte in &mut mad.0 {
            *byte = seq.next_element()?.ok_or_else(|| A::Error::custom("fewer than 256 bytes"))?;
        }
        Ok(mad)
    }
}

/// A MAD with the addresses that a management program gives and gets with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressedMad {
    /// The peer: destination of what is sent, source of what is received; permissive on a purely directed route.
    pub lid: Lid,
    /// The peer's queue pair.
    pub remote_qp: QpNum,
    /// Our queue pair: 0 for SMPs, 1 for GMPs.
    pub local_qp: QpNum,
    /// The service level.
    pub service_level: ServiceLevel,
    /// Which entry of the port's P_Key table.
    pub pkey_index: u16,
    /// The queue key that the packet carries (GMPs).
    pub qkey: QKey,
    /// The datagram itself.
    pub mad: Mad,
}

impl AddressedMad {
    /// An SMP: queue pair 0 at both ends, service level 0.
    pub fn smp(lid: Lid, mad: Mad) -> Self {
        let (remote_qp, local_qp) = (QpNum::SMI, QpNum::SMI);
        Self { lid, remote_qp, local_qp, service_level: ServiceLevel(0), pkey_index: 0, qkey: QKey(0), mad }
    }

    /// A GMP: queue pair 1 at both ends, with its well-known queue key.
    pub fn gmp(lid: Lid, service_level: ServiceLevel, mad: Mad) -> Self {
        let (remote_qp, local_qp) = (QpNum::GSI, QpNum::GSI);
        Self { lid, remote_qp, local_qp, service_level, pkey_index: 0, qkey: QKey::GSI, mad }
    }
}

/// What a management program wants delivered besides answers to what it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The management class.
    pub class: MgmtClass,
    /// The class version.
    pub class_version: u8,
    /// The methods.
    pub methods: MethodMask,
    /// Whose vendor class it is, for the classes 0x30 to 0x4f (IBA 16.5.1); 0 for every other class.
    pub oui: Oui,
}

impl Registration {
    /// A registration for a class that needs no vendor's identifier.
    pub fn new(class: MgmtClass, class_version: u8, methods: impl Into<MethodMask>) -> Self {
        Self { class, class_version, methods: methods.into(), oui: Oui(0) }
    }

    /// Whether such a MAD is to be delivered here. Says nothing of answers: they go to whoever asked.
    pub fn covers(&self, mad: &Mad) -> bool {
        self.class == mad.class()
            && self.class_version == mad.header().class_version
            && self.methods.contains(mad.method())
            && self.oui == mad.oui()
    }

    /// A method that both want of the same class; there may be none, or only one of the two can have it.
    pub fn overlap(&self, other: &Self) -> Option<Method> {
        let same =
            self.class == other.class && self.class_version == other.class_version && self.oui == other.oui;
        MethodMask(self.methods.0 & other.methods.0).iter().next().filter(|_| same)
    }
}

/// A set of methods: bit `m` stands for method `m`, whose response bit is clear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MethodMask(pub u128);

impl MethodMask {
    /// Whether the method is in the set. A response never is.
    pub const fn contains(self, method: Method) -> bool {
        !method.is_response() && self.0 >> method.code() & 1 != 0
    }

    /// Whether there is nothing in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The methods, the lowest first.
    pub fn iter(self) -> impl Iterator<Item = Method> {
        (0..128).map(Method::from_code).filter(move |&method| self.contains(method))
    }
}

/// Responses are left out.
impl FromIterator<Method> for MethodMask {
    fn from_iter<I: IntoIterator<Item = Method>>(methods: I) -> Self {
        let requests = methods.into_iter().filter(|method| !method.is_response());
        Self(requests.fold(0, |mask, method| mask | 1 << method.code()))
    }
}

/// Responses are left out.
impl From<&[Method]> for MethodMask {
    fn from(methods: &[Method]) -> Self {
        methods.iter().copied().collect()
    }
}

/// Responses are left out.
impl<const N: usize> From<[Method; N]> for MethodMask {
    fn from(methods: [Method; N]) -> Self {
        methods.into_iter().collect()
    }
}

/// What one end of a cable enables, as masks of PortInfo; the link trains to the best that both have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkParameters {
    /// LinkWidthEnabled: 1x = 1, 4x = 2, 8x = 4, 12x = 8, 2x = 16.
    pub width: u8,
    /// LinkSpeedEnabled: SDR = 1, DDR = 2, QDR = 4; and FDR10 = 8, which PortInfo has no bit for.
    pub speed: u8,
    /// LinkSpeedExtEnabled: FDR = 1, EDR = 2, HDR = 4, NDR = 8; and XDR = 16, which PortInfo has in LinkSpeedExtEnabled2.
    pub speed_ext: u8,
}

impl LinkParameters {
    /// FDR10 in `speed`. Only MlnxExtPortInfo tells of it; PortInfo says QDR.
    pub const FDR10: u8 = 8;
    /// XDR in `speed_ext`.
    pub const XDR: u8 = 16;
}

mads! {
    /// The header that every MAD begins with (IBA 13.4.2).
    MadHeader: 24 {}

    /// An SMP routed by LID (IBA 14.2.1.1).
    Smp: 256 {
        /// The management key.
        192, 64, m_key: MKey;
        /// Reserved.
        256, 256, reserved_256: [u8; 32];
        /// The attribute's bytes.
        512, 512, data: [u8; 64];
        /// Reserved.
        1024, 1024, reserved_1024: [u8; 128];
    }

    /// A performance-management MAD (IBA 16.1.1).
    PerfMad: 256 {
        /// Reserved.
        192, 320, reserved_192: [u8; 40];
        /// The attribute's bytes.
        512, 1536, data: [u8; 192];
    }
}

layout! {
    /// An SMP along a directed route (IBA 14.2.1.2).
    pub struct DirectedSmp: 256 {
        /// 1.
        0, 8, base_version: u8;
        /// SubnDirected.
        8, 8, mgmt_class: MgmtClass;
        /// 1.
        16, 8, class_version: u8;
        /// The method.
        24, 8, method: Method;
        /// Set on the way back.
        32, 1, direction: bool;
        /// The status.
        33, 15, status: u16;
        /// Where on the path the SMP is.
        48, 8, hop_pointer: u8;
        /// How many hops the path has.
        56, 8, hop_count: u8;
        /// The transaction.
        64, 64, transaction_id: TransactionId;
        /// The attribute.
        128, 16, attribute_id: AttributeId;
        /// Reserved.
        144, 16, reserved_144: u16;
        /// What part of the attribute.
        160, 32, attribute_modifier: u32;
        /// The management key.
        192, 64, m_key: MKey;
        /// Where the directed route begins, or permissive.
        256, 16, dr_slid: Lid;
        /// Where LID routing goes on after the directed route, or permissive.
        272, 16, dr_dlid: Lid;
        /// Reserved.
        288, 224, reserved_288: [u8; 28];
        /// The attribute's bytes.
        512, 512, data: [u8; 64];
        /// The port to leave by at each hop; entry 0 is not used.
        1024, 512, initial_path: [PortNum; 64];
        /// The port of arrival at each hop; entry 0 is not used.
        1536, 512, return_path: [PortNum; 64];
    }
}
