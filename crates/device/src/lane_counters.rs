//! A port's counters by lane and by opcode.

use weft_wire::VirtualLane;

use crate::counters::Uncounted;

/// A port's counters by lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneCounters {
    /// Packets received, one entry for each opcode that there was a packet of: there are 256 at most.
    pub(crate) by_op_code: Vec<OpCounters>,
    /// Ticks that data waited without being sent.
    pub(crate) xmit_wait: [u64; 16],
    /// Wrong flow control updates.
    pub(crate) flow_ctl_update_errors: [u64; 16],
}

/// Packets received with one opcode. Those of the port are apart from those of its lanes, since either is reset
/// without the other.
#[derive(Clone, Debug)]
pub(crate) struct OpCounters {
    pub(crate) op_code: u8,
    pub(crate) port: Received,
    pub(crate) lanes: [Received; 16],
}

/// Packets, and 4-byte words from LRH to ICRC.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received {
    pub(crate) packets: u64,
    pub(crate) data: u64,
}

impl Received {
    #[inline]
    fn count(&mut self, all: Uncounted) {
        self.packets += all.packets;
        self.data += all.words;
    }
}

impl LaneCounters {
    /// A packet has come in. A raw one has no opcode.
    #[inline]
    pub(crate) fn received(&mut self, op_code: Option<u8>, vl: VirtualLane, words: u32) {
        let Some(op_code) = op_code else { return };
        self.received_all(op_code, vl, Uncounted { packets: 1, words: u64::from(words) });
    }

    /// Packets have come in.
    pub(crate) fn received_all(&mut self, op_code: u8, vl: VirtualLane, all: Uncounted) {
        let at = self.by_op_code.iter().position(|counters| counters.op_code == op_code);
        let at = at.unwrap_or_else(|| {
            let (port, lanes) = Default::default();
            self.by_op_code.push(OpCounters { op_code, port, lanes });
            self.by_op_code.len() - 1
        });
        let counters = &mut self.by_op_code[at];
        counters.lanes[usize::from(vl.0 & 0xf)].count(all);
        counters.port.count(all);
    }
}
