//! A last look at who is behind a port before what is meant for one machine is written to it.
//!
//! ```text
//!   a write to a virtual function's port ─▶ NodeInfo, PortInfo ─┬─ as they were found ─▶ the write
//!                                                               └─ another GUID, LID or subnet manager: nothing is written
//! ```
//!
//! Another subnet manager may have come into charge unheard, and have moved a machine to where a sweep has found somebody else. What
//! is written without a look would take the machine's LID. Between the look and the write there is still one SMP's way there and back.

use std::collections::BTreeMap;

use weft_wire::{Lid, Mad, NodeInfo, PortInfo, status};

use super::smp::{Get, SmpRequest};
use crate::knowledge::{Key, PortAt, Subnet};

/// What was read of a port.
#[derive(Debug, Default)]
struct Look {
    /// The writes that wait for it, by their places in the step's plan.
    writes: Vec<u32>,
    is_same: Option<bool>,
    info: Option<PortInfo>,
    /// How many questions are yet to be answered.
    open: u8,
}

/// What came of a look.
#[derive(Debug)]
pub(crate) enum Seen {
    /// There is more to come, or no look was under way.
    Nothing,
    /// It is as it was found: what the port says, and the writes that may go.
    Same(PortInfo, Vec<u32>),
    /// Somebody else is there, or another manager has written. The writes are not to be made.
    Other(Vec<u32>),
    /// It has not answered.
    Silent(Vec<u32>),
}

/// Looks before writes.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    is_on: bool,
    sm_lid: Lid,
    looks: BTreeMap<PortAt, Look>,
    todo: Vec<(Key, PortAt)>,
}

impl Guard {
    /// Looks are made where other managers were seen, and there are machines: whoever has a LID could lose it.
    pub(crate) fn of(subnet: &Subnet, sm_lid: Lid) -> Self {
        let is_machine = |at: PortAt| subnet.adapters.is_function(at);
        let has_lid = |info: PortInfo| info.lid.is_unicast();
        let is_on = subnet.is_contested
            && subnet.end_ports().any(|(at, port)| is_machine(at) && port.info.is_some_and(has_lid));
        Self { is_on, sm_lid, ..Self::default() }
    }

    /// Whether a port is a machine's that is to be looked at before it is written.
    pub(crate) fn guards(&self, subnet: &Subnet, at: PortAt) -> bool {
        self.is_on && subnet.adapters.is_function(at)
    }

    /// The port of a machine that a write to this port is meant for, if it is to be looked at before.
    pub(crate) fn machine(&self, subnet: &Subnet, at: PortAt) -> Option<PortAt> {
        let behind = subnet.port(at).and_then(|port| port.peer);
        [Some(at), behind].into_iter().flatten().find(|end| self.guards(subnet, *end))
    }

    /// Begins to look at a port for a write.
    pub(crate) fn begin(&mut self, at: PortAt, write: u32) {
        let look = self.looks.entry(at).or_insert_with(|| Look { open: 2, ..Look::default() });
        if look.writes.is_empty() {
            self.todo.extend([(Key::NodeInfo(Some(at)), at), (Key::PortInfo(at), at)]);
        }
        look.writes.push(write);
    }

    /// The next question, with the port that it goes to.
    pub(crate) fn next(&mut self) -> Option<(Key, PortAt, SmpRequest)> {
        let (key, at) = self.todo.pop()?;
        let request = match key {
            Key::NodeInfo(_) => SmpRequest::get(Get::NodeInfo, 0),
            _ => SmpRequest::get(Get::PortInfo, u32::from(at.port.0)),
        };
        Some((key, at, request))
    }

    /// Whether an answer belongs to a look.
    pub(crate) fn asks(&self, key: Key) -> bool {
        matches!(key, Key::NodeInfo(Some(at)) | Key::PortInfo(at) if self.looks.contains_key(&at))
    }

    /// Takes an answer, or `None` for none.
    pub(crate) fn take(&mut self, subnet: &Subnet, key: Key, answer: Option<&Mad>) -> Seen {
        let (Key::NodeInfo(Some(at)) | Key::PortInfo(at)) = key else { return Seen::Nothing };
        let Some(look) = self.looks.get_mut(&at) else { return Seen::Nothing };
        look.open -= 1;
        if let Some(answer) = answer.filter(|answer| answer.status() == status::OK) {
            match key {
                Key::NodeInfo(_) => {
                    let found = NodeInfo::decode(answer.smp_attribute());
                    look.is_same = Some(found.port_guid == subnet.end_guid(at));
                }
                _ => look.info = Some(PortInfo::decode(answer.smp_attribute())),
            }
        }
        if look.open > 0 {
            return Seen::Nothing;
        }
        let Some(Look { writes, is_same, info, .. }) = self.looks.remove(&at) else { return Seen::Nothing };
        match (is_same, info) {
            (Some(true), Some(info)) if is_as_found(subnet, at, &info, self.sm_lid) => {
                Seen::Same(info, writes)
            }
            (Some(_), Some(_)) => Seen::Other(writes),
            _ => Seen::Silent(writes),
        }
    }
}

/// Whether a port has the LID and the subnet manager that it was found with, or those that it is to have.
fn is_as_found(subnet: &Subnet, at: PortAt, now: &PortInfo, sm_lid: Lid) -> bool {
    let Some(port) = subnet.port(at) else { return false };
    let Some(found) = port.info else { return false };
    let is_own = port.lid.is_some_and(|lids| lids.min == now.lid);
    let has_lid = now.lid == found.lid || is_own;
    has_lid && (now.master_sm_lid == found.master_sm_lid || now.master_sm_lid == sm_lid)
}
