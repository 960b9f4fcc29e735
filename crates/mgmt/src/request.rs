//! Requests: what is asked, and by which route the SMP goes.

use weft_wire::{
    AddressedMad, AttributeId, CONGESTION_CLASS_VERSION, CONGESTION_DATA, CongestionMad, DirectedSmp,
    HOPS_MAX, Lid, MKey, Mad, MadHeader, Method, MgmtClass, PERF_DATA, PortNum, SA_CLASS_VERSION,
    SA_DATA_SIZE, SaMad, ServiceLevel,
};

use crate::DirectedPath;

/// How an SMP reaches a node (IBA 14.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmpRoute {
    /// Along a directed route all the way, needing nothing of any table.
    Directed(DirectedPath),
    /// By the forwarding tables.
    Lid(Lid),
    /// By the forwarding tables to the switch at `via`, from there along a directed route.
    Combined {
        /// Where the directed part begins.
        via: Lid,
        /// The sender's own LID, to which the answer returns from `via`.
        from: Lid,
        /// The directed part, starting on the switch at `via`.
        path: DirectedPath,
    },
}

/// A subnet-management request without a route yet.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    mad: Mad,
}

impl Request {
    /// Asks for an attribute.
    pub fn get(attribute: AttributeId, modifier: u32) -> Self {
        Self::new(Method::Get, attribute, modifier, &[])
    }

    /// Changes an attribute.
    ///
    /// # Panics
    /// When `value` is longer than 64 bytes, which no SMP attribute is.
    pub fn set(attribute: AttributeId, modifier: u32, value: &[u8]) -> Self {
        Self::new(Method::Set, attribute, modifier, value)
    }

    /// An SMP that is complete but for its route.
    pub fn of(mad: Mad) -> Self {
        Self { mad }
    }

    fn new(method: Method, attribute: AttributeId, modifier: u32, value: &[u8]) -> Self {
        let mut mad = headed(MgmtClass::SubnLid, 1, method, attribute, modifier);
        mad.set_smp_data(value);
        Self { mad }
    }

    /// The request by this route, ready to be sent.
    pub fn by(mut self, route: &SmpRoute) -> AddressedMad {
        match route {
            SmpRoute::Lid(lid) => AddressedMad::smp(*lid, self.mad),
            SmpRoute::Directed(path) => {
                self.direct(path, Lid::PERMISSIVE);
                AddressedMad::smp(Lid::PERMISSIVE, self.mad)
            }
            SmpRoute::Combined { via, from, path } => {
                self.direct(path, *from);
                AddressedMad::smp(*via, self.mad)
            }
        }
    }

    fn direct(&mut self, path: &DirectedPath, dr_slid: Lid) {
        let bytes = &mut self.mad.0;
        DirectedSmp::mgmt_class.set(bytes, MgmtClass::SubnDirected);
        DirectedSmp::hop_count.set(bytes, path.hops() as u8);
        DirectedSmp::dr_slid.set(bytes, dr_slid);
        DirectedSmp::dr_dlid.set(bytes, Lid::PERMISSIVE);
        let mut initial_path = [PortNum(0); HOPS_MAX + 1];
        // Entry 0 is not used: the first hop's port stands at 1 (IBA 14.2.1.2).
        initial_path[1..=path.hops()].copy_from_slice(path.ports());
        DirectedSmp::initial_path.set(bytes, initial_path);
    }
}

/// Asks for PortInfo of a port of the node that it is sent from, along the directed route of no hops, showing a key.
pub fn own_port(port: PortNum, m_key: MKey) -> AddressedMad {
    let route = SmpRoute::Directed(DirectedPath::HERE);
    let mut request = Request::get(AttributeId::PortInfo, u32::from(port.0)).by(&route);
    DirectedSmp::m_key.set(&mut request.mad.0, m_key);
    request
}

/// A performance-management Get or Set to the port at `lid` (IBA 16.1).
///
/// # Panics
/// When `value` is longer than 192 bytes, which no attribute of the class is.
pub fn perf(
    lid: Lid,
    sl: ServiceLevel,
    method: Method,
    attribute: AttributeId,
    value: &[u8],
) -> AddressedMad {
    let mut mad = headed(MgmtClass::Perf, 1, method, attribute, 0);
    mad.0[PERF_DATA][..value.len()].copy_from_slice(value);
    AddressedMad::gmp(lid, sl, mad)
}

