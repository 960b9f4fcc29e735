//! A port's counters, all of 64 bits; the PMA cuts them to what an attribute can say.

use serde::{Deserialize, Serialize};
use weft_wire::Lid;

/// A port's counters, named as in PortCounters (IBA 16.1.3.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// 4-byte words sent, from LRH to ICRC, on all lanes.
    pub port_xmit_data: u64,
    /// 4-byte words received, from LRH to ICRC, on all lanes.
    pub port_rcv_data: u64,
    /// Packets sent.
    pub port_xmit_pkts: u64,
    /// Packets received.
    pub port_rcv_pkts: u64,
    /// Of those sent, the ones to a unicast LID.
    pub port_unicast_xmit_pkts: u64,
    /// Of those received, the ones to a unicast LID.
    pub port_unicast_rcv_pkts: u64,
    /// Of those sent, the ones to a multicast LID.
    pub port_multicast_xmit_pkts: u64,
    /// Of those received, the ones to a multicast LID.
    pub port_multicast_rcv_pkts: u64,
    /// Minor link errors.
    pub symbol_error_counter: u64,
    /// Times the link recovered by re-training.
    pub link_error_recovery_counter: u64,
    /// Times the link went down.
    pub link_downed_counter: u64,
    /// Packets with errors.
    pub port_rcv_errors: u64,
    /// Packets that ended with the bad-packet mark.
    pub port_rcv_remote_physical_errors: u64,
    /// Packets that could not be forwarded.
    pub port_rcv_switch_relay_errors: u64,
    /// Packets dropped on departure.
    pub port_xmit_discards: u64,
    /// Packets not sent because of a constraint.
    pub port_xmit_constraint_errors: u64,
    /// Packets not accepted because of a constraint.
    pub port_rcv_constraint_errors: u64,
    /// Times local errors passed their threshold.
    pub local_link_integrity_errors: u64,
    /// Times overruns passed their threshold.
    pub excessive_buffer_overrun_errors: u64,
    /// SMPs dropped for want of space.
    pub vl15_dropped: u64,
    /// Ticks that data waited without being sent.
    pub port_xmit_wait: u64,
    /// GMPs dropped for want of space.
    pub qp1_dropped: u64,
    /// Of the packets with errors, those damaged on their way.
    pub port_local_physical_errors: u64,
    /// Of the packets with errors, those sent with a length, a lane or a version that cannot be.
    pub port_malformed_pkt_errors: u64,
    /// Of the packets with errors, those for which there was no buffer.
    pub port_buffer_overrun_errors: u64,
    /// Of the packets that could not be forwarded, those whose destination the table does not know.
    pub port_dlid_mapping_errors: u64,
    /// Of the packets that could not be forwarded, those without a lane at the port of departure.
    pub port_vl_mapping_errors: u64,
    /// Of the packets that could not be forwarded, those that would have gone back to where they came from.
    pub port_looping_errors: u64,
    /// Of the packets dropped on departure, those that found the port down or not active.
    pub port_inactive_discards: u64,
    /// Of the packets dropped on departure, those longer than the neighbour takes.
    pub port_neighbor_mtu_discards: u64,
    /// Of the packets dropped on departure, those that were too long in the switch.
    pub port_sw_lifetime_limit_discards: u64,
    /// Of the packets dropped on departure, those that headed their queue for too long.
    pub port_sw_hoq_lifetime_limit_discards: u64,
    /// Flow control packets sent.
    pub port_xmit_flow_pkts: u64,
    /// Flow control packets received.
    pub port_rcv_flow_pkts: u64,
}

impl Counters {
    /// A packet has come in.
    #[inline]
    pub(crate) fn received(&mut self, words: u32, multicast: bool) {
        self.port_rcv_data += u64::from(words);
        self.port_rcv_pkts += 1;
        if multicast {
            self.port_multicast_rcv_pkts += 1;
        } else {
            self.port_unicast_rcv_pkts += 1;
        }
    }

    /// Packets to unicast LIDs have come in.
    pub(crate) fn received_all(&mut self, all: Uncounted) {
        self.port_rcv_data += all.words;
        self.port_rcv_pkts += all.packets;
        self.port_unicast_rcv_pkts += all.packets;
    }

    /// Packets to unicast LIDs have gone out.
    pub(crate) fn sent_all(&mut self, all: Uncounted) {
        self.port_xmit_data += all.words;
        self.port_xmit_pkts += all.packets;
        self.port_unicast_xmit_pkts += all.packets;
    }

    /// A packet has gone out.
    #[inline]
    pub(crate) fn sent(&mut self, words: u32, multicast: bool) {
        self.port_xmit_data += u64::from(words);
        self.port_xmit_pkts += 1;
        if multicast {
            self.port_multicast_xmit_pkts += 1;
        } else {
            self.port_unicast_xmit_pkts += 1;
        }
    }

    /// A packet that was counted as sent has not gone out after all. `words` and `multicast` are that packet's.
    pub(crate) fn not_sent(&mut self, words: u32, multicast: bool) {
        self.port_xmit_data = self.port_xmit_data.saturating_sub(u64::from(words));
        self.port_xmit_pkts = self.port_xmit_pkts.saturating_sub(1);
        let pkts =
            if multicast { &mut self.port_multicast_xmit_pkts } else { &mut self.port_unicast_xmit_pkts };
        *pkts = pkts.saturating_sub(1);
        self.port_xmit_discards += 1;
    }
}

/// Damaged packets that undamaged ones have not made up for yet (IBA 7.12.2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Integrity {
    errors: u64,
    /// PortRcvPkts at the last of them.
    seen: u64,
}

impl Integrity {
    /// Another damaged packet, when the port has received this many undamaged ones. Whether it is one too many; then the
    /// count begins again.
    pub(crate) fn damaged(&mut self, received: u64, threshold: u8) -> bool {
        let undamaged = received.saturating_sub(self.seen);
        self.errors = self.errors.saturating_sub(undamaged) + 1;
        self.seen = received;
        let too_many = self.errors > threshold.into();
        if too_many {
            self.errors = 0;
        }
        too_many
    }
}

/// 0xC000 to 0xFFFE; the permissive LID counts as unicast, since one port takes it.
pub(crate) fn is_multicast(lid: Lid) -> bool {
    lid > Lid::UNICAST_MAX && lid != Lid::PERMISSIVE
}

/// Packets to unicast LIDs, and their 4-byte words from LRH to ICRC.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Uncounted {
    pub(crate) packets: u64,
    pub(crate) words: u64,
}

impl Uncounted {
    #[inline]
    pub(crate) fn count(&mut self, words: u32) {
        self.packets += 1;
        self.words += u64::from(words);
    }
}
