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
    AttributeId, Details, DirectedSmp, MKey, MKeyDetails, Mad, Method, NodeDescription, PortNum, SMP_DATA,
    Smp as SmpLayout, status, trap,
};

use crate::identity::Identity;
use crate::port::Stimulus;
use crate::ports::Ports;
use crate::switch::{SlToVl, Switch};
use crate::trap::Traps;
use crate::vl15::Smp;
use crate::{Event, Statistics};

/// An attribute's 64 bytes, or the status that says what is wrong with the request.
type Answer = Result<[u8; 64], u16>;

/// What a request asks, taken from its header.
#[derive(Clone, Copy, Debug)]
struct Request<'a> {
    /// The port of arrival.
    port: PortNum,
    modifier: u32,
    m_key: MKey,
    data: &'a [u8; 64],
}

/// What becomes of an SMP.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // Nearly all are answers; boxing them would cost more than it saves.
pub(crate) enum Verdict {
    Answer(Mad),
    /// It does not bear the port's key.
    Refuse,
    /// The manager of this port has heard a trap.
    Repress(PortNum),
}

/// What follows from a Set, or from a wrong key, for the rest of the device, in this order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    Event(Event),
    /// State, lanes, tables or times of a port may have changed.
    SettingsChanged(PortNum),
    /// The P_Keys of the port at this place have changed.
    KeysChanged(PortNum),
    /// The next hello of a port is another.
    HelloChanged(PortNum),
    /// The host behind a port is to subscribe again.
    Reregister(PortNum),
    Describe(NodeDescription),
    Trap(PortNum, Details),
}

/// The agent: what it has beside the tables that it reads and writes.
#[derive(Debug, Default)]
pub(crate) struct Sma {
    /// Of the request that is being answered; empty otherwise.
    effects: Vec<Effect>,
    /// What the Set that is being answered asks of a link.
    asked_of_link: Option<(PortNum, Stimulus)>,
}

/// What the agent reads and writes.
pub(crate) struct Tables<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) ports: &'a mut Ports,
    pub(crate) switch: Option<&'a mut Switch>,
    pub(crate) sl_to_vl: &'a mut SlToVl,
    pub(crate) traps: &'a Traps,
    pub(crate) statistics: &'a mut Statistics,
}

impl Sma {
    /// Takes an SMP in, and notes what follows from it.
    pub(crate) fn handle(&mut self, now: Time, tables: Tables<'_>, smp: &Smp) -> Verdict {
        debug_assert!(self.effects.is_empty(), "effects are taken before the next request");
        Work { tables, sma: self }.handle(now, smp)
    }

    /// What follows from the request that was taken in last. The memory is given back with [`Self::reuse`].
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Keeps memory for the effects of the next request.
    pub(crate) fn reuse(&mut self, mut memory: Vec<Effect>) {
        memory.clear();
        self.effects = memory;
    }

    /// What the Set that has just been answered asks of a link. The answer may have had to leave by it.
    pub(crate) fn take_asked_of_link(&mut self) -> Option<(PortNum, Stimulus)> {
        self.asked_of_link.take()
    }
}

/// A request being answered.
struct Work<'a> {
    tables: Tables<'a>,
    sma: &'a mut Sma,
}

impl Work<'_> {
    fn handle(&mut self, now: Time, smp: &Smp) -> Verdict {
        let header = smp.mad.header();
        if !self.check_m_key(now, smp) {
            return Verdict::Refuse;
        }
        if header.method == Method::TrapRepress {
            return Verdict::Repress(self.tables.ports.end(smp.port));
        }
        let request = Request {
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
        self.tables.statistics.smps_answered += 1;
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
        Verdict::Answer(mad)
    }

    fn dispatch(&mut self, method: Method, attribute: AttributeId, request: Request<'_>) -> Answer {
        if method == Method::Set {
            self.tables.statistics.smp_sets += 1;
        }
        match (method, attribute) {
            (Method::Get, AttributeId::NodeDescription) => Ok(self.tables.identity.description.encode()),
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

    fn follow(&mut self, effect: Effect) {
        self.sma.effects.push(effect);
    }

    /// Whether a request shows the key that the port protects itself with (IBA 14.2.4). The protection lapses
    /// when its lease does, which a wrong key starts and a right one ends.
    fn check_m_key(&mut self, now: Time, smp: &Smp) -> bool {
        let at = self.tables.ports.end(smp.port);
        let m_key = SmpLayout::m_key.get(&smp.mad.0);
        let Some(end) = self.tables.ports.get_mut(usize::from(at.0)) else { return false };
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
        self.follow(Effect::Event(Event::MKeyViolation { port: smp.port, method, attribute_id }));
        // Whoever guesses keys does not decide how many traps the manager gets: one stands for all until it is heard.
        if !self.tables.traps.is_pending(at, trap::BAD_M_KEY) {
            let details = Details::MKey(trap::BAD_M_KEY, m_key_details(smp, m_key));
            self.follow(Effect::Trap(at, details));
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
