//! The host behind an HCA's port, and what a device itself sends on data lanes.

use weft_machine::Time;
use weft_wire::{DataPacket, DataRate, Lid, PKey, Packet, PathRate, PortFacts, PortNum, VirtualLane};

use super::DataPath;
use super::arrive::{Arrived, Heading, Room, Way, WrongKey};
use super::buffer::{Body, Held};
use super::index::{LaneIndex, LaneSet, PoolIndex};
use super::pace::Pace;
use crate::port::{LinkState, covers};
use crate::size::blocks;
use crate::{DataPathOptions, Device, DropReason, Output};

/// Packets of programs and of the device itself that wait in one queue.
const OWN_MAX: u32 = 4096;

/// How what has come in gets to the host: one packet at a time, one lane after the other.
#[derive(Clone, Debug)]
pub(super) struct Drain {
    /// The packet on its way to the host.
    pub(super) busy: PoolIndex,
    /// The lane that had its turn last.
    lane: VirtualLane,
    /// Lanes that hold packets.
    waiting: LaneSet,
    pace: Pace,
    /// Whether the host has a limit; otherwise what comes in is the host's at once.
    limited: bool,
    /// The share of its rate at which a slow host takes packets, in parts per million.
    share_ppm: Option<u32>,
    pub(super) own: Own,
    /// The partition key that came last and that the port has.
    key: Option<PKey>,
    /// The key that the host sent with last, and the port's own of that partition.
    sent: Option<(PKey, PKey)>,
}

/// Whom a port's packets are for, apart from all else that is known of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Own {
    pub(super) lid: Lid,
    pub(super) lmc: u8,
}

impl Own {
    #[inline]
    pub(super) fn has_lid(&self, lid: Lid) -> bool {
        covers(self.lid, self.lmc, lid)
    }
}

impl DataPath {
    /// Whether the host behind a port takes packets no faster than at a rate of its own.
    pub(super) fn is_limited(&self, port: PortNum) -> bool {
        self.drains[port].limited
    }

    /// A port has other partition keys.
    pub(crate) fn keys_changed(&mut self, port: PortNum) {
        if let Some(drain) = self.drains.get_mut(port) {
            (drain.key, drain.sent) = (None, None);
        }
    }
}

impl Drain {
    /// Whether the host takes packets at a share of its rate.
    pub(super) const fn is_slow(&self) -> bool {
        self.share_ppm.is_some()
    }

    pub(super) fn new(options: &DataPathOptions) -> Self {
        let limit = DataRate::from_mbps(options.host_limit_mbps);
        let (pace, own) = (Pace::new(limit), Own::default());
        Self {
            busy: PoolIndex::NONE,
            lane: VirtualLane::default(),
            waiting: LaneSet::EMPTY,
            pace,
            limited: !limit.is_instant(),
            share_ppm: None,
            own,
            key: None,
            sent: None,
        }
    }
}

impl Device {
    /// What the host behind it moves in each direction at most, in megabits per second of fabric time; 0 where no limit is set.
    pub fn host_limit_mbps(&self) -> u32 {
        self.data.options.host_limit_mbps
    }

    /// The host behind a port is slow, or as usual again. What waits for it is taken at the new rate.
    pub(crate) fn drain_at(&mut self, port: PortNum, share_ppm: Option<u32>) {
        if let Some(drain) =
            self.data.drains.get_mut(port).filter(|_| self.data.host && port != PortNum::ZERO)
        {
            drain.share_ppm = share_ppm;
            self.set_drain(port);
        }
    }

    /// How fast the host behind a port takes packets follows from its bus, from its link and from whether it is slow.
    pub(super) fn set_drain(&mut self, port: PortNum) {
        let settings = &self.ports[usize::from(port.0)];
        let link = DataRate::of_link(&settings.info, settings.fdr10.active);
        let usual = DataRate::from_mbps(self.data.options.host_limit_mbps);
        let Some(drain) = self.data.drains.get_mut(port) else { return };
        let rate = match drain.share_ppm {
            None => usual,
            Some(ppm) => link.slower(usual).ppm(ppm),
        };
        drain.pace = Pace::new(rate);
        // Nothing may pass what waits: it goes at once when the host is as usual, and those behind it too.
        drain.limited |= !rate.is_instant();
        if drain.busy == PoolIndex::NONE {
            drain.limited = !rate.is_instant();
        }
    }

