//! Beginning and ending faults.

use std::io;

use weft_control::agent::PortEnd;
use weft_control::event::AgentEvent;
use weft_control::fault::{Damage, FaultId, LastingFault};
use weft_control::{Answer, Error, ErrorCode, HexGuid, Utc};
use weft_node::{PortId, Request};
use weft_process::utc_now;

use super::Core;
use crate::asked::Asker;

/// Faults of one agent at the same time.
const FAULTS_MAX: usize = 4096;

impl Core {
    /// Begins again what lasted over the agent's end, before its links come up.
    pub(crate) fn resume_faults(&mut self) {
        self.end_expired();
        let kept: Vec<LastingFault> = self.faults.active.values().cloned().collect();
        for fault in kept {
            match self.place_of(fault.damage) {
                Ok(at) => self.begin(&fault, at),
                Err(error) => {
                    tracing::warn!(fault = %fault.id, %error, "a fault of the agent's life before is forgotten");
                    self.faults.active.remove(&(fault.id.clone(), fault.damage));
                }
            }
        }
    }

    /// All that last.
    pub(crate) fn list_faults(&self) -> Vec<LastingFault> {
        self.faults.active.values().cloned().collect()
    }

    /// Breaks something.
    pub(crate) fn set_fault(
        &mut self,
        id: FaultId,
        damage: Damage,
        for_ms: Option<u64>,
    ) -> Result<Answer, Error> {
        let at = self.place_of(damage)?;
        let key = (id.clone(), damage);
        if self.faults.active.len() >= FAULTS_MAX && !self.faults.active.contains_key(&key) {
            let message = format!("{FAULTS_MAX} faults last here already");
            return Err(Error::new(ErrorCode::TooMany, message).hint("clear some of them first"));
        }
        let since = utc_now();
        let until =
            for_ms.map(|ms| Utc::from_nanos(since.as_nanos().saturating_add(ms.saturating_mul(1_000_000))));
        let fault = LastingFault { id, damage, since, until };
        let before = self.faults.active.insert(key.clone(), fault.clone());
        // What would not outlast a restart is no such fault.
        let kept = self.faults.keep();
        let kept =
            kept.map_err(|error| Error::new(ErrorCode::Failed, format!("the fault cannot be kept: {error}")));
        if let Err(error) = kept.and_then(|()| self.present_identity()) {
            match before {
                Some(before) => drop(self.faults.active.insert(key, before)),
                None => drop(self.faults.active.remove(&key)),
            }
            let _ = self.faults.keep();
            return Err(error);
        }
        self.begin(&fault, at);
        Ok(Answer::Done)
    }

    /// Ends a fault.
    pub(crate) fn clear_fault(&mut self, id: &FaultId) -> Result<Answer, Error> {
        match self.end_faults(|fault| fault.id == *id, false) {
            Ok(0) => Err(Error::new(ErrorCode::NotFound, format!("there is no fault {id} here"))),
            Ok(_) => Ok(Answer::Done),
            Err(error) => {
                let message =
                    format!("the fault has ended, and comes back when the agent is restarted: {error}");
                Err(Error::new(ErrorCode::Failed, message))
            }
        }
    }

    /// Ends all that is wrong with the cable in a port: it is about to be taken out.
    pub(crate) fn end_faults_of_cable(&mut self, end: PortEnd) {
        let is_its =
            |fault: &LastingFault| !matches!(fault.damage, Damage::Frozen(_)) && fault.damage.end() == end;
        if let Err(error) = self.end_faults(is_its, false) {
            tracing::warn!(%error, "faults of a cable that was taken out come back when the agent is restarted");
        }
    }

    /// Ends those whose time is over.
    pub(crate) fn end_expired(&mut self) {
        let now = utc_now();
        let is_over = |fault: &LastingFault| fault.until.is_some_and(|until| until <= now);
        if let Err(error) = self.end_faults(is_over, true) {
            tracing::warn!(%error, "what has ended is ended again when the agent is restarted");
        }
    }

    /// Ends faults, and keeps the others for the agent's next life; says how many ended.
    fn end_faults(&mut self, which: impl Fn(&LastingFault) -> bool, expired: bool) -> io::Result<usize> {
        let ended: Vec<LastingFault> =
            self.faults.active.extract_if(.., |_, fault| which(fault)).map(|(_, fault)| fault).collect();
        ended.iter().for_each(|fault| self.mend(fault, expired));
        if !ended.is_empty() {
            self.faults.keep()?;
        }
        Ok(ended.len())
    }

    fn begin(&mut self, fault: &LastingFault, at: PortId) {
        self.set_damage(fault.damage, at, true);
        if let Some((guid, node)) = self.name_of(fault.damage) {
            let LastingFault { id, damage, until, .. } = fault.clone();
            self.recorder.tell(AgentEvent::FaultSet { id, guid, node, damage, until });
        }
        self.signals.faults.notify_one();
    }

    /// Ends what a fault did, unless another one does the same.
    fn mend(&mut self, fault: &LastingFault, expired: bool) {
        let damage = fault.damage;
        if let (false, Ok(at)) = (self.faults.holds(damage), self.place_of(damage)) {
            self.set_damage(damage, at, false);
        }
        if let Some((guid, node)) = self.name_of(damage) {
            let id = fault.id.clone();
            self.recorder.tell(AgentEvent::FaultCleared { id, guid, node, damage, expired });
        }
    }

    /// Does damage, or makes it good.
    fn set_damage(&mut self, damage: Damage, at: PortId, lasts: bool) {
        let request = match damage {
            Damage::Unplugged(_) | Damage::Parted(_) => Request::Plug { at, plugged: !lasts },
            Damage::Frozen(_) => Request::Freeze { device: at.device, frozen: lasts },
            Damage::BadIdentity { .. } => return self.present_or_warn(),
            Damage::Impaired { how, seed, .. } if lasts => Request::Impair { at, how, seed },
            Damage::Impaired { how, seed, .. } => Request::Mend { at, how, seed },
        };
        self.ask(Asker::Agent, request);
    }

    /// Has peers look at the identity that the agent presents now, if that is another one.
    fn present_identity(&mut self) -> Result<(), Error> {
        if self.faults.present()?
            && let Some(links) = &self.links
        {
            links.prove_again();
        }
        Ok(())
    }

    fn present_or_warn(&mut self) {
        if let Err(error) = self.present_identity() {
            tracing::warn!(%error, "the agent proves itself as before");
        }
    }

    /// The port of a fault, which must have a cable; of a fault of a device its port 0.
    fn place_of(&self, damage: Damage) -> Result<PortId, Error> {
        let end = damage.end();
        if let Damage::Frozen(_) | Damage::BadIdentity { .. } = damage {
            let unknown = || Error::new(ErrorCode::NotFound, format!("no node {} here", end.node));
            let device = self.names.find(end.node.0).ok_or_else(unknown)?;
            return Ok(PortId::new(device, weft_wire::PortNum::ZERO));
        }
        let at = self.port_of(end)?;
        let no_cable = || Error::new(ErrorCode::NotFound, format!("no cable at {end}"));
        self.wiring.at(at).map(|_| at).ok_or_else(no_cable)
    }

    fn name_of(&self, damage: Damage) -> Option<(HexGuid, String)> {
        Some(self.names.of(self.names.find(damage.end().node.0)?)?.who.named())
    }
}
