//! Writes the settings of congestion control into switches and channel adapters (IBA annex A10), in every heavy sweep
//! where it is on: what a node holds is read by GMPs, and what differs is written. Nodes that have no such agent are left
//! alone. Where it is off, a manager that finds a configured fabric reads what nodes hold once, and says who still holds
//! something.

use std::collections::VecDeque;

use weft_mgmt::congestion;
use weft_wire::{
    AddressedMad, AttributeId, CONGESTION_DATA, CaCongestionEntry, CaCongestionSetting,
    CongestionControlTable, ENTRIES_OF_A_BLOCK, Guid, Lid, Mad, Method, PortNum, PortState, ServiceLevel,
    SwitchCongestionSetting, congestion_attribute as cc, status, switch_control,
};

use crate::knowledge::{FoundNode, Key, PortAt, Subnet};
use crate::requests::{Ask, Step};
use crate::{CongestionOptions, Event, Options};

/// An attribute as it is to be.
#[derive(Clone, Debug)]
struct Wish {
    at: PortAt,
    guid: Guid,
    attribute: AttributeId,
    modifier: u32,
    value: Vec<u8>,
    /// It differed, and has been written.
    written: bool,
}

/// Settings being read and written.
#[derive(Debug, Default)]
pub(crate) struct Regulate {
    pub(crate) subnet: Subnet,
    key: u64,
    wishes: Vec<Wish>,
    /// How many have been asked for.
    asked: usize,
    /// Those that differ, still to be written.
    differing: VecDeque<usize>,
    /// Nothing is written: how many switches and ports of hosts hold something is counted.
    left: Option<(u32, u32)>,
    pub(crate) refused: u32,
    pub(crate) unanswered: u32,
    pub(crate) events: Vec<Event>,
}

impl Regulate {
    pub(crate) fn new(subnet: Subnet, options: &Options) -> Self {
        let options = &options.congestion.settings;
        let mut wishes = Vec::new();
        let ready = |at: PortAt| -> bool {
            let active = subnet.port(at).is_some_and(|port| port.state() == PortState::Active);
            (active || at.port == PortNum::ZERO) && address(&subnet, at).is_some()
        };
        for (at, _) in subnet.end_ports().filter(|(at, _)| ready(*at)) {
            let guid = subnet.end_guid(at);
            let mut wish = |attribute, modifier, value| {
                wishes.push(Wish { at, guid, attribute, modifier, value, written: false });
            };
            if subnet.node(at.node).is_some_and(FoundNode::is_switch) {
                let setting = switch_setting(&subnet, at.node, options);
                wish(cc::SWITCH_CONGESTION_SETTING, 0, setting.encode().to_vec());
                continue;
            }
            for (modifier, block) in (0..).zip(table(&options.cct)) {
                wish(cc::CONGESTION_CONTROL_TABLE, modifier, block.encode().to_vec());
            }
            wish(cc::CA_CONGESTION_SETTING, 0, adapter_setting(options).encode().to_vec());
        }
        Self { key: options.key, subnet, wishes, ..Self::default() }
    }

    /// Reads what is left of congestion control where it is off.
    pub(crate) fn look(subnet: Subnet, options: &Options) -> Self {
        let mut regulate = Self::new(subnet, options);
        regulate.wishes.retain(|wish| wish.attribute != cc::CONGESTION_CONTROL_TABLE);
        Self { left: Some((0, 0)), ..regulate }
    }

    /// Counts a node that goes on marking packets, or slowing down.
    fn count_left(&mut self, attribute: AttributeId, held: &Mad) {
        let (Some((switches, hosts)), data) = (&mut self.left, &held.0[CONGESTION_DATA]) else { return };
        if attribute == cc::SWITCH_CONGESTION_SETTING {
            let setting = data.first_chunk().map(SwitchCongestionSetting::decode);
            *switches += u32::from(setting.is_some_and(|setting| setting.threshold > 0));
        } else {
            let setting = data.first_chunk().map(CaCongestionSetting::decode);
            let entries = setting.map(|setting| setting.entries).into_iter().flatten();
            let is_on = |entry: CaCongestionEntry| entry.ccti_increase > 0 || entry.ccti_min > 0;
            *hosts += u32::from(entries.into_iter().any(is_on));
        }
    }

    /// What is to be said of it at the end.
    pub(crate) fn said(&self) -> Option<Event> {
        let (switches, hosts) = self.left.filter(|left| *left != (0, 0))?;
        Some(Event::CongestionLeft { switches, hosts })
    }

    fn request(&self, at: usize, method: Method) -> Option<(Key, AddressedMad)> {
        let wish = self.wishes.get(at)?;
        let (lid, sl) = address(&self.subnet, wish.at)?;
        let value = if method == Method::Set { wish.value.as_slice() } else { &[] };
        let mad = congestion(lid, sl, self.key, method, wish.attribute, wish.modifier, value);
        Some((Key::Write(at as u32), mad))
    }
}

/// The LID of an end port and the service level to it.
fn address(subnet: &Subnet, at: PortAt) -> Option<(Lid, ServiceLevel)> {
    let port = subnet.port(at)?;
    let (lid, info) = (port.lid?.min, port.info?);
    (info.lid == lid).then_some((lid, info.master_sm_sl))
}