    /// A packet has come to an HCA.
    pub(super) fn take_in_host(
        &mut self,
        at: Time,
        arrived: Arrived,
        body: Body,
        heading: &Heading,
        own: bool,
    ) -> Result<(), DropReason> {
        let Arrived { port, buffer, blocks } = arrived;
        if !own {
            self.discard(port, DropReason::BadAddress);
            return Err(DropReason::BadAddress);
        }
        // Whole packets are the agents', which look at the key themselves.
        if let (Body::Data(_), Some(p_key)) = (&body, heading.p_key())
            && !self.is_in_partition(port, p_key)
        {
            self.key_violation(at, port, &heading.into(), WrongKey::PKey(p_key));
            self.discard(port, DropReason::BadPKey);
            return Err(DropReason::BadPKey);
        }
        let lane = heading.vl();
        if self.data.cut_through.is_some() {
            self.data.comes_in(at, port, Held::new(body, buffer, port, blocks));
            return Ok(());
        }
        if !self.data.is_limited(port) {
            self.give(at, port, lane, body);
            self.release(buffer, u16::from(blocks));
            return Ok(());
        }
        let held = Held::new(body, buffer, port, blocks);
        self.data.account[lane].held += 1;
        let place = self.data.pool.put(held, at);
        self.wait_for_host(at, port, buffer, place);
        Ok(())
    }

    /// A packet waits in its queue for the host to take it.
    pub(super) fn wait_for_host(&mut self, at: Time, port: PortNum, buffer: LaneIndex, place: PoolIndex) {
        let data = &mut self.data;
        let lane = data.pool.get(place).lane();
        data.queues[buffer].push(&mut data.pool, place);
        data.drains[port].waiting.insert(lane);
        if data.drains[port].busy == PoolIndex::NONE {
            self.start_drain(at, port);
        }
    }

    /// Whether an HCA's port has a partition's key.
    #[inline]
    fn is_in_partition(&mut self, port: PortNum, p_key: PKey) -> bool {
        let drain = &mut self.data.drains[port];
        if drain.key == Some(p_key) {
            return true;
        }
        let is_in = self.ports[usize::from(port.0)].p_key_index(p_key).is_some();
        if is_in {
            drain.key = Some(p_key);
        }
        is_in
    }

    /// The key with which an HCA's port sends what its host sends with `p_key`.
    #[inline]
    fn own_p_key(&mut self, port: PortNum, p_key: PKey) -> Option<PKey> {
        let last = self.data.drains[port].sent.filter(|&(asked, _)| asked == p_key);
        if let Some((_, key)) = last {
            return Some(key);
        }
        let key = self.ports[usize::from(port.0)].own_p_key(p_key)?;
        self.data.drains[port].sent = Some((p_key, key));
        Some(key)
    }

    /// The next packet sets out for the host.
    fn start_drain(&mut self, at: Time, port: PortNum) {
        let data = &mut self.data;
        let place_in_tree = data.outs.len() + usize::from(port.0);
        let drain = &mut data.drains[port];
        // The lanes behind the last one first.
        let next = drain.waiting.above(drain.lane).first().or(drain.waiting.first());
        let Some(lane) = next else { return data.deadlines.clear(place_in_tree) };
        drain.lane = lane;
        let queue = &mut data.queues[LaneIndex::new(port, lane, data.shift)];
        let Some(place) = queue.pop(&data.pool) else { return };
        if queue.len == 0 {
            drain.waiting.remove(lane);
        }
        drain.busy = place;
        let took = drain.pace.take(usize::from(data.pool.get(place).size()), data.dilation);
        data.deadlines.set(place_in_tree, at + took);
    }

