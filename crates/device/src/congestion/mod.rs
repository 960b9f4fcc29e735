//! The congestion control agent: settings of switches and channel adapters (IBA annex A10.4).
//!
//! A switch's settings become thresholds of its ports ([`crate::data`]); a channel adapter's go to
//! its host, which answers the notifications. A Set without the key is dropped and counted; a Get
//! needs no key, and does not see one that is protected.

mod key;
mod log;
#[cfg(test)]
mod tests;

use weft_machine::Time;
use weft_wire::{
    AttributeId, CONGESTION_CLASS_VERSION, CONGESTION_DATA, CONGESTION_LOG_DATA, CaCongestionEntry,
    CaCongestionLog, CaCongestionSetting, ClassPortInfo, CongestionControlTable, CongestionEvent,
    CongestionInfo, CongestionKeyInfo, CongestionLevel, CongestionMad, CongestionSettings,
    CongestionTimeStamp, ENTRIES_OF_A_BLOCK, Guid, Lid, Mad, Method, PORTS_OF_A_BLOCK, PortNum,
    SwitchCongestionLog, SwitchCongestionSetting, SwitchPortCongestion, SwitchPortCongestionSetting,
    congestion_attribute as cc, status, switch_control,
};

use crate::data::DataPath;
use crate::marking::MarkingSettings;
use key::KeyState;
use log::AdapterLog;

/// Blocks of 64 entries that a channel adapter's table can have.
const TABLE_BLOCKS: u8 = 64;

/// All settings of a device.
#[derive(Debug)]
pub(crate) struct Congestion {
    /// By end port; a switch has the first only.
    keys: Vec<KeyState>,
    /// A switch's.
    pub(crate) marking: MarkingSettings,
    /// By port of a channel adapter.
    adapters: Vec<Adapter>,
}

/// The settings of one port of a channel adapter.
#[derive(Clone, Debug, Default)]
struct Adapter {
    port_control: u16,
    /// The service levels that were ever set.
    control_map: u16,
    entries: [CaCongestionEntry; 16],
    limit: u16,
    table: Vec<u16>,
    log: AdapterLog,
}

impl Adapter {
    fn setting(&self) -> CaCongestionSetting {
        let &Self { port_control, control_map, entries, .. } = self;
        CaCongestionSetting { port_control, control_map, entries }
    }

    /// The host's settings: none while no service level takes part, or no delay is more than none.
    fn settings(&self) -> Option<CongestionSettings> {
        let takes_part = |entry: &CaCongestionEntry| entry.ccti_increase > 0 || entry.ccti_min > 0;
        let on = self.entries.iter().enumerate().filter(|(_, entry)| takes_part(entry));
        let control_map = on.fold(0, |map, (sl, _)| map | 1 << sl);
        if control_map == 0 || self.limit == 0 {
            return None;
        }
        let level = |entry: CaCongestionEntry| CongestionLevel {
            increase: entry.ccti_increase,
            timer: entry.ccti_timer,
            trigger_threshold: entry.trigger_threshold,
            minimum: entry.ccti_min,
        };
        let mut table = self.table.clone();
        table.resize(usize::from(self.limit) + 1, 0);
        let by_service_level = self.port_control & 1 != 0;
        Some(CongestionSettings { by_service_level, control_map, levels: self.entries.map(level), table })
    }
}

impl Congestion {
    /// `ports` counts a switch's port 0 and the place of an adapter's port that there is not.
    pub(crate) fn new(is_switch: bool, ports: usize) -> Self {
        Self {
            keys: vec![KeyState::default(); if is_switch { 1 } else { ports }],
            marking: MarkingSettings::default(),
            adapters: if is_switch { Vec::new() } else { vec![Adapter::default(); ports] },
        }
    }

    /// How the host behind a port is to answer notifications.
    pub(crate) fn settings(&self, port: PortNum) -> Option<CongestionSettings> {
        self.adapters.get(usize::from(port.0))?.settings()
    }
}

/// What the agent works on beside its settings.
pub(crate) struct Lanes<'a> {
    pub(crate) data: &'a mut DataPath,
    /// How many ports there are, port 0 included.
    pub(crate) ports: usize,
    pub(crate) is_switch: bool,
    /// The node's GUID, by which switches mark different packets.
    pub(crate) guid: Guid,
}

/// What becomes of a request.
pub(crate) struct Verdict {
    /// `None`: the key is wrong.
    pub(crate) answer: Option<Mad>,
    /// The host behind the port gets other settings.
    pub(crate) tells_host: bool,
}