fn switch_setting(subnet: &Subnet, node: u32, options: &CongestionOptions) -> SwitchCongestionSetting {
    let to_hosts = || {
        let mut mask = [0; 32];
        let to_host = |peer: PortAt| subnet.node(peer.node).is_some_and(|peer| !peer.is_switch());
        let ports = subnet.node(node).map(|node| node.ports.as_slice()).unwrap_or_default();
        let ports = (0u8..=u8::MAX).zip(ports).filter(|(_, port)| port.peer.is_some_and(to_host));
        ports.for_each(|(port, _)| mask[31 - usize::from(port / 8)] |= 1 << (port % 8));
        mask
    };
    SwitchCongestionSetting {
        control_map: switch_control::VICTIM_MASK | switch_control::THRESHOLD | switch_control::MARKING_RATE,
        victim_mask: options.sw_cong_setting_victim_mask.unwrap_or_else(to_hosts),
        threshold: options.sw_cong_setting_threshold.min(15),
        packet_size: options.sw_cong_setting_packet_size,
        marking_rate: options.sw_cong_setting_marking_rate,
        ..SwitchCongestionSetting::default()
    }
}

fn adapter_setting(options: &CongestionOptions) -> CaCongestionSetting {
    let entry = CaCongestionEntry {
        ccti_timer: options.ca_cong_setting_ccti_timer,
        ccti_increase: options.ca_cong_setting_ccti_increase,
        trigger_threshold: options.ca_cong_setting_trigger_threshold,
        ccti_min: options.ca_cong_setting_ccti_min,
    };
    let (port_control, control_map) =
        (options.ca_cong_setting_port_control, options.ca_cong_setting_control_map);
    CaCongestionSetting { port_control, control_map, entries: [entry; 16] }
}

/// The blocks of the table; zeros follow its end.
fn table(cct: &[u16]) -> impl Iterator<Item = CongestionControlTable> {
    let cct = &cct[..cct.len().min(4096)];
    cct.chunks(ENTRIES_OF_A_BLOCK).map(|entries| {
        let ccti_limit = cct.len().saturating_sub(1) as u16;
        let mut block = CongestionControlTable { ccti_limit, ..CongestionControlTable::default() };
        block.entries[..entries.len()].copy_from_slice(entries);
        block
    })
}

/// Whether a node holds what it should, as far as this manager sets it.
fn holds(wish: &Wish, held: &Mad) -> bool {
    let (wanted, held) = (wish.value.as_slice(), &held.0[CONGESTION_DATA]);
    match wish.attribute {
        cc::SWITCH_CONGESTION_SETTING => {
            let both = wanted.first_chunk().zip(held.first_chunk());
            let decode = SwitchCongestionSetting::decode;
            both.is_some_and(|(wanted, held)| {
                let (wanted, held) = (decode(wanted), decode(held));
                let part = |of: SwitchCongestionSetting| {
                    (of.victim_mask, of.threshold, of.packet_size, of.marking_rate)
                };
                part(wanted) == part(held)
            })
        }
        cc::CA_CONGESTION_SETTING => {
            let both = wanted.first_chunk().zip(held.first_chunk());
            let decode = CaCongestionSetting::decode;
            both.is_some_and(|(wanted, held)| {
                let (wanted, held) = (decode(wanted), decode(held));
                let same = |sl: usize| wanted.entries[sl] == held.entries[sl];
                let set = (0..16).filter(|sl| wanted.control_map >> sl & 1 != 0);
                wanted.port_control & 1 == held.port_control & 1 && set.into_iter().all(same)
            })
        }
        _ => held.starts_with(wanted),
    }
}

impl Step for Regulate {
    fn next(&mut self) -> Option<Ask> {
        None
    }

    fn next_gmp(&mut self) -> Option<(Key, AddressedMad)> {
        if let Some(at) = self.differing.pop_front() {
            return self.request(at, Method::Set);
        }
        let at = self.asked;
        self.asked += 1;
        self.request(at, Method::Get)
    }

    fn answered(&mut self, key: Key, answer: &Mad) {
        let Key::Write(at) = key else { return };
        let Some(wish) = self.wishes.get_mut(at as usize) else { return };
        let fine = answer.status() == status::OK;
        if self.left.is_some() {
            if fine {
                let attribute = wish.attribute;
                self.count_left(attribute, answer);
            }
            return;
        }
        // A Set is answered with what is held then. Who refuses to be read has no such agent.
        if fine && holds(wish, answer) || !fine && !wish.written {
            return;
        }
        if wish.written {
            self.refused += 1;
        } else {
            wish.written = true;
            self.differing.push_back(at as usize);
        }
    }

    fn failed(&mut self, key: Key) {
        if self.left.is_some() {
            // Who does not know the class need not answer, and the others are not likely to know it either.
            self.asked = self.wishes.len();
            return;
        }
        self.unanswered += 1;
        let Key::Write(at) = key else { return };
        let Some(wish) = self.wishes.get(at as usize) else { return };
        let (guid, attribute, modifier) = (wish.guid, wish.attribute, wish.modifier);
        self.events.push(Event::unanswered(guid, attribute, modifier));
    }
}
