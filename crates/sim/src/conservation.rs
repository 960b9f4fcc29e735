//! Conservation: packets on data lanes are all accounted for, and buffers and credits are as they can be.

use serde::Serialize;
use weft_device::{BufferAccount, DataAccount};
use weft_node::Frame;
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{PortNum, VirtualLane};

use crate::cabling::Way;
use crate::observers::LANES;
use crate::{Simulation, TrafficAccount, Violation};

/// Bytes of a block of credit.
const BLOCK: usize = 64;

/// What was counted, and found to close.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrafficReport {
    /// All lanes together.
    pub total: TrafficAccount,
    /// By lane; the last has what was never given one.
    pub lanes: Vec<TrafficAccount>,
    /// Buffers looked at.
    pub buffers: u64,
}

impl Simulation {
    /// Adds up every device and every cable, at any time: each lane's packets are all accounted for, in every device
    /// and in the fabric; no buffer is over its size, no more is promised than is free, and no sender has more credit
    /// than its receiver has promised.
    pub fn check_traffic(&self) -> Result<TrafficReport, Vec<Violation>> {
        let mut violations = Vec::new();
        let mut lanes = self.world.observers.past.lanes;
        let mut buffers = 0;
        let mut accounts: Vec<Option<DataAccount>> = Vec::new();
        for (node, _) in self.fabric().iter() {
            let account = self.device(node).map(weft_device::Device::data_account);
            if let Some(account) = &account {
                self.check_device(node, account, &mut violations);
                buffers += account.buffers.len() as u64;
                for (sum, lane) in lanes.iter_mut().zip(&account.lanes) {
                    sum.add_device(lane);
                }
            }
            accounts.push(account);
        }
        for (way, number) in self.cabling.ways.iter().zip(0..) {
            for lane in self.cabling.flying(way).filter_map(Frame::packet_lane) {
                lanes[usize::from(lane.0 & 0xf)].in_flight += 1;
            }
            self.check_credit(way, number, &accounts, &mut violations);
        }
        for node in self.nodes.iter() {
            let (lost, under_way) = (node.lost_on_cables(), node.on_cables());
            for (sum, packets) in lanes.iter_mut().zip(lost.iter().zip(under_way)).take(LANES - 1) {
                (sum.cut_off, sum.in_flight) = (sum.cut_off + packets.0, sum.in_flight + packets.1);
            }
        }
        let missed = &self.cabling.missed;
        for (sum, (lost, cut_off)) in lanes.iter_mut().zip(missed.lost.iter().zip(missed.cut_off)) {
            (sum.lost, sum.cut_off) = (sum.lost + lost, sum.cut_off + cut_off);
        }
        let mut total = TrafficAccount::default();
        for (lane, account) in lanes.iter().enumerate() {
            total.add(account);
            if !account.is_closed() {
                let what = format!("lane {lane} of the fabric does not close: {account:?}");
                violations.push(Violation::Unbalanced { what });
            }
        }
        if violations.is_empty() {
            Ok(TrafficReport { total, lanes: lanes.to_vec(), buffers })
        } else {
            Err(violations)
        }
    }

    fn check_device(&self, node: NodeIndex, account: &DataAccount, violations: &mut Vec<Violation>) {
        let id = &self.fabric().node(node).id;
        for (lane, counted) in account.lanes.iter().enumerate() {
            if !counted.is_balanced() {
                let what = format!("lane {lane} of {id} does not close: {counted:?}");
                violations.push(Violation::Unbalanced { what });
            }
        }
        for buffer in &account.buffers {
            let fits = buffer.occupied <= buffer.size && buffer.promised <= buffer.size - buffer.occupied;
            // A switch's port 0 and a port without a link have none.
            if !fits && buffer.port != PortNum::ZERO {
                violations.push(Violation::Buffer { what: format!("{id}: {buffer:?}") });
            }
        }
    }

    /// What a sender may still send, and what it has sent and is under way, is no more than was promised.
    fn check_credit(
        &self,
        way: &Way,
        number: u32,
        accounts: &[Option<DataAccount>],
        violations: &mut Vec<Violation>,
    ) {
        if !way.up {
            return;
        }
        let from = self.cabling.ways[(number ^ 1) as usize].to;
        let find = |at: PortRef| {
            let account = accounts[at.node.index()].as_ref();
            let buffers = account.map_or(&[][..], |account| &account.buffers);
            buffers.iter().filter(move |buffer| buffer.port == at.port)
        };
        for receiver in find(way.to) {
            let Some(sender) = find(from).find(|sender| sender.lane == receiver.lane) else { continue };
            let flying: usize = self.cabling.flying(way).map(|flying| blocks_on(flying, receiver.lane)).sum();
            if usize::from(sender.credit) + flying > usize::from(receiver.promised) {
                let (from, to) = (self.fabric().port_name(from), self.fabric().port_name(way.to));
                let BufferAccount { lane, promised, .. } = *receiver;
                let credit = sender.credit;
                let what = format!(
                    "{from} has credit {credit} on lane {lane}, {flying} are under way, {to} has promised {promised}"
                );
                violations.push(Violation::Buffer { what });
            }
        }
    }
}

impl Drop for Simulation {
    /// Where debug assertions are on, no simulation ends with a packet or a credit that is not accounted for.
    fn drop(&mut self) {
        if cfg!(debug_assertions) && !self.world.observers.is_judged {
            let violations = self.check_traffic().err().unwrap_or_default();
            assert!(violations.is_empty(), "at {}: {violations:?}", self.now());
        }
    }
}

/// Blocks of a lane's credit that something under way takes.
fn blocks_on(flying: &Frame, lane: VirtualLane) -> usize {
    match flying {
        Frame::Data(packet) if packet.vl == lane => packet.size().div_ceil(BLOCK),
        Frame::Packet(packet) if packet.vl() == lane => packet.bytes().len().div_ceil(BLOCK),
        _ => 0,
    }
}