impl Congestion {
    /// Takes in a request of class CongestionControl that came at end port `port`. `answers` is the method that it is
    /// answered with.
    pub(crate) fn handle(
        &mut self,
        now: Time,
        lanes: Lanes<'_>,
        port: PortNum,
        request: &Mad,
        answers: Method,
    ) -> Verdict {
        let mut work = Work { agent: self, lanes, tells_host: false };
        let answer = work.answer(now, port, request, answers);
        Verdict { answer, tells_host: work.tells_host }
    }

    /// The host behind a port tells of an index that came to its threshold. `lid` is the port's.
    pub(crate) fn log(&mut self, time_stamp: u32, port: PortNum, lid: Lid, event: &CongestionEvent) {
        if let Some(adapter) = self.adapters.get_mut(usize::from(port.0)) {
            adapter.log.note(time_stamp, lid, event);
        }
    }
}

/// A request being answered.
struct Work<'a> {
    agent: &'a mut Congestion,
    lanes: Lanes<'a>,
    tells_host: bool,
}

impl Work<'_> {
    fn answer(&mut self, now: Time, port: PortNum, request: &Mad, answers: Method) -> Option<Mad> {
        let header = request.header();
        let mut answer = *request;
        let result = if header.base_version != 1 || header.class_version != CONGESTION_CLASS_VERSION {
            Err(status::BAD_VERSION)
        } else if !matches!(header.method, Method::Get | Method::Set) {
            Err(status::BAD_METHOD)
        } else {
            let shown = CongestionMad::cc_key.get(&request.0);
            let key = self.agent.keys.get_mut(usize::from(port.0))?;
            if !key.lets_in(now, shown, header.method == Method::Set) {
                return None;
            }
            self.attribute(now, port, shown, &mut answer)
        };
        CongestionMad::method.set(&mut answer.0, answers);
        CongestionMad::status.set(&mut answer.0, result.err().unwrap_or(status::OK));
        Some(answer)
    }

    fn attribute(&mut self, now: Time, port: PortNum, shown: u64, mad: &mut Mad) -> Result<(), u16> {
        let header = mad.header();
        let (set, block) = (header.method == Method::Set, header.attribute_modifier as usize);
        let data = &mut mad.0[CONGESTION_DATA];
        match (header.attribute_id, self.lanes.is_switch) {
            (AttributeId::ClassPortInfo, _) if !set => put(data, &class_port_info().encode()),
            (cc::CONGESTION_INFO, is_switch) if !set => {
                let control_table_cap = if is_switch { 0 } else { TABLE_BLOCKS };
                put(data, &CongestionInfo { control_table_cap, ..CongestionInfo::default() }.encode());
            }
            (cc::CONGESTION_KEY_INFO, _) => {
                let asked = data.first_chunk().map(CongestionKeyInfo::decode).filter(|_| set);
                let key = self.agent.keys.get_mut(usize::from(port.0)).ok_or(status::BAD_VALUE)?;
                put(data, &key.info(shown, asked).encode());
            }
            (cc::TIME_STAMP, _) if !set => {
                put(data, &CongestionTimeStamp { time_stamp: self.lanes.data.time_stamp(now) }.encode());
            }
            (cc::CONGESTION_LOG, _) if !set => {
                put(&mut mad.0[CONGESTION_LOG_DATA], &self.log(now, port));
            }
            (cc::SWITCH_CONGESTION_SETTING, true) => self.switch_setting(set, data),
            (cc::SWITCH_PORT_CONGESTION_SETTING, true) => return self.port_setting(set, block, data),
            (cc::CA_CONGESTION_SETTING, false) => self.adapter_setting(port, set, data),
            (cc::CONGESTION_CONTROL_TABLE, false) => return self.adapter_table(port, set, block, data),
            _ => return Err(status::BAD_METHOD_ATTRIBUTE),
        }
        Ok(())
    }

    /// The log of the device, or of the port, as it is sent.
    fn log(&mut self, now: Time, port: PortNum) -> [u8; SwitchCongestionLog::SIZE] {
        let (time, place) = (self.lanes.data.time_stamp(now), usize::from(port.0));
        let congestion_flags = u8::from(self.agent.keys.get(place).is_some_and(KeyState::lease_runs));
        match self.agent.adapters.get_mut(place) {
            Some(adapter) => CaCongestionLog { congestion_flags, ..adapter.log.send(time) }.encode(),
            None => SwitchCongestionLog { congestion_flags, ..self.lanes.data.congestion_log(time) }.encode(),
        }
    }

    fn switch_setting(&mut self, set: bool, data: &mut [u8]) {
        let setting = &mut self.agent.marking.switch;
        if let Some(asked) = data.first_chunk().map(SwitchCongestionSetting::decode).filter(|_| set) {
            let changes = |bit: u32| asked.control_map & bit != 0;
            setting.control_map |= asked.control_map & 0x1f;
            if changes(switch_control::VICTIM_MASK) {
                setting.victim_mask = asked.victim_mask;
            }
            if changes(switch_control::CREDIT_MASK) {
                setting.credit_mask = asked.credit_mask;
            }
            if changes(switch_control::THRESHOLD) {
                (setting.threshold, setting.packet_size) = (asked.threshold, asked.packet_size);
            }
            if changes(switch_control::CREDIT_STARVATION) {
                setting.cs_threshold = asked.cs_threshold;
                setting.cs_return_delay = asked.cs_return_delay;
            }
            if changes(switch_control::MARKING_RATE) {
                setting.marking_rate = asked.marking_rate;
            }
        }
        put(data, &setting.encode());
        if set {
            self.lanes.data.marking_changed(&self.agent.marking, self.lanes.guid.0);
        }
    }

    fn port_setting(&mut self, set: bool, block: usize, data: &mut [u8]) -> Result<(), u16> {
        let (count, first) = (self.lanes.ports, block.saturating_mul(PORTS_OF_A_BLOCK));
        if first >= count {
            return Err(status::BAD_VALUE);
        }
        let settings = &mut self.agent.marking.ports;
        settings.resize(count, SwitchPortCongestion::default());
        let there = &mut settings[first..count.min(first + PORTS_OF_A_BLOCK)];
        if let Some(asked) = data.first_chunk().map(SwitchPortCongestionSetting::decode).filter(|_| set) {
            there.copy_from_slice(&asked.ports[..there.len()]);
        }
        let mut answer = SwitchPortCongestionSetting::default();
        answer.ports[..there.len()].copy_from_slice(there);
        put(data, &answer.encode());
        if set {
            self.lanes.data.marking_changed(&self.agent.marking, self.lanes.guid.0);
        }
        Ok(())
    }

    fn adapter_setting(&mut self, port: PortNum, set: bool, data: &mut [u8]) {
        let Some(adapter) = self.agent.adapters.get_mut(usize::from(port.0)) else { return };
        if let Some(asked) = data.first_chunk().map(CaCongestionSetting::decode).filter(|_| set) {
            adapter.port_control = asked.port_control & 1;
            adapter.control_map |= asked.control_map;
            for (sl, entry) in adapter.entries.iter_mut().enumerate() {
                if asked.control_map >> sl & 1 != 0 {
                    *entry = asked.entries[sl];
                }
            }
        }
        put(data, &adapter.setting().encode());
        if set {
            self.tells_host = true;
        }
    }

    fn adapter_table(&mut self, port: PortNum, set: bool, block: usize, data: &mut [u8]) -> Result<(), u16> {
        if block >= usize::from(TABLE_BLOCKS) {
            return Err(status::BAD_VALUE);
        }
        let adapter = self.agent.adapters.get_mut(usize::from(port.0)).ok_or(status::BAD_VALUE)?;
        let entries = block * ENTRIES_OF_A_BLOCK..(block + 1) * ENTRIES_OF_A_BLOCK;
        if let Some(asked) = data.first_chunk().map(CongestionControlTable::decode).filter(|_| set) {
            if usize::from(asked.ccti_limit) >= usize::from(TABLE_BLOCKS) * ENTRIES_OF_A_BLOCK {
                return Err(status::BAD_VALUE);
            }
            adapter.limit = asked.ccti_limit;
            adapter.table.resize(adapter.table.len().max(entries.end), 0);
            adapter.table[entries.clone()].copy_from_slice(&asked.entries);
        }
        let mut answer = CongestionControlTable { ccti_limit: adapter.limit, ..Default::default() };
        if let Some(held) = adapter.table.get(entries) {
            answer.entries.copy_from_slice(held);
        }
        put(data, &answer.encode());
        if set {
            self.tells_host = true;
        }
        Ok(())
    }
}

fn put(data: &mut [u8], attribute: &[u8]) {
    data.fill(0);
    data[..attribute.len()].copy_from_slice(attribute);
}

fn class_port_info() -> ClassPortInfo {
    ClassPortInfo {
        base_version: 1,
        class_version: CONGESTION_CLASS_VERSION,
        resp_time_value: 16,
        ..ClassPortInfo::default()
    }
}