    /// A packet has reached the host.
    pub(super) fn drained(&mut self, at: Time, port: PortNum) {
        let data = &mut self.data;
        let place = std::mem::replace(&mut data.drains[port].busy, PoolIndex::NONE);
        debug_assert!(place != PoolIndex::NONE, "nothing else has this moment");
        if place == PoolIndex::NONE {
            return data.deadlines.clear(data.outs.len() + usize::from(port.0));
        }
        let (buffer, lane, taken) = {
            let held = data.pool.get(place);
            (held.buffer, held.lane(), held.blocks)
        };
        let body = data.pool.take(place);
        data.account[lane].held -= 1;
        self.give(at, port, lane, body);
        self.release(buffer, u16::from(taken));
        self.start_drain(at, port);
    }

    /// Gives a packet to the host, or to the device's own agents and the programs.
    pub(super) fn give(&mut self, at: Time, port: PortNum, lane: VirtualLane, body: Body) {
        let account = &mut self.data.account[lane];
        match body {
            Body::Data(packet) => {
                account.to_host += 1;
                self.outputs.push_back(Output::Accept { port, packet });
            }
            Body::Whole(packet) => {
                account.to_own += 1;
                self.receive_gmp(at, port, &packet);
            }
            Body::None => debug_assert!(false, "what comes in is a packet"),
        }
    }

    /// The link is gone, and what was on its way to the host with it.
    pub(super) fn stop_drain(&mut self, port: PortNum) {
        let Some(drain) = self.data.drains.get_mut(port) else { return };
        drain.waiting = LaneSet::EMPTY;
        let place = std::mem::replace(&mut drain.busy, PoolIndex::NONE);
        self.data.deadlines.clear(self.data.outs.len() + usize::from(port.0));
        if place != PoolIndex::NONE {
            self.drop_held(place, DropReason::LinkLost, port);
        }
    }

    /// The host gives a packet to send.
    pub(crate) fn inject(&mut self, at: Time, port: PortNum, mut packet: DataPacket) {
        let drain = self.data.drains.get(port).filter(|_| port != PortNum::ZERO);
        let Some(&Drain { own, .. }) = drain else {
            return self.discard(port, DropReason::NoSuchPort);
        };
        if !own.has_lid(packet.slid) {
            packet.slid = own.lid;
        }
        let key = self.own_p_key(port, packet.p_key);
        packet.p_key = key.unwrap_or(packet.p_key);
        packet.vl = self.sl_to_vl.lane(port, port, packet.service_level);
        let lane = packet.vl;
        self.data.account[lane].injected += 1;
        let heading = Heading::from(&packet);
        // What is for the port itself goes out too, and is dropped by the switch: given back at once, it would take no time,
        // and a host that sends to itself as fast as it can would never come to an end.
        let Err(reason) = self.check_own(port, &heading, key.is_some()) else {
            return self.send_own(at, port, Body::Data(packet), &heading);
        };
        self.data.account[lane].drop(reason);
        self.tell_of_drop(port, reason, &heading);
        let (service_level, dest_qp) = (packet.service_level, packet.dest_qp);
        self.outputs.push_back(Output::Refused { port, dest_qp });
        self.outputs.push_back(Output::Injected { port, service_level, packets: 1 });
    }

    /// The device, or a program attached to it, sends a packet from an HCA's port, on the lane that it has.
    pub(crate) fn inject_whole(&mut self, at: Time, port: PortNum, packet: Packet) {
        let heading = Heading::from(&packet);
        let lane = heading.vl();
        self.data.account[lane].injected += 1;
        let refused = self.check_own(port, &heading, true).and_then(|()| self.check_room(port, heading.vl()));
        match refused {
            Ok(()) => self.send_own(at, port, Body::Whole(packet), &heading),
            Err(reason) => self.data.account[lane].drop(reason),
        }
    }

