//! The subnet management agent: one `match` over method and attribute, one file per group of attributes.
//!
//! A request is checked from the outside in: version, method, M_Key (IBA 14.2.4), attribute, modifier, values.
//! A wrong M_Key is not answered at all. A Set either takes every value or, with a bad one among them, none.

mod lanes;
mod link_extensions;
mod node;
mod port_info;
mod tables;

use weft_machine::Time;
use weft_wire::{
    AttributeId, Details, DirectedSmp, MKey, MKeyDetails, Mad, Method, PortNum, SMP_DATA, Smp as SmpLayout,
    status, trap,
};

use crate::vl15::Smp;
use crate::{Device, DropReason, Event};

/// An attribute's 64 bytes, or the status that says what is wrong with the request.
type Answer = Result<[u8; 64], u16>;

/// What a request asks, taken from its header.
#[derive(Clone, Copy, Debug)]
struct Request<'a> {
    now: Time,
    /// The port of arrival.
    port: PortNum,
    modifier: u32,
    m_key: MKey,
    data: &'a [u8; 64],
}

impl Device {
    /// The SMA's answer to an SMP, if it deserves one.
    pub(crate) fn subnet_answer(&mut self, now: Time, smp: &Smp) -> Option<Mad> {
        let header = smp.mad.header();
        if !self.check_m_key(now, smp) {
            self.discard(smp.port, DropReason::BadMKey);
            return None;
        }
        if header.method == Method::TrapRepress {
            self.repress_trap(self.end_port(smp.port), &smp.mad);
            return None;
        }
        let request = Request {
            now,
            port: smp.port,
            modifier: header.attribute_modifier,
            m_key: SmpLayout::m_key.get(&smp.mad.0),
            data: smp.mad.smp_data(),
        };
        let answer = if header.base_version != 1 || header.class_version != 1 {
            Err(status::BAD_VERSION)
        } else {
            self.dispatch(header.method, header.attribute_id, request)
        };
        self.statistics.smps_answered += 1;
        let mut mad = smp.mad;
        SmpLayout::method.set(&mut mad.0, Method::GetResp);
        if let Ok(data) = &answer {
            mad.0[SMP_DATA].copy_from_slice(data);
        }
        let code = answer.err().unwrap_or(status::OK);
        if mad.is_directed() {
            DirectedSmp::status.set(&mut mad.0, code);
        } else {
            SmpLayout::status.set(&mut mad.0, code);
        }
        Some(mad)
    }

    fn dispatch(&mut self, method: Method, attribute: AttributeId, request: Request<'_>) -> Answer {
        if method == Method::Set {
            self.statistics.smp_sets += 1;
        }
        match (method, attribute) {
            (Method::Get, AttributeId::NodeDescription) => Ok(self.description.encode()),
            (Method::Set, AttributeId::NodeDescription) => Ok(self.set_node_description(request)),
            (Method::Get, AttributeId::NodeInfo) => Ok(self.node_info(request.port)),
            (Method::Get, AttributeId::SwitchInfo) => self.switch_info(),
            (Method::Set, AttributeId::SwitchInfo) => self.set_switch_info(request),
            (Method::Get, AttributeId::GuidInfo) => self.guid_info(request),
            (Method::Set, AttributeId::GuidInfo) => self.set_guid_info(request),
            (Method::Get, AttributeId::PortInfo) => self.port_info(request),
            (Method::Set, AttributeId::PortInfo) => self.set_port_info(request),
            (Method::Get, AttributeId::PortInfoExtended) => self.port_info_extended(request),
            (Method::Get, AttributeId::MlnxExtPortInfo) => self.mlnx_ext_port_info(request),
            (Method::Set, AttributeId::MlnxExtPortInfo) => self.set_mlnx_ext_port_info(request),
            (Method::Get, AttributeId::PKeyTable) => self.p_key_table(request),
            (Method::Set, AttributeId::PKeyTable) => self.set_p_key_table(request),
            (Method::Get, AttributeId::SlToVlTable) => self.sl_to_vl_table(request),
            (Method::Set, AttributeId::SlToVlTable) => self.set_sl_to_vl_table(request),
            (Method::Get, AttributeId::VlArbitrationTable) => self.vl_arbitration_table(request),
            (Method::Set, AttributeId::VlArbitrationTable) => self.set_vl_arbitration_table(request),
            (Method::Get, AttributeId::LinearForwardingTable) => self.linear_forwarding_table(request),
            (Method::Set, AttributeId::LinearForwardingTable) => self.set_linear_forwarding_table(request),
            (Method::Get, AttributeId::MulticastForwardingTable) => self.multicast_forwarding_table(request),
            (Method::Set, AttributeId::MulticastForwardingTable) => {
                self.set_multicast_forwarding_table(request)
            }
            (Method::Get, AttributeId::Notice) => Ok(self.notice(request.port)),
            // SMInfo is answered by an attached subnet manager, and there is none.
            (Method::Get | Method::Set, _) => Err(status::BAD_METHOD_ATTRIBUTE),
            _ => Err(status::BAD_METHOD),
        }
    }

