//! Packets on their way over cables.

use std::fmt::Arguments;

use weft_machine::Time;
use weft_node::Frame;
use weft_topology::PortRef;
use weft_wire::{DataPacket, FlowControl, Packet, VirtualLane};

use super::{Cabling, Link};
use crate::Verdict;
use crate::clock::{Event, ManagementPacket};
use crate::observers::Fnv;
use crate::world::World;

impl Cabling {
    /// A frame goes into a cable, or comes back if there is no link.
    pub(crate) fn transmit(&mut self, from: PortRef, frame: Frame, world: &mut World) -> Result<(), Frame> {
        if self.transmit_often(from, &frame, world) {
            return Ok(());
        }
        let Some(way) = self.way_from(from) else { return Err(frame) };
        if let Frame::Packet(packet) = frame {
            self.transmit_whole(from, way, packet, world);
        }
        Ok(())
    }

    /// As [`transmit`](Self::transmit), for what goes into cables most: whether it is that, and there is a link.
    #[inline(always)]
    pub(crate) fn transmit_often(&mut self, from: PortRef, frame: &Frame, world: &mut World) -> bool {
        let Some(way) = self.way_from(from) else { return false };
        match frame {
            Frame::Data(packet) => {
                if let Some(at) = self.data_arrives_at(from, way, packet, world) {
                    self.fly(way, at, Frame::Data(*packet), world);
                }
            }
            Frame::Credit(flow_control) => {
                let at = self.credit_arrives_at(from, way, flow_control, world);
                self.fly(way, at, Frame::Credit(*flow_control), world);
            }
            Frame::Packet(_) => return false,
        }
        true
    }

    /// When a packet whose body is a length comes out of its cable, unless a rule loses it.
    #[inline]
    fn data_arrives_at(
        &mut self,
        from: PortRef,
        way: u32,
        packet: &DataPacket,
        world: &mut World,
    ) -> Option<Time> {
        world.observers.statistics.packets += 1;
        world.observers.statistics.data_packets += 1;
        let mut at = world.clock.now() + self.cable_delay(way);
        if let Some(rule) = self.rule.as_mut().filter(|rule| rule.judges_data()) {
            let verdict = rule.judge_data(world.clock.now(), from, packet, &mut world.clock.random);
            let Some(delay) = delay_of(verdict, world) else {
                self.lose(packet.vl);
                if world.observers.trace.is_on() {
                    trace_frame("lost", from, format_args!("{packet:?}"), world);
                }
                return None;
            };
            at += delay;
        }
        if world.observers.trace.is_on() {
            trace_frame("sent", from, format_args!("{packet:?}"), world);
        }
        Some(at)
    }

    /// When flow control comes out of its cable. Rules do not judge it, but it comes behind what is late.
    #[inline]
    fn credit_arrives_at(
        &self,
        from: PortRef,
        way: u32,
        flow_control: &FlowControl,
        world: &mut World,
    ) -> Time {
        world.observers.statistics.credits += 1;
        if world.observers.trace.is_on() {
            trace_frame("credit", from, format_args!("{flow_control:?}"), world);
        }
        world.clock.now() + self.cable_delay(way)
    }

    /// A packet with all its bytes goes into a cable.
    #[inline(never)]
    fn transmit_whole(&mut self, from: PortRef, way: u32, packet: Packet, world: &mut World) {
        world.observers.statistics.packets += 1;
        let is_management = packet.vl() == VirtualLane::MANAGEMENT;
        // Lengths are of fabric time, and management's packets take real time.
        let mut at = if is_management {
            world.clock.now() + world.options.link_delay + world.clock.below(world.options.link_jitter)
        } else {
            world.clock.now() + self.cable_delay(way)
        };
        let rule = self.rule.as_mut().filter(|rule| is_management || rule.judges_data());
        let now = world.clock.now();
        let verdict =
            rule.map_or(Verdict::Pass, |rule| rule.judge(now, from, &packet, &mut world.clock.random));
        let Some(delay) = delay_of(verdict, world) else {
            if !is_management {
                self.lose(packet.vl());
            }
            return trace_packet("lost", from, &packet, world);
        };
        at += delay;
        trace_packet("sent", from, &packet, world);
        if is_management {
            let incarnation = self.cables[way as usize / 2].incarnation;
            world.clock.push_management(at, way, incarnation, packet);
        } else {
            self.fly(way, at, Frame::Packet(packet), world);
        }
    }

    #[inline]
    fn cable_delay(&self, way: u32) -> Time {
        self.delays.get(way as usize / 2).copied().unwrap_or(self.usual_delay)
    }

    #[inline(always)]
    fn fly(&mut self, way: u32, at: Time, flying: Frame, world: &mut World) {
        let over = &mut self.ways[way as usize];
        let at = at.max(over.last_arrival);
        over.last_arrival = at;
        self.flights.put_last(&mut over.flying, flying);
        if at == world.clock.now() + self.usual_delay {
            world.clock.push_in_turn(at, Event::Arrive(way));
        } else {
            world.clock.push(at, Event::Arrive(way));
        }
    }

    /// What arrives next on data lanes at the end of a way, unless it went with its link.
    #[inline]
    pub(crate) fn arrive(&mut self, way: u32) -> Option<(PortRef, Frame)> {
        let way = &mut self.ways[way as usize];
        if way.stale > 0 {
            way.stale -= 1;
            return None;
        }
        let to = way.to;
        self.flights.take_first(&mut way.flying).map(|frame| (to, frame))
    }

    /// A packet of lane 15 that has arrived, unless it went with its link.
    pub(crate) fn arrive_management(&mut self, number: u32, world: &mut World) -> Option<(PortRef, Packet)> {
        let ManagementPacket { way, incarnation, packet } = world.clock.management.take(number)?;
        let cable = &self.cables[way as usize / 2];
        if cable.incarnation != incarnation || cable.link != Link::Up {
            world.observers.statistics.cut_off += 1;
            return None;
        }
        Some((self.ways[way as usize].to, packet))
    }

    /// A rule has lost a packet.
    fn lose(&mut self, lane: VirtualLane) {
        self.missed.lost[usize::from(lane.0 & 0xf)] += 1;
    }
}

/// What a verdict adds to a packet's way; nothing when it is lost.
fn delay_of(verdict: Verdict, world: &mut World) -> Option<Time> {
    match verdict {
        Verdict::Pass => Some(Time::ZERO),
        Verdict::Delay(delay) => {
            world.observers.statistics.delayed += 1;
            Some(delay)
        }
        Verdict::Drop => {
            world.observers.statistics.lost += 1;
            None
        }
    }
}

fn trace_packet(kind: &str, at: PortRef, packet: &Packet, world: &mut World) {
    if world.observers.trace.is_on() {
        // What the words leave out is in the hash, so that traces are the same only when all bytes are.
        let mut bytes = Fnv::default();
        bytes.add(packet.bytes());
        trace_frame(kind, at, format_args!("{packet:?} {:016x}", bytes.0), world);
    }
}

#[cold]
fn trace_frame(kind: &str, at: PortRef, what: Arguments<'_>, world: &mut World) {
    let id = &world.fabric.node(at.node).id;
    let place = format_args!("{id:<20} {:>3}", at.port);
    world.observers.trace.line(world.clock.now(), kind, place, what);
}
