//! Packets on their way over cables.

use std::fmt::Debug;

use weft_machine::Time;
use weft_node::Frame;
use weft_topology::PortRef;
use weft_wire::{DataPacket, FlowControl, Packet, VirtualLane};

use super::Simulation;
use crate::Verdict;
use crate::cable::Link;
use crate::event::{Event, ManagementPacket};
use crate::rule::below;
use crate::trace::Fnv;

impl Simulation {
    /// A frame goes into a cable, if there is a link.
    pub(super) fn transmit(&mut self, from: PortRef, frame: Frame) {
        if self.transmit_often(from, &frame) {
            return;
        }
        let Some(way) = self.cabling.way_from(from) else {
            let at = self.at(from);
            self.unsent.extend(frame.unsent().map(|unsent| (at, unsent)));
            return;
        };
        if let Frame::Packet(packet) = frame {
            self.transmit_whole(from, way, packet);
        }
    }

    /// As [`transmit`](Self::transmit), for what goes into cables most: whether it is that, and there is a link.
    #[inline(always)]
    pub(super) fn transmit_often(&mut self, from: PortRef, frame: &Frame) -> bool {
        let Some(way) = self.cabling.way_from(from) else { return false };
        match frame {
            Frame::Data(packet) => {
                if let Some(at) = self.data_arrives_at(from, way, packet) {
                    self.fly(way, at, Frame::Data(*packet));
                }
            }
            Frame::Credit(flow_control) => {
                let at = self.credit_arrives_at(from, way, flow_control);
                self.fly(way, at, Frame::Credit(*flow_control));
            }
            Frame::Packet(_) => return false,
        }
        true
    }

    /// When a packet whose body is a length comes out of its cable, unless a rule loses it.
    #[inline]
    fn data_arrives_at(&mut self, from: PortRef, way: u32, packet: &DataPacket) -> Option<Time> {
        self.statistics.packets += 1;
        self.statistics.data_packets += 1;
        let mut at = self.now + self.cable_delay(way);
        if let Some(rule) = self.rule.as_mut().filter(|rule| rule.judges_data()) {
            let verdict = rule.judge_data(self.now, from, packet, &mut self.random);
            let Some(delay) = self.delay_of(verdict) else {
                self.cabling.lose(packet.vl);
                if self.trace.is_on() {
                    self.trace_frame("lost", from, packet);
                }
                return None;
            };
            at += delay;
        }
        if self.trace.is_on() {
            self.trace_frame("sent", from, packet);
        }
        Some(at)
    }

    /// When flow control comes out of its cable. Rules do not judge it, but it comes behind what is late.
    #[inline]
    fn credit_arrives_at(&mut self, from: PortRef, way: u32, flow_control: &FlowControl) -> Time {
        self.statistics.credits += 1;
        if self.trace.is_on() {
            self.trace_frame("credit", from, flow_control);
        }
        self.now + self.cable_delay(way)
    }

    /// A packet with all its bytes goes into a cable.
    #[inline(never)]
    fn transmit_whole(&mut self, from: PortRef, way: u32, packet: Packet) {
        self.statistics.packets += 1;
        let is_management = packet.vl() == VirtualLane::MANAGEMENT;
        // Lengths are of fabric time, and management's packets take real time.
        let mut at = if is_management {
            self.now + self.options.link_delay + below(&mut self.random, self.options.link_jitter)
        } else {
            self.now + self.cable_delay(way)
        };
        let rule = self.rule.as_mut().filter(|rule| is_management || rule.judges_data());
        let verdict = rule.map_or(Verdict::Pass, |r| r.judge(self.now, from, &packet, &mut self.random));
        let Some(delay) = self.delay_of(verdict) else {
            if !is_management {
                self.cabling.lose(packet.vl());
            }
            return self.trace_packet("lost", from, &packet);
        };
        at += delay;
        self.trace_packet("sent", from, &packet);
        if is_management {
            let incarnation = self.cabling.cables[way as usize / 2].incarnation;
            let number = self.management.put(ManagementPacket { way, incarnation, packet });
            self.queue.push(at, Event::ArriveManagement(number));
        } else {
            self.fly(way, at, Frame::Packet(packet));
        }
    }

    #[inline]
    fn cable_delay(&self, way: u32) -> Time {
        self.cabling.delays.get(way as usize / 2).copied().unwrap_or(self.cabling.usual_delay)
    }

    /// What a verdict adds to a packet's way; nothing when it is lost.
    fn delay_of(&mut self, verdict: Verdict) -> Option<Time> {
        match verdict {
            Verdict::Pass => Some(Time::ZERO),
            Verdict::Delay(delay) => {
                self.statistics.delayed += 1;
                Some(delay)
            }
            Verdict::Drop => {
                self.statistics.lost += 1;
                None
            }
        }
    }

    #[inline(always)]
    fn fly(&mut self, way: u32, at: Time, flying: Frame) {
        let over = &mut self.cabling.ways[way as usize];
        let at = at.max(over.last_arrival);
        over.last_arrival = at;
        self.flights.put_last(&mut over.flying, flying);
        if at == self.now + self.cabling.usual_delay {
            self.queue.push_in_turn(at, Event::Arrive(way));
        } else {
            self.queue.push(at, Event::Arrive(way));
        }
    }

    /// The next thing on data lanes arrives, unless it went with its link.
    #[inline]
    pub(super) fn arrive(&mut self, way: u32) {
        let way = &mut self.cabling.ways[way as usize];
        if way.stale > 0 {
            way.stale -= 1;
            return;
        }
        let to = way.to;
        if let Some(frame) = self.flights.take_first(&mut way.flying) {
            self.frame_arrives(to, frame);
        }
    }

    pub(super) fn arrive_management(&mut self, number: u32) {
        let Some(ManagementPacket { way, incarnation, packet }) = self.management.take(number) else {
            return;
        };
        let cable = &self.cabling.cables[way as usize / 2];
        if cable.incarnation != incarnation || cable.link != Link::Up {
            self.statistics.cut_off += 1;
            return;
        }
        let to = self.cabling.ways[way as usize].to;
        self.frame_arrives(to, Frame::Packet(packet));
    }

    fn trace_packet(&mut self, kind: &str, at: PortRef, packet: &Packet) {
        if !self.trace.is_on() {
            return;
        }
        let id = &self.fabric.node(at.node).id;
        let place = format_args!("{id:<20} {:>3}", at.port);
        // What the words leave out is in the hash, so that traces are the same only when all bytes are.
        let mut bytes = Fnv::default();
        bytes.add(packet.bytes());
        self.trace.line(self.now, kind, place, format_args!("{packet:?} {:016x}", bytes.0));
    }

    #[cold]
    fn trace_frame(&mut self, kind: &str, at: PortRef, frame: &dyn Debug) {
        let id = &self.fabric.node(at.node).id;
        let place = format_args!("{id:<20} {:>3}", at.port);
        self.trace.line(self.now, kind, place, format_args!("{frame:?}"));
    }
}
