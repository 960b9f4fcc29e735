//! Virtual time, the queue of events, and the generator that decides every delay and chance.

mod event;
mod queue;

use rand::SeedableRng;
use rand_pcg::Pcg64;
use weft_machine::Time;
use weft_wire::Packet;

pub(crate) use event::{Event, MadUnderWay, ManagementPacket, Rare, VmNews};

use crate::rule::below;
use event::Slab;
use queue::Queue;

/// The time, and the events that are to come.
#[derive(Debug)]
pub(crate) struct Clock {
    now: Time,
    queue: Queue<Event>,
    pub(crate) random: Pcg64,
    /// Packets of lane 15 under way.
    pub(crate) management: Slab<ManagementPacket>,
    /// MADs under way between programs and their devices.
    pub(crate) mads: Slab<MadUnderWay>,
    rare: Slab<Rare>,
    /// Faults and changes that are to come.
    pub(crate) faults_pending: usize,
    /// When something last changed.
    pub(crate) disturbed_at: Time,
    /// How often something changed.
    pub(crate) disturbances: u64,
}

impl Clock {
    /// Time zero, without events.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            now: Time::ZERO,
            queue: Queue::new(),
            random: Pcg64::seed_from_u64(seed),
            management: Slab::new(),
            mads: Slab::new(),
            rare: Slab::new(),
            faults_pending: 0,
            disturbed_at: Time::ZERO,
            disturbances: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// The next event, if it happens by `limit`: it is now.
    #[inline]
    pub(crate) fn next_until(&mut self, limit: Time) -> Option<Event> {
        let (at, event) = self.queue.pop_until(limit)?;
        self.now = at;
        Some(event)
    }

    /// Nothing happens until then.
    pub(crate) fn advance(&mut self, to: Time) {
        self.now = self.now.max(to);
    }

    #[inline]
    pub(crate) fn push(&mut self, at: Time, event: Event) {
        self.queue.push(at, event);
    }

    /// The same for what takes the same time each ([`Queue::push_in_turn`]).
    #[inline]
    pub(crate) fn push_in_turn(&mut self, at: Time, event: Event) {
        self.queue.push_in_turn(at, event);
    }

    pub(crate) fn push_rare(&mut self, at: Time, rare: Rare) {
        let number = self.rare.put(rare);
        self.queue.push(at, Event::Rare(number));
    }

    /// A fault or a change is to come. Nothing is at rest before.
    pub(crate) fn push_fault(&mut self, at: Time, rare: Rare) {
        self.faults_pending += 1;
        self.push_rare(at.max(self.now), rare);
    }

    pub(crate) fn take_rare(&mut self, number: u32) -> Option<Rare> {
        let rare = self.rare.take(number)?;
        if matches!(rare, Rare::Fault(_) | Rare::Change(_)) {
            self.faults_pending -= 1;
        }
        Some(rare)
    }

    /// A packet of lane 15 reaches the end of a way.
    pub(crate) fn push_management(&mut self, at: Time, way: u32, incarnation: u64, packet: Packet) {
        let number = self.management.put(ManagementPacket { way, incarnation, packet });
        self.queue.push(at, Event::ArriveManagement(number));
    }

    /// A MAD reaches a program or its device.
    pub(crate) fn push_mad(&mut self, at: Time, mad: MadUnderWay) {
        let number = self.mads.put(mad);
        self.queue.push(at, Event::Mad(number));
    }

    /// A time below `most` by chance, or none at all.
    pub(crate) fn below(&mut self, most: Time) -> Time {
        below(&mut self.random, most)
    }

    /// Something changed; what was known to be quiet is not any more.
    pub(crate) fn disturb(&mut self) {
        self.disturbed_at = self.now;
        self.disturbances += 1;
    }

    /// Since when nothing has changed, in time.
    pub(crate) fn rest(&self) -> Time {
        self.now.saturating_sub(self.disturbed_at)
    }
}