/// A Get or Set of class CongestionControl to the port at a LID by a service level, showing a key, of an attribute with its
/// modifier (IBA A10.4).
///
/// # Panics
/// When `value` is longer than 192 bytes, which no attribute of the class is.
pub fn congestion(
    lid: Lid,
    sl: ServiceLevel,
    cc_key: u64,
    method: Method,
    attribute_id: AttributeId,
    attribute_modifier: u32,
    value: &[u8],
) -> AddressedMad {
    let class = MgmtClass::CongestionControl;
    let mut mad = headed(class, CONGESTION_CLASS_VERSION, method, attribute_id, attribute_modifier);
    CongestionMad::cc_key.set(&mut mad.0, cc_key);
    mad.0[CONGESTION_DATA][..value.len()].copy_from_slice(value);
    AddressedMad::gmp(lid, sl, mad)
}

/// A request to subnet administration behind `lid` (IBA 15.2.1): a record, or a part of it as the component mask says.
///
/// # Panics
/// When `value` is longer than 200 bytes, which no record is.
pub fn subnet_administration(
    lid: Lid,
    sl: ServiceLevel,
    method: Method,
    attribute: AttributeId,
    component_mask: u64,
    value: &[u8],
) -> AddressedMad {
    let mut mad = headed(MgmtClass::SubnAdm, SA_CLASS_VERSION, method, attribute, 0);
    SaMad::component_mask.set(&mut mad.0, component_mask);
    let mut data = [0; SA_DATA_SIZE];
    data[..value.len()].copy_from_slice(value);
    SaMad::data.set(&mut mad.0, data);
    AddressedMad::gmp(lid, sl, mad)
}

/// A MAD with this header, and nothing behind it.
fn headed(
    mgmt_class: MgmtClass,
    class_version: u8,
    method: Method,
    attribute_id: AttributeId,
    attribute_modifier: u32,
) -> Mad {
    let mut mad = Mad::default();
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class,
        class_version,
        method,
        attribute_id,
        attribute_modifier,
        ..MadHeader::default()
    });
    mad
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_wire::{PerfMad, PortCounters, QKey, QpNum};

    #[test]
    fn a_directed_request_carries_its_path() {
        let route = SmpRoute::Directed("0,1,17".parse().unwrap());
        let request = Request::get(AttributeId::PortInfo, 5).by(&route);
        let smp = DirectedSmp::decode(&request.mad.0);
        assert_eq!((request.lid, request.remote_qp), (Lid::PERMISSIVE, QpNum::SMI));
        assert_eq!((smp.mgmt_class, smp.method), (MgmtClass::SubnDirected, Method::Get));
        assert_eq!((smp.base_version, smp.class_version), (1, 1));
        assert_eq!((smp.hop_pointer, smp.hop_count), (0, 2));
        assert_eq!((smp.dr_slid, smp.dr_dlid), (Lid::PERMISSIVE, Lid::PERMISSIVE));
        assert_eq!(smp.initial_path[..4], [PortNum(0), PortNum(1), PortNum(17), PortNum(0)]);
        assert_eq!((smp.attribute_id, smp.attribute_modifier), (AttributeId::PortInfo, 5));
    }

    #[test]
    fn the_longest_path_fits() {
        let path = DirectedPath::new(&[PortNum(3); 63]).unwrap();
        let request = Request::get(AttributeId::NodeInfo, 0).by(&SmpRoute::Directed(path));
        let smp = DirectedSmp::decode(&request.mad.0);
        assert_eq!(smp.hop_count, 63);
        assert_eq!(smp.initial_path[63], PortNum(3));
    }

    #[test]
    fn a_lid_routed_request_carries_its_value() {
        let request = Request::set(AttributeId::SwitchInfo, 0, &[7; 20]).by(&SmpRoute::Lid(Lid(9)));
        assert_eq!(request.lid, Lid(9));
        assert_eq!(request.mad.class(), MgmtClass::SubnLid);
        assert_eq!(request.mad.smp_attribute::<20>(), &[7; 20]);
    }

    #[test]
    fn a_combined_request_names_both_parts() {
        let path = "0,4".parse().unwrap();
        let route = SmpRoute::Combined { via: Lid(5), from: Lid(1), path };
        let request = Request::get(AttributeId::NodeInfo, 0).by(&route);
        let smp = DirectedSmp::decode(&request.mad.0);
        assert_eq!(request.lid, Lid(5));
        assert_eq!((smp.dr_slid, smp.dr_dlid, smp.hop_count), (Lid(1), Lid::PERMISSIVE, 1));
    }

    #[test]
    fn a_performance_request_goes_to_queue_pair_1() {
        let value = PortCounters { port_select: PortNum(3), ..PortCounters::default() }.encode();
        let sent = perf(Lid(8), ServiceLevel(2), Method::Get, AttributeId::PORT_COUNTERS, &value);
        assert_eq!((sent.remote_qp, sent.qkey, sent.service_level), (QpNum::GSI, QKey::GSI, ServiceLevel(2)));
        assert_eq!(PerfMad::data.get(&sent.mad.0)[..value.len()], value);
    }
}
