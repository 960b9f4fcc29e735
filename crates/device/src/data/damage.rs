//! Packets that did not come out of the cable whole.

use weft_wire::{PortNum, VirtualLane};

use crate::size::blocks;
use crate::{Device, DropReason, Unsent};

impl Device {
    /// A packet did not come out of the cable at a port, or came out with wrong bits.
    pub(crate) fn lost(&mut self, port: PortNum, lost: Unsent, bit_errors: u16) {
        let number = usize::from(port.0);
        if port == PortNum::ZERO || number >= self.ports.len() {
            return self.discard(port, DropReason::NoSuchPort);
        }
        let is_up = self.ports[number].state.is_up();
        let reason = match bit_errors {
            _ if !is_up => DropReason::LinkDown,
            0 => DropReason::LostOnCable,
            _ => DropReason::BadPacket,
        };
        if lost.lane != VirtualLane::MANAGEMENT {
            let account = &mut self.data.account[lost.lane];
            account.received += 1;
            account.drop(reason);
            if is_up {
                self.credit_of_lost(port, lost);
            }
        }
        if reason == DropReason::BadPacket {
            self.count_damage(port, bit_errors);
            self.receive_error(port, reason);
        } else {
            self.discard(port, reason);
        }
    }

    /// The peer has counted a packet that this end has not. Its next telling would put that right (IBA 7.9.4): ports of the
    /// field tell every 65536 symbol times at least, those here when there is something to say, so it is put right now.
    fn credit_of_lost(&mut self, port: PortNum, lost: Unsent) {
        if lost.lane.0 >= self.data.lanes {
            return;
        }
        let buffer = self.data.index(port, lost.lane);
        let queue = &mut self.data.queues[buffer];
        // No peer that keeps the rules has sent more than its credit.
        let taken = u16::from(blocks(lost.words as usize * 4 + 2)).min(queue.remaining());
        queue.received = queue.received.plus(taken);
        self.tell_if_low(buffer);
    }

    /// Wrong bits are symbol errors. Where damaged packets outnumber the others by more than the manager allows
    /// (LocalPhyErrors), the link trains again; nothing else on it is lost.
    fn count_damage(&mut self, port: PortNum, bit_errors: u16) {
        let number = usize::from(port.0);
        self.data.count_all(&mut self.ports, number..number + 1);
        let port = &mut self.ports[number];
        port.counters.symbol_error_counter += u64::from(bit_errors);
        if port.integrity.damaged(port.counters.port_rcv_pkts, port.info.local_phy_errors) {
            port.counters.local_link_integrity_errors += 1;
            port.counters.link_error_recovery_counter += 1;
        }
    }
}
