//! Arrival over a cable on a data lane: checks, counters, the buffer, and the output port.

use weft_machine::Time;
use weft_wire::{
    DataPacket, Details, KeyDetails, Lid, PKey, Packet, PortNum, QpNum, ServiceLevel, SwitchKeyDetails,
    VirtualLane, trap,
};

use super::buffer::{Body, Held};
use super::index::{LaneIndex, PoolIndex, QueueIndex};
use crate::counters::is_multicast;
use crate::size::blocks;
use crate::{Device, DropReason, Event};

/// What the checks and the forwarding look at, whatever the packet's form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heading {
    size: usize,
    vl: VirtualLane,
    service_level: ServiceLevel,
    slid: Lid,
    dlid: Lid,
    /// None in a raw packet, like what follows.
    p_key: Option<PKey>,
    op_code: Option<u8>,
    src_qp: QpNum,
    dest_qp: QpNum,
}

impl From<&DataPacket> for Heading {
    #[inline]
    fn from(packet: &DataPacket) -> Self {
        Self {
            size: packet.size(),
            vl: packet.vl,
            service_level: packet.service_level,
            slid: packet.slid,
            dlid: packet.dlid,
            p_key: Some(packet.p_key),
            op_code: Some(packet.opcode),
            src_qp: packet.src_qp,
            dest_qp: packet.dest_qp,
        }
    }
}

impl From<&Packet> for Heading {
    fn from(packet: &Packet) -> Self {
        let (lrh, bth) = (packet.lrh(), packet.bth());
        Self {
            size: packet.bytes().len(),
            vl: lrh.vl,
            service_level: lrh.service_level,
            slid: lrh.slid,
            dlid: lrh.dlid,
            p_key: bth.map(|bth| bth.p_key),
            op_code: packet.op_code(),
            src_qp: packet.deth().map(|deth| deth.src_qp).unwrap_or_default(),
            dest_qp: bth.map(|bth| bth.dest_qp).unwrap_or_default(),
        }
    }
}

/// Where a packet leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) output: PortNum,
    pub(super) lane: VirtualLane,
}

/// The room that a packet takes in the buffer that it came by; none of its own device's packets are in a buffer.
#[derive(Clone, Copy)]
pub(super) struct Room {
    pub(super) buffer: LaneIndex,
    pub(super) blocks: u8,
}

