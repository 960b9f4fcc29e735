//! The partitions of the port: queue pairs and paths of those that it has left (IBA 10.9.2).
//!
//! The adapter tells of its port's P_Key table whenever a manager changes it, which programs that use verbs hear as the event of a
//! changed P_Key table. A queue pair names its key by the place in that table. When the key is gone it sends nothing more, not even
//! if the key comes back: whatever stands there then is another tenancy.

use weft_machine::Time;
use weft_wire::PKey;

use super::Stack;
use super::paths::{Paths, State};
use super::sender::{Phase, Sender, Target};

impl Stack {
    /// The port's table has changed from these keys to those of its facts.
    pub(super) fn partitions_changed(&mut self, now: Time, before: &[PKey]) {
        if before == self.facts.p_keys {
            return;
        }
        self.counts.p_key_changes += 1;
        let has = |keys: &[PKey], key: &PKey| keys.iter().any(|own| own.partition() == key.partition());
        let left: Vec<PKey> = before.iter().filter(|key| !has(&self.facts.p_keys, key)).copied().collect();
        let comes = self.facts.p_keys.iter().any(|key| !has(before, key));
        self.asks_due |= self.paths.forget_where(|key| has(&left, &key)) | (comes && self.paths.try_again());
        if left.is_empty() {
            return;
        }
        for place in self.flows.all() {
            let Some(flow) = self.flows.get_mut(place) else { continue };
            if let Some(receiver) = &mut flow.receiver
                && receiver.ends_with(&left)
            {
                self.counts.partition_ends += 1;
            }
            let Some(sender) = &mut flow.sender else { continue };
            let is_open = match &sender.target {
                Target::One(_) | Target::Peer => matches!(sender.phase, Phase::Active | Phase::Held),
                // Its datagrams go in many partitions; the adapter refuses those of one that the port has left.
                Target::Mix(_) => false,
            };
            if is_open && has(&left, &sender.address.p_key) {
                sender.end(reason(sender.address.p_key));
                self.counts.partition_ends += 1;
                self.dequeue(place);
                self.wake(now, place);
            }
        }
    }
}

impl Sender {
    /// Ends it, for a reason.
    fn end(&mut self, reason: String) {
        (self.phase, self.deadline) = (Phase::Error(reason), None);
    }
}

impl Paths {
    /// Paths that were refused may be there in a new partition. Whether there are any.
    fn try_again(&mut self) -> bool {
        let mut any = false;
        for place in self.places() {
            if let Some(path) = self.get_mut(place).filter(|path| path.state == State::Failed) {
                path.state = State::Wanted;
                any = true;
            }
        }
        any
    }
}

/// Why a queue pair has ended, for people.
pub(super) fn reason(p_key: PKey) -> String {
    format!(
        "the port has left partition {:#06x}: its P_Key is not in the port's table any more",
        p_key.partition()
    )
}