    /// Whether a request shows the key that the port protects itself with (IBA 14.2.4). The protection lapses
    /// when its lease does, which a wrong key starts and a right one ends.
    fn check_m_key(&mut self, now: Time, smp: &Smp) -> bool {
        let at = self.end_port(smp.port);
        let m_key = SmpLayout::m_key.get(&smp.mad.0);
        let Some(end) = self.ports.get_mut(usize::from(at.0)) else { return false };
        if end.m_key_lease_end.is_some_and(|lease_end| lease_end <= now) {
            end.m_key_lease_end = None;
            end.info.m_key_protect_bits = 0;
        }
        if end.info.m_key == MKey(0) || end.info.m_key == m_key {
            end.m_key_lease_end = None;
            return true;
        }
        if smp.mad.method() == Method::Get && end.info.m_key_protect_bits < 2 {
            return true;
        }
        end.info.m_key_violations = end.info.m_key_violations.saturating_add(1);
        let lease = end.info.m_key_lease_period;
        if lease != 0 && end.m_key_lease_end.is_none() {
            end.m_key_lease_end = Some(now + Time::from_secs(u64::from(lease)));
        }
        let (method, attribute_id) = (smp.mad.method(), smp.mad.attribute_id());
        self.emit(Event::MKeyViolation { port: smp.port, method, attribute_id });
        // Whoever guesses keys does not decide how many traps the manager gets: one stands for all until it is heard.
        if !self.traps.is_pending(at, trap::BAD_M_KEY) {
            self.raise_trap(now, at, &Details::MKey(trap::BAD_M_KEY, m_key_details(smp, m_key)));
        }
        false
    }
}

/// What trap 256 says about the request.
fn m_key_details(smp: &Smp, m_key: MKey) -> MKeyDetails {
    let mut details = MKeyDetails {
        lid: smp.slid,
        method: smp.mad.method(),
        attribute_id: smp.mad.attribute_id(),
        attribute_modifier: smp.mad.attribute_modifier(),
        m_key,
        ..MKeyDetails::default()
    };
    if smp.mad.is_directed() {
        let path = DirectedSmp::return_path.get(&smp.mad.0);
        let count = DirectedSmp::hop_count.get(&smp.mad.0);
        details.dr_slid = DirectedSmp::dr_slid.get(&smp.mad.0);
        details.dr_notice = true;
        details.dr_path_truncated = usize::from(count) > details.dr_return_path.len();
        details.dr_hop_count = count;
        details.dr_return_path.iter_mut().zip(&path[1..]).for_each(|(to, from)| *to = *from);
    }
    details
}

#[cfg(test)]
mod extension_tests;
#[cfg(test)]
mod key_tests;
#[cfg(test)]
mod status_table;
#[cfg(test)]
mod tests;