impl Device {
    /// A packet on a data lane has come in at a port that is up.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, at: Time, port: PortNum, body: Body, heading: &Heading) {
        let lane = VirtualLane(heading.vl.0 & 0xf);
        self.data.account[lane].received += 1;
        let (checks, active) = (self.data.outs[port].checks, self.data.outs[port].active);
        if !checks.up {
            self.data.account[lane].drop(DropReason::LinkDown);
            self.tell_of_drop(port, DropReason::LinkDown, heading);
            return self.discard(port, DropReason::LinkDown);
        }
        let taken = blocks(heading.size);
        let has_buffer = lane.0 < self.data.lanes;
        let buffer = if has_buffer { self.data.index(port, lane) } else { LaneIndex::NONE };
        self.count_arrival(port, buffer, heading);
        if has_buffer && !self.take_credit(port, buffer, u16::from(taken)) {
            return self.data.account[lane].drop(DropReason::BufferOverrun);
        }
        let refused = if lane.0 >= checks.lanes {
            self.receive_error(port, DropReason::BadLane);
            Some(DropReason::BadLane)
        } else if heading.size > usize::from(checks.receive_size_max) {
            self.receive_error(port, DropReason::LongerThanMtu);
            Some(DropReason::LongerThanMtu)
        } else if !active && !self.receive_data_state(at, port) {
            self.discard(port, DropReason::PortNotReady);
            Some(DropReason::PortNotReady)
        } else {
            let arrived = Arrived { port, buffer, blocks: taken };
            self.take_in(at, arrived, body, heading).err()
        };
        if let Some(reason) = refused {
            self.data.account[lane].drop(reason);
            self.tell_of_drop(port, reason, heading);
            self.release(buffer, u16::from(taken));
        } else if has_buffer && self.data.options.shaped {
            self.tell_if_low(buffer);
        }
    }

    /// Counts a packet that has come in: with the queue, if it has the opcode of the one before it there.
    #[inline(always)]
    fn count_arrival(&mut self, port: PortNum, buffer: LaneIndex, heading: &Heading) {
        let words = (heading.size - 2) as u32 / 4;
        if let Some(queue) = self.data.queues.get_mut(buffer.into())
            && heading.op_code == Some(queue.op_code)
            && !is_multicast(heading.dlid)
        {
            return queue.uncounted.count(words);
        }
        self.count_other_arrival(port, buffer, heading, words);
    }

    #[inline(never)]
    fn count_other_arrival(&mut self, port: PortNum, buffer: LaneIndex, heading: &Heading, words: u32) {
        let input = &mut self.ports[usize::from(port.0)];
        if let Some(queue) = self.data.queues.get_mut(buffer.into()) {
            input.count_received(queue, heading.vl);
            queue.op_code = heading.op_code.unwrap_or(queue.op_code);
        }
        input.counters.received(words, is_multicast(heading.dlid));
        input.by_lane.received(heading.op_code, heading.vl, words);
    }

    /// A packet that the port of arrival finds nothing wrong with: for this node, or on its way. What is refused has
    /// been counted as what it is.
    #[inline(always)]
    fn take_in(
        &mut self,
        at: Time,
        arrived: Arrived,
        body: Body,
        heading: &Heading,
    ) -> Result<(), DropReason> {
        let Arrived { port, buffer, blocks } = arrived;
        let drain = self.data.drains.get(port);
        let own = drain.map_or(self.data.own, |drain| drain.own).has_lid(heading.dlid);
        debug_assert_eq!(
            own,
            self.ports[usize::from(self.end_port(port).0)].has_lid(heading.dlid),
            "known here too"
        );
        if !self.is_switch() {
            return self.take_in_host(at, arrived, body, heading, own);
        }
        if self.data.outs[port].checks.enforces_inbound {
            self.enforce(at, port, heading, true)?;
        }
        if own && !self.sends_on(heading.dlid) {
            // Of data packets a switch's port 0 is no receiver.
            let body @ Body::Whole(_) = body else {
                self.discard(port, DropReason::NoReceiver);
                return Err(DropReason::NoReceiver);
            };
            if self.data.cut_through.is_some() {
                self.data.comes_in(at, port, Held::new(body, buffer, PortNum::ZERO, blocks));
                return Ok(());
            }
            self.release(buffer, u16::from(blocks));
            self.give(at, port, heading.vl, body);
            return Ok(());
        }
        let way = self.route_data(port, heading)?;
        if self.data.outs[way.output].checks.enforces_outbound {
            self.enforce(at, way.output, heading, false)?;
        }
        self.hold(at, buffer.into(), Room { buffer, blocks }, body, heading, way);
        Ok(())
    }

    /// Puts a packet into a queue, on the lane that it leaves by.
    #[inline(always)]
    pub(super) fn hold(
        &mut self,
        at: Time,
        queue: QueueIndex,
        room: Room,
        mut body: Body,
        heading: &Heading,
        way: Way,
    ) {
        let (Room { buffer, blocks }, lane) = (room, way.lane);
        if heading.vl != lane {
            let accounts = &mut self.data.account;
            accounts[heading.vl].moved_out += 1;
            accounts[lane].moved_in += 1;
            match &mut body {
                Body::Data(packet) => packet.vl = lane,
                Body::Whole(packet) => packet.set_vl(lane),
                Body::None => {}
            }
        }
        let held = Held::new(body, buffer, way.output, blocks);
        if self.data.cut_through.is_some() && buffer != LaneIndex::NONE {
            let (port, _) = self.data.port_and_lane(buffer);
            return self.data.comes_in(at, port, held);
        }
        if self.data.bus.is_some() && buffer != LaneIndex::NONE {
            return self.hold_for_bus(at, held);
        }
        self.enqueue(at, queue, held, heading.size as u16, lane);
    }

    /// Says whose packet was dropped.
    #[cold]
    pub(super) fn tell_of_drop(&mut self, port: PortNum, reason: DropReason, heading: &Heading) {
        let &Heading { slid, dlid, service_level, p_key, .. } = heading;
        self.emit(Event::DataDropped { port, reason, slid, dlid, service_level, p_key });
    }

    /// Where a switch sends a packet on. `input` is the port of arrival, 0 for what comes from within.
    #[inline(always)]
    pub(super) fn route_data(&mut self, input: PortNum, heading: &Heading) -> Result<Way, DropReason> {
        let Some(switch) = &self.switch else {
            self.discard(input, DropReason::BadAddress);
            return Err(DropReason::BadAddress);
        };
        let output = switch.lookup(heading.dlid);
        let output =
            output.filter(|&port| port != PortNum::ZERO && usize::from(port.0) < self.data.outs.len());
        let Some(output) = output else { return Err(self.relay_error(input, DropReason::NoRoute)) };
        if output == input {
            return Err(self.relay_error(input, DropReason::Loop));
        }
        let lane = self.sl_to_vl.lane(input, output, heading.service_level);
        if lane == VirtualLane::MANAGEMENT || lane.0 >= self.data.outs[output].checks.lanes {
            return Err(self.relay_error(input, DropReason::NoLane));
        }
        if let Some(reason) = self.refuses_departure(output, heading.size) {
            return Err(reason);
        }
        Ok(Way { output, lane })
    }

    /// Why a port does not send a packet of this size. What is refused has been counted.
    #[inline(always)]
    pub(super) fn refuses_departure(&mut self, output: PortNum, size: usize) -> Option<DropReason> {
        let departure = &self.data.outs[output];
        let reason = if !departure.active {
            DropReason::OutputInactive
        } else if size > usize::from(departure.checks.packet_size_max) {
            DropReason::TooLong
        } else {
            return None;
        };
        self.count_departure(output, reason);
        self.discard(output, reason);
        Some(reason)
    }

    /// A switch's port that enforces partitions lets through what its node could have sent, and what its node would
    /// take (IBA 10.9.3, 10.9.4, 14.2.5.6).
    fn enforce(
        &mut self,
        at: Time,
        port: PortNum,
        heading: &Heading,
        inbound: bool,
    ) -> Result<(), DropReason> {
        let Some(p_key) = heading.p_key else { return Ok(()) };
        let own = &self.ports[usize::from(port.0)];
        let passes = if inbound { own.p_key_is_sent_here(p_key) } else { own.p_key_index(p_key).is_some() };
        if passes {
            return Ok(());
        }
        let counters = &mut self.ports[usize::from(port.0)].counters;
        let reason = if inbound {
            counters.port_rcv_constraint_errors += 1;
            DropReason::PartitionInbound
        } else {
            counters.port_xmit_constraint_errors += 1;
            DropReason::PartitionOutbound
        };
        self.discard(port, reason);
        // Whoever sends with wrong keys does not decide how many traps the manager gets.
        if !self.traps.is_pending(PortNum::ZERO, trap::BAD_P_KEY_AT_SWITCH) {
            let details = SwitchKeyDetails {
                data_valid: SWITCH_KEY_VALID,
                lid1: heading.slid,
                lid2: heading.dlid,
                p_key,
                service_level: heading.service_level,
                qp1: heading.src_qp,
                qp2: heading.dest_qp,
                switch_lid: self.ports[0].info.lid,
                port_num: port,
                ..SwitchKeyDetails::default()
            };
            self.raise_trap(at, PortNum::ZERO, &Details::SwitchKey(trap::BAD_P_KEY_AT_SWITCH, details));
        }
        Err(reason)
    }

    /// A packet came to an end port with a key that it does not have: counted, and a trap tells the
    /// manager of one violation until it has answered.
    pub(crate) fn key_violation(&mut self, at: Time, port: PortNum, heading: &KeyHeading, wrong: WrongKey) {
        let Some(end) = self.ports.get_mut(usize::from(port.0)) else { return };
        let (number, key) = match wrong {
            WrongKey::PKey(key) => {
                end.info.p_key_violations = end.info.p_key_violations.saturating_add(1);
                (trap::BAD_P_KEY, u32::from(key.0))
            }
            WrongKey::QKey(key) => {
                end.info.q_key_violations = end.info.q_key_violations.saturating_add(1);
                (trap::BAD_Q_KEY, key.0)
            }
        };
        let gid2 = weft_wire::Gid { prefix: end.info.gid_prefix, guid: end.guid };
        if self.traps.is_pending(port, number) {
            return;
        }
        let details = KeyDetails {
            lid1: heading.slid,
            lid2: heading.dlid,
            key,
            service_level: heading.service_level,
            qp1: heading.src_qp,
            qp2: heading.dest_qp,
            gid2,
            ..KeyDetails::default()
        };
        self.raise_trap(at, port, &Details::Key(number, details));
    }

    /// Drops everything that has come in at a port and has not left.
    pub(super) fn empty_buffers(&mut self, at: Time, port: PortNum) {
        for lane in self.data.each_lane() {
            let buffer = self.data.index(port, lane);
            for queue in self.data.queues_of(buffer).collect::<Vec<QueueIndex>>() {
                let head = self.data.queues[queue].head;
                if head != PoolIndex::NONE && !self.data.host {
                    let held = self.data.pool.get(head);
                    let (output, lane) = (held.output, held.lane());
                    self.data.quit_line(at, queue, output, lane);
                }
                while let Some(place) = self.data.pop_queue(queue) {
                    self.data.no_longer_waits(place);
                    self.drop_held(place, DropReason::LinkLost, port);
                }
            }
            // What is on its way out is counted nowhere any more.
            for output in self.data.each_port() {
                let sending = self.data.outs[output].sending;
                if sending != PoolIndex::NONE && self.data.pool.get(sending).buffer == buffer {
                    self.data.pool.get_mut(sending).buffer = LaneIndex::NONE;
                }
            }
        }
        while let Some(place) = self.data.take_coming(port) {
            self.drop_held(place, DropReason::LinkLost, port);
        }
        for place in self.data.leave_bus(at, port) {
            self.drop_held(place, DropReason::LinkLost, port);
        }
        self.stop_drain(port);
    }
}

/// A packet that has just come in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) port: PortNum,
    pub(super) buffer: LaneIndex,
    pub(super) blocks: u8,
}

/// Who sent a packet with a wrong key, and to whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyHeading {
    pub(crate) slid: Lid,
    pub(crate) dlid: Lid,
    pub(crate) service_level: ServiceLevel,
    pub(crate) src_qp: QpNum,
    pub(crate) dest_qp: QpNum,
}

/// A wrong key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WrongKey {
    PKey(PKey),
    QKey(weft_wire::QKey),
}

impl From<&Heading> for KeyHeading {
    fn from(heading: &Heading) -> Self {
        let &Heading { slid, dlid, service_level, src_qp, dest_qp, .. } = heading;
        Self { slid, dlid, service_level, src_qp, dest_qp }
    }
}

impl Heading {
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn p_key(&self) -> Option<PKey> {
        self.p_key
    }

    pub(super) fn vl(&self) -> VirtualLane {
        self.vl
    }
}

/// The fields of trap 259 that are known, in their order: both LIDs, key, service level, both queue pairs, but no GIDs.
const SWITCH_KEY_VALID: u16 = 0b11_1111;
