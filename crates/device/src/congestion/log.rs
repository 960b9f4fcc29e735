//! The log of a channel adapter's port: indices that came to their threshold (IBA A10.4.3.4).

use std::collections::VecDeque;

use weft_wire::{CaCongestionLog, CaCongestionLogEntry, CongestionEvent, Lid};

/// Entries of a channel adapter's log.
const ENTRIES: usize = 13;

/// What happened lately at one port.
#[derive(Clone, Debug, Default)]
pub(super) struct AdapterLog {
    /// Since the log was last sent; stays at its highest value.
    events: u16,
    /// The service levels of that.
    levels: u16,
    newest: VecDeque<CaCongestionLogEntry>,
}

impl AdapterLog {
    pub(super) fn note(&mut self, time_stamp: u32, local_lid: Lid, event: &CongestionEvent) {
        let &CongestionEvent { local_qp, remote_qp, remote_lid, service_level, service_type } = event;
        self.events = self.events.saturating_add(1);
        self.levels |= 1 << (service_level.0 & 15);
        if self.newest.len() == ENTRIES {
            self.newest.pop_back();
        }
        self.newest.push_front(CaCongestionLogEntry {
            local_qp,
            service_level,
            service_type,
            remote_qp,
            local_lid,
            remote_lid,
            time_stamp,
            ..CaCongestionLogEntry::default()
        });
    }

    /// The log as it is sent; what is counted until then is counted again from now on.
    pub(super) fn send(&mut self, current_time_stamp: u32) -> CaCongestionLog {
        let mut log = CaCongestionLog {
            log_type: 2,
            threshold_event_counter: std::mem::take(&mut self.events),
            threshold_congestion_event_map: std::mem::take(&mut self.levels),
            current_time_stamp,
            ..CaCongestionLog::default()
        };
        for (bytes, entry) in log.entries.chunks_mut(CaCongestionLogEntry::SIZE).zip(&self.newest) {
            bytes.copy_from_slice(&entry.encode());
        }
        log
    }
}
