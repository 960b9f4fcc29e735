//! Traps: sent to the subnet manager, and again, until it says that it has heard (IBA 14.3.1, 13.4.9).

use weft_machine::Time;
use weft_wire::{
    AttributeId, Details, Lid, Mad, MadHeader, Method, MgmtClass, NodeType, Notice, PortInfo, PortNum,
    TransactionId, TrapNumber,
};

use crate::moment::NEVER;
use crate::{Device, DeviceOptions, Event};

/// A trap that the subnet manager has not answered yet.
#[derive(Clone, Debug)]
pub(crate) struct PendingTrap {
    /// The port whose subnet manager is notified; 0 on a switch.
    port: PortNum,
    notice: Notice,
    transaction_id: TransactionId,
    attempts: u16,
    due: Time,
}

/// At most one trap of each number is pending per port, which bounds the list.
#[derive(Debug)]
pub(crate) struct Traps {
    pending: Vec<PendingTrap>,
    raised: u64,
    /// From one sending of a trap to the next.
    interval: Time,
    /// How often a trap is sent; 0: there are none.
    limit: u16,
}

/// What is to be done with the trap at one place of the list.
enum Due {
    Send(PendingTrap),
    GiveUp(TrapNumber),
    Wait,
}

impl Traps {
    pub(crate) fn new(options: &DeviceOptions) -> Self {
        let (interval, limit) = (options.trap_interval, options.trap_limit);
        Self { pending: Vec::new(), raised: 0, interval, limit }
    }

    /// Begins to count at a place of this incarnation's own: a manager that knows the last trap of the one before
    /// would take the first of this one for the same sent again.
    pub(crate) fn begin_incarnation(&mut self, incarnation: u64) {
        self.pending.clear();
        // Neighbouring numbers are spread over all 32 bits (Fibonacci hashing); 0 stays 0.
        self.raised = incarnation.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    }

    /// When the next sending is due; at the end of time when nothing is pending.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        self.pending.iter().fold(NEVER, |due, trap| due.min(trap.due))
    }

    /// The notice that waits longest, for Get(Notice).
    pub(crate) fn oldest(&self, port: PortNum) -> Option<&Notice> {
        self.pending.iter().find(|trap| trap.port == port).map(|trap| &trap.notice)
    }

    /// Whether a trap of this number has not been heard yet.
    pub(crate) fn is_pending(&self, port: PortNum, number: TrapNumber) -> bool {
        self.pending.iter().any(|trap| trap.port == port && trap.notice.trap_number == number)
    }

    /// Takes up a trap about an end port. What was pending of the same number begins again. False: it is not sent,
    /// because the port has no manager or traps are off.
    fn raise(
        &mut self,
        now: Time,
        kind: NodeType,
        port: PortNum,
        info: Option<&PortInfo>,
        details: &Details,
    ) -> bool {
        let number = details.trap_number();
        self.remove(|trap| trap.port == port && trap.notice.trap_number == number);
        let Some(info) = info.filter(|info| info.master_sm_lid != Lid(0) && self.limit > 0) else {
            return false;
        };
        self.raised += 1;
        let mut notice = Notice::generic(kind, info.lid, details);
        notice.notice_toggle = self.raised.is_multiple_of(2);
        notice.notice_count = (self.raised & 0x7fff) as u16;
        // The upper half is no program's, so that an answer is never taken for one of theirs.
        let transaction_id = TransactionId(0xffff_ffff << 32 | self.raised & 0xffff_ffff);
        self.pending.push(PendingTrap { port, notice, transaction_id, attempts: 0, due: now });
        true
    }

    /// What is due at this place of the list; `None` beyond its end.
    fn due_at(&mut self, now: Time, at: usize) -> Option<Due> {
        let trap = self.pending.get_mut(at)?;
        if trap.due > now {
            return Some(Due::Wait);
        }
        if trap.attempts >= self.limit {
            return Some(Due::GiveUp(self.pending.remove(at).notice.trap_number));
        }
        trap.attempts += 1;
        trap.due = now + self.interval.max(Time::from_nanos(1));
        Some(Due::Send(trap.clone()))
    }

    /// The manager behind a port has heard the trap with that transaction, or else that number and issuer.
    fn repress(&mut self, port: PortNum, mad: &Mad) -> Option<TrapNumber> {
        let notice = Notice::from_smp_data(mad.smp_data());
        let transaction_id = mad.transaction_id();
        let by_transaction = self.remove(|t| t.port == port && t.transaction_id == transaction_id);
        by_transaction.or_else(|| {
            self.remove(|t| {
                t.port == port
                    && t.notice.trap_number == notice.trap_number
                    && t.notice.issuer_lid == notice.issuer_lid
                    && t.notice.notice_toggle == notice.notice_toggle
                    && t.notice.notice_count == notice.notice_count
            })
        })
    }

    /// Forgets what `matches` and says which trap it was.
    fn remove(&mut self, matches: impl Fn(&PendingTrap) -> bool) -> Option<TrapNumber> {
        let at = self.pending.iter().position(matches)?;
        Some(self.pending.remove(at).notice.trap_number)
    }
}

impl Device {
    /// Notifies the subnet manager of `port`. A pending trap of the same number begins again: the
    /// manager may have looked before this change. Without a manager no trap is sent.
    pub(crate) fn raise_trap(&mut self, now: Time, port: PortNum, details: &Details) {
        let info = self.ports.get(usize::from(port.0)).map(|end| &end.info);
        if self.traps.raise(now, self.identity.kind, port, info, details) {
            self.send_due_traps(now);
        }
        self.data.traps = self.traps.due();
    }

    /// Sends what is due, and gives up what has been sent often enough.
    pub(crate) fn send_due_traps(&mut self, now: Time) {
        let mut at = 0;
        while let Some(due) = self.traps.due_at(now, at) {
            match due {
                Due::Wait => at += 1,
                Due::GiveUp(trap_number) => self.emit(Event::TrapAbandoned { trap_number }),
                Due::Send(trap) => {
                    at += 1;
                    self.send_trap(now, &trap);
                }
            }
        }
        self.data.traps = self.traps.due();
    }

    fn send_trap(&mut self, now: Time, trap: &PendingTrap) {
        let Some(end) = self.ports.get(usize::from(trap.port.0)) else { return };
        let (slid, dlid) = (end.info.lid, end.info.master_sm_lid);
        let mut mad = Mad::default();
        mad.set_header(&MadHeader {
            base_version: 1,
            mgmt_class: MgmtClass::SubnLid,
            class_version: 1,
            method: Method::Trap,
            transaction_id: trap.transaction_id,
            attribute_id: AttributeId::Notice,
            ..MadHeader::default()
        });
        mad.set_smp_data(&trap.notice.to_smp_data());
        self.statistics.traps_sent += 1;
        let (trap_number, attempt) = (trap.notice.trap_number, trap.attempts);
        self.emit(Event::TrapSent { trap_number, attempt });
        self.route_smp(now, trap.port, slid, dlid, mad);
    }

    /// The subnet manager has heard a trap.
    pub(crate) fn repress_trap(&mut self, port: PortNum, mad: &Mad) {
        if let Some(trap_number) = self.traps.repress(port, mad) {
            self.data.traps = self.traps.due();
            self.emit(Event::TrapRepressed { trap_number });
        }
    }
}

#[cfg(test)]
mod tests;