    /// A switch's port 0 sends a packet on a data lane.
    pub(crate) fn send_from_port0(&mut self, at: Time, packet: Packet) {
        let heading = Heading::from(&packet);
        let lane = heading.vl();
        self.data.account[lane].injected += 1;
        let way = self.route_data(PortNum::ZERO, &heading);
        let way = way.and_then(|way| self.check_room(PortNum::ZERO, way.lane).map(|()| way));
        match way {
            Ok(way) => {
                let queue = self.data.index(PortNum::ZERO, way.lane);
                let taken = blocks(heading.size());
                self.hold(
                    at,
                    queue.into(),
                    Room { buffer: LaneIndex::NONE, blocks: taken },
                    Body::Whole(packet),
                    &heading,
                    way,
                );
            }
            Err(reason) => self.data.account[lane].drop(reason),
        }
    }

    /// Whether an HCA's port sends such a packet. What is refused has been counted.
    fn check_own(&mut self, port: PortNum, heading: &Heading, in_partition: bool) -> Result<(), DropReason> {
        let lanes = self.data.outs[port].checks.lanes;
        if let Some(reason) = self.refuses_departure(port, heading.size()) {
            return Err(reason);
        }
        let reason = if heading.vl().0 >= lanes {
            self.count_departure(port, DropReason::NoLane);
            DropReason::NoLane
        } else if !in_partition {
            DropReason::BadPKey
        } else {
            return Ok(());
        };
        self.discard(port, reason);
        Err(reason)
    }

    /// Whether a queue of the device's own packets has room. What is refused has been counted.
    fn check_room(&mut self, port: PortNum, lane: VirtualLane) -> Result<(), DropReason> {
        let data = &self.data;
        let queue = if data.host { data.own_queue(port, lane) } else { data.index(port, lane).into() };
        if data.queues.get(queue).is_some_and(|queue| queue.len < OWN_MAX) {
            return Ok(());
        }
        self.ports[usize::from(port.0)].counters.qp1_dropped += 1;
        self.discard(port, DropReason::QueueFull);
        Err(DropReason::QueueFull)
    }

    /// Puts a packet into the queue of what an HCA's port sends on a lane.
    fn send_own(&mut self, at: Time, port: PortNum, body: Body, heading: &Heading) {
        let lane = heading.vl();
        let queue = self.data.own_queue(port, lane);
        let way = Way { output: port, lane };
        let room = Room { buffer: LaneIndex::NONE, blocks: blocks(heading.size()) };
        self.hold(at, queue, room, body, heading, way);
    }

    /// The last facts that the host behind an HCA's port has of its port; none at a switch or a port that there is not.
    pub fn host_facts(&self, port: PortNum) -> Option<&PortFacts> {
        self.data.told.get(port).filter(|_| self.data.host && port != PortNum::ZERO)
    }

    /// Tells the host behind an HCA's port what has changed.
    pub(crate) fn tell_host(&mut self, port: PortNum, reregister: bool) {
        let Some(told) = self.data.told.get_mut(port).filter(|_| port != PortNum::ZERO) else {
            return;
        };
        let Some(end) = self.ports.get(usize::from(port.0)) else { return };
        let facts = PortFacts {
            guid: end.guid,
            gid_prefix: end.info.gid_prefix,
            active: end.state == LinkState::Active,
            lid: end.info.lid,
            lmc: end.info.lmc,
            sm_lid: end.info.master_sm_lid,
            sm_sl: end.info.master_sm_sl,
            mtu: 128 << end.info.neighbor_mtu.code().min(5),
            rate: if end.state.is_up() { self.data.rates[port] } else { DataRate::INSTANT },
            link_rate: if end.state.is_up() { PathRate::of_link(&end.info) } else { PathRate::default() },
            p_keys: end.p_keys.iter().filter(|key| key.partition() != 0).copied().collect(),
            reregister: false,
            congestion: self.congestion.settings(port),
        };
        if facts == *told && !reregister {
            return;
        }
        *told = facts.clone();
        let facts = Box::new(PortFacts { reregister, ..facts });
        self.outputs.push_back(Output::HostPort { port, facts });
    }
}
