//! Instructions of the operator to another manager, by the master: DISABLE, STANDBY or DISCOVER (IBA 14.4.1).

use weft_machine::Time;
use weft_wire::{AddressedMad, Guid, Mad, SmState, status};

use super::{Control, Election, Peer, Question, State};
use crate::{Instructed, Instruction, Options};

const fn control(instruction: Instruction) -> Control {
    match instruction {
        Instruction::Disable => Control::Disable,
        Instruction::Standby => Control::Standby,
        Instruction::Discover => Control::Discover,
    }
}

/// The state of a manager that has obeyed.
const fn leads_to(instruction: Instruction) -> SmState {
    match instruction {
        Instruction::Disable => SmState::NotActive,
        Instruction::Standby => SmState::Standby,
        Instruction::Discover => SmState::Discovering,
    }
}

/// The instruction under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    to: Guid,
    instruction: Instruction,
    question: Question,
}

/// What became of an instruction, to whom.
pub(crate) type Outcome = (Guid, Instruction, Instructed);

impl Election {
    /// Begins to tell a manager what the operator wants of it.
    ///
    /// # Errors
    /// With the outcome, when nothing is to be sent.
    pub(crate) fn instruct(
        &mut self,
        now: Time,
        to: Guid,
        instruction: Instruction,
        options: &Options,
        act_count: u32,
    ) -> Result<AddressedMad, Instructed> {
        let peer = match self.peers.iter().copied().find(|peer| peer.guid == to) {
            _ if !matches!(self.state, State::Master | State::Awaiting) => Err(Instructed::NotMaster),
            _ if self.pending.is_some() => Err(Instructed::Busy),
            None => Err(Instructed::Unknown),
            Some(peer) if !peer.is_trusted(options) => Err(Instructed::Untrusted),
            Some(peer) => Ok(peer),
        }?;
        let request = self.control(control(instruction), peer, options, act_count);
        let question = self.question(now, request, options.smps.timeout_ms, options.smps.retries);
        self.pending = Some(Pending { to, instruction, question });
        Ok(question.request)
    }

    /// Lets time pass for an instruction: it is sent again, or remains unanswered.
    pub(crate) fn expire_instruction(
        &mut self,
        now: Time,
        options: &Options,
    ) -> (Option<AddressedMad>, Option<Outcome>) {
        let Some(pending) = self.pending.take_if(|pending| pending.question.deadline <= now) else {
            return (None, None);
        };
        if let Some(question) = pending.question.again(now, options) {
            self.pending = Some(Pending { question, ..pending });
            return (Some(question.request), None);
        }
        (None, Some((pending.to, pending.instruction, Instructed::Unanswered)))
    }

    /// When the answer to an instruction is overdue.
    pub(super) fn instruction_deadline(&self) -> Option<Time> {
        self.pending.map(|pending| pending.question.deadline)
    }

    /// Takes the answer to an instruction; `None` if it is none.
    pub(crate) fn instructed(&mut self, answer: &Mad) -> Option<Outcome> {
        let id = answer.transaction_id().0 & 0xffff_ffff;
        let is_busy = answer.status() & status::BUSY != 0;
        let pending = self.pending.take_if(|pending| pending.question.id == id && !is_busy)?;
        let Pending { to, instruction, .. } = pending;
        if answer.status() != status::OK {
            return Some((to, instruction, Instructed::Refused));
        }
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.guid == to) {
            peer.state = leads_to(instruction);
        }
        Some((to, instruction, Instructed::Accepted))
    }

    /// The manager that commands this one to stand by is the one to poll, if it is known.
    pub(crate) fn follow(&mut self, master: Guid) {
        if let Some(peer) = self.peers.iter().find(|peer| peer.guid == master) {
            self.target = Some(Peer { state: SmState::Master, ..*peer });
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_mgmt::DirectedPath;
    use weft_wire::{Lid, Method, SmKey, Smp};

    use super::*;

    const TO: Guid = Guid(7);

    fn master(options: &Options) -> Election {
        let path = DirectedPath::HERE;
        let peer =
            |guid, sm_key| Peer { guid, lid: Lid(0), path, priority: 0, state: SmState::Standby, sm_key };
        let peers = vec![peer(TO, options.keys.sm_key), peer(Guid(8), SmKey(99))];
        Election { state: State::Master, peers, ..Election::default() }
    }

    fn begin(election: &mut Election, to: Guid) -> Result<AddressedMad, Instructed> {
        election.instruct(Time::ZERO, to, Instruction::Disable, &Options::default(), 0)
    }

    #[test]
    fn only_a_master_instructs_and_only_whom_it_trusts() {
        let options = Options::default();
        let mut election = master(&options);
        assert_eq!(begin(&mut election, Guid(8)), Err(Instructed::Untrusted));
        assert_eq!(begin(&mut election, Guid(9)), Err(Instructed::Unknown));
        assert!(begin(&mut election, TO).is_ok());
        assert_eq!(begin(&mut election, TO), Err(Instructed::Busy));
        for state in [State::Standby, State::Discovering, State::NotActive, State::Yielding] {
            let mut election = Election { state, ..master(&options) };
            assert_eq!(begin(&mut election, TO), Err(Instructed::NotMaster), "{state:?}");
        }
    }

    #[test]
    fn an_answer_ends_an_instruction_and_so_does_silence() {
        let options = Options::default();
        for (code, outcome, state) in [
            (status::OK, Instructed::Accepted, SmState::NotActive),
            (status::BAD_VALUE, Instructed::Refused, SmState::Standby),
        ] {
            let mut election = master(&options);
            let mut answer = begin(&mut election, TO).unwrap().mad;
            assert_eq!((answer.method(), answer.attribute_modifier()), (Method::Set, 3));
            Smp::method.set(&mut answer.0, Method::GetResp);
            weft_wire::DirectedSmp::status.set(&mut answer.0, code);
            assert_eq!(election.instructed(&answer), Some((TO, Instruction::Disable, outcome)));
            assert_eq!(election.instructed(&answer), None, "only once");
            assert_eq!(election.peers[0].state, state);
        }
        let mut election = master(&options);
        let first = begin(&mut election, TO).unwrap();
        let mut sent = 1;
        let outcome = loop {
            let now = election.next_timer().expect("a deadline").at;
            match election.expire_instruction(now, &options) {
                (Some(request), None) => assert_eq!(request, first),
                (None, Some(outcome)) => break outcome,
                other => panic!("{other:?}"),
            }
            sent += 1;
        };
        assert_eq!(outcome, (TO, Instruction::Disable, Instructed::Unanswered));
        assert_eq!((sent, election.next_timer()), (options.smps.retries + 1, None));
    }
}
