//! The registrations of one layer.

use std::collections::BTreeMap;

use weft_wire::{Mad, MethodMask, MgmtClass, QpNum, Registration};

use super::{AgentId, AgentRequest, RegisterError};

/// A registration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agent {
    pub(super) asked: AgentRequest,
    /// What its requests have in the upper half of the transaction id.
    pub(super) number: u16,
    /// The program's question that the device has yet to answer.
    pub(super) pending: Option<u64>,
}

impl Agent {
    /// What is delivered to it unasked.
    pub(super) fn registration(&self) -> Registration {
        let AgentRequest { class, class_version, methods, oui, .. } = self.asked;
        Registration { class, class_version, methods, oui }
    }

    /// Whether the layer takes its RMPP messages apart and puts them together.
    pub(super) fn has_rmpp(&self) -> bool {
        self.asked.rmpp_version != 0
    }
}

/// All registrations.
#[derive(Debug, Default)]
pub(super) struct Agents {
    by_id: BTreeMap<AgentId, Agent>,
    /// Given last; the next is another for as long as possible, so that late answers reach no one.
    last_number: u16,
}

/// What is wrong with a registration whoever else there is; the vendor of a class that has none is left out.
fn checked(mut asked: AgentRequest) -> Result<AgentRequest, RegisterError> {
    if asked.qp != QpNum::SMI && asked.qp != QpNum::GSI {
        return Err(RegisterError::BadQueuePair);
    }
    if asked.rmpp_version > 1 {
        return Err(RegisterError::BadRmppVersion);
    }
    if !asked.class.has_oui() {
        asked.oui = weft_wire::Oui(0);
    }
    if asked.class.code() == 0 {
        return Ok(AgentRequest { methods: MethodMask::default(), ..asked });
    }
    let is_smp = matches!(asked.class, MgmtClass::SubnLid | MgmtClass::SubnDirected);
    if asked.class.code() >= 0x50 && !is_smp {
        Err(RegisterError::BadClass)
    } else if asked.class_version > 7 {
        Err(RegisterError::BadVersion)
    } else if asked.class.has_oui() && asked.oui.0 == 0 {
        Err(RegisterError::NoOui)
    } else if asked.rmpp_version != 0 && !asked.class.has_rmpp() {
        Err(RegisterError::BadRmppVersion)
    } else if is_smp != (asked.qp == QpNum::SMI) {
        Err(RegisterError::BadQueuePair)
    } else {
        Ok(asked)
    }
}

impl Agents {
    /// Gives a registration the lowest free number. It is pending until [`Agents::settle`] says otherwise.
    pub(super) fn add(
        &mut self,
        asked: AgentRequest,
        request: u64,
        max: u32,
    ) -> Result<(AgentId, Registration), RegisterError> {
        let asked = checked(asked)?;
        let free = (0..max.min(u32::from(u16::MAX))).map(AgentId).find(|id| !self.by_id.contains_key(id));
        let id = free.ok_or(RegisterError::TooMany)?;
        let agent = Agent { asked, number: self.free_number(), pending: Some(request) };
        self.by_id.insert(id, agent);
        Ok((id, agent.registration()))
    }

    /// There are fewer registrations than numbers, so one is free.
    fn free_number(&mut self) -> u16 {
        loop {
            self.last_number = self.last_number.wrapping_add(1).max(1);
            if self.by_id.values().all(|agent| agent.number != self.last_number) {
                return self.last_number;
            }
        }
    }

    /// The question that a pending registration answers; it stands from now on.
    pub(super) fn settle(&mut self, id: AgentId) -> Option<u64> {
        self.by_id.get_mut(&id)?.pending.take()
    }

    pub(super) fn remove(&mut self, id: AgentId) -> Option<Agent> {
        self.by_id.remove(&id)
    }

    /// A registration that stands.
    pub(super) fn get(&self, id: AgentId) -> Option<&Agent> {
        self.by_id.get(&id).filter(|agent| agent.pending.is_none())
    }

    /// Whose answer this is, by its transaction id.
    pub(super) fn asker(&self, mad: &Mad) -> Option<(AgentId, &Agent)> {
        let upper = mad.transaction_id().0 >> 32;
        self.standing().find(|(_, agent)| u64::from(agent.number) == upper)
    }

    /// Who registered for what no one asked for.
    pub(super) fn covering(&self, mad: &Mad) -> Option<(AgentId, &Agent)> {
        self.standing().find(|(_, agent)| agent.registration().covers(mad))
    }

    fn standing(&self) -> impl Iterator<Item = (AgentId, &Agent)> {
        self.by_id.iter().filter(|(_, agent)| agent.pending.is_none()).map(|(&id, agent)| (id, agent))
    }
}
