//! Cables and how their links come and go, and what is under way on them.

use weft_machine::Time;
use weft_topology::{Fabric, PortRef};
use weft_wire::{LinkParameters, VirtualLane};

use crate::flight::{Flights, Flock, NOWHERE};

/// One cable. Its link is up when both devices are on, both ends allow it and the cable is whole.
#[derive(Clone, Debug)]
pub(crate) struct Cable {
    pub(crate) ends: [PortRef; 2],
    pub(crate) whole: bool,
    /// Whether the operator has pulled it out.
    pub(crate) pulled: bool,
    /// How many partitions keep it out.
    pub(crate) parted: u32,
    /// Whether both ends are in one node, which then has the cable.
    pub(crate) inside: bool,
    /// How many cables had this number before.
    pub(crate) life: u32,
    pub(crate) link: Link,
    /// Counts every change, so that what is under way from before it does not arrive after it.
    pub(crate) incarnation: u64,
    /// Whether each device lets its link come up.
    pub(crate) enabled: [bool; 2],
    /// What each device says in its hello.
    pub(crate) parameters: [LinkParameters; 2],
    /// When each end lost the link, until it notices.
    pub(crate) lost: [Option<Time>; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Down,
    Training,
    Up,
}

impl Cable {
    pub(crate) fn new(ends: [PortRef; 2], parameters: [LinkParameters; 2]) -> Self {
        Self {
            ends,
            whole: true,
            pulled: false,
            parted: 0,
            inside: false,
            life: 0,
            link: Link::Down,
            incarnation: 0,
            enabled: [true; 2],
            parameters,
            lost: [None; 2],
        }
    }
}

/// One direction of a cable, as its data lanes see it: they keep their order, all of them as one.
///
/// Half a line of the processor's cache, since every packet's way leads past it, and of thousands few are there.
#[derive(Debug)]
#[repr(align(32))]
pub(crate) struct Way {
    /// Where it leads to.
    pub(crate) to: PortRef,
    /// Whether the link is up.
    pub(crate) up: bool,
    /// When the last thing that is under way arrives.
    pub(crate) last_arrival: Time,
    /// Packets under way, in the order of arrival.
    pub(crate) flying: Flock,
    /// So many of the next arrivals in the queue are of things that a link has taken with it.
    pub(crate) stale: u32,
}

const _: () = assert!(size_of::<Way>() == 32);

/// Packets that went into a cable and did not come out, by lane.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Missed {
    /// A link took them with it.
    pub(crate) cut_off: [u64; 16],
    /// A rule lost them.
    pub(crate) lost: [u64; 16],
}

impl Way {
    fn new(to: PortRef) -> Self {
        let flying = Flock { first: NOWHERE, last: NOWHERE };
        Self { to, up: false, last_arrival: Time::ZERO, flying, stale: 0 }
    }
}

/// Which cable is in each port, and the ways over all of them: a cable's ways follow each other, and lead to its first
/// end and to its second.
#[derive(Debug)]
pub(crate) struct Cabling {
    pub(crate) cables: Vec<Cable>,
    pub(crate) ways: Vec<Way>,
    /// How long the data lanes of most cables take, and those of each; the latter empty where all take the same.
    pub(crate) usual_delay: Time,
    pub(crate) delays: Vec<Time>,
    /// What did not arrive.
    pub(crate) missed: Missed,
    /// Numbers of cables that were taken out.
    free: Vec<usize>,
    /// Where each node's ports are in `places`.
    ports: Vec<(u32, u32)>,
    /// Twice the number of the cable in each port, and which of its ends it is; also the number of the way that leads here.
    places: Vec<u32>,
}

impl Cabling {
    pub(crate) fn new(fabric: &Fabric) -> Self {
        let (mut ports, mut count) = (Vec::new(), 0);
        for node in fabric.nodes() {
            ports.push((count, count + node.ports.len() as u32));
            count += node.ports.len() as u32;
        }
        let places = vec![NOWHERE; count as usize];
        let (cables, ways, missed) = (Vec::new(), Vec::new(), Missed::default());
        let mut cabling = Self {
            cables,
            ways,
            usual_delay: Time::ZERO,
            delays: Vec::new(),
            missed,
            free: Vec::new(),
            ports,
            places,
        };
        for cable in fabric.cables() {
            let ends = [cable.a, cable.b];
            for end in ends {
                let number = cabling.ways.len() as u32;
                cabling.ways.push(Way::new(end));
                if let Some(place) = cabling.place_mut(end) {
                    *place = number;
                }
            }
            cabling.cables.push(Cable::new(ends, ends.map(|end| initial_parameters(fabric, end))));
        }
        cabling
    }

    /// Puts a cable into two free ports, whose links may come up or not and say this in their hello. Its number.
    pub(crate) fn put_in(
        &mut self,
        ends: [PortRef; 2],
        offers: [(bool, LinkParameters); 2],
        inside: bool,
    ) -> usize {
        let number = self.free.pop().unwrap_or_else(|| {
            self.cables.push(Cable::new(ends, offers.map(|(_, parameters)| parameters)));
            self.ways.extend(ends.map(Way::new));
            self.cables.len() - 1
        });
        // What was under way on the cable before counts on: its arrivals are still in the queue.
        let cable = &mut self.cables[number];
        (cable.ends, cable.whole, cable.inside, cable.lost) = (ends, true, inside, [None; 2]);
        (cable.pulled, cable.parted) = (false, 0);
        (cable.enabled, cable.parameters) = (offers.map(|offer| offer.0), offers.map(|offer| offer.1));
        for (side, end) in ends.into_iter().enumerate() {
            self.ways[2 * number + side].to = end;
            if let Some(place) = self.place_mut(end) {
                *place = (2 * number + side) as u32;
            }
        }
        if !self.delays.is_empty() {
            self.delays.resize(self.cables.len(), self.usual_delay);
            self.delays[number] = self.usual_delay;
        }
        number
    }

    /// A cable is in its ports no more.
    pub(crate) fn take_out(&mut self, number: usize) {
        for end in self.cables[number].ends {
            self.place_mut(end).into_iter().for_each(|place| *place = NOWHERE);
        }
        self.cables[number].life += 1;
    }

    /// The number of a cable that was taken out may be another's.
    pub(crate) fn free(&mut self, number: usize) {
        self.cables[number].lost = [None; 2];
        self.free.push(number);
    }

    /// Gives some cables another delay than the rest.
    pub(crate) fn with_delays(mut self, usual: Time, others: &[(PortRef, Time)]) -> Self {
        self.usual_delay = usual;
        if others.is_empty() {
            return self;
        }
        self.delays = vec![usual; self.cables.len()];
        for (end, delay) in others {
            if let Some((cable, _)) = self.find(*end) {
                self.delays[cable] = *delay;
            }
        }
        self
    }

    /// Where a port is in `places`.
    #[inline]
    fn index(&self, port: PortRef) -> Option<usize> {
        let &(start, end) = self.ports.get(port.node.index())?;
        let index = start + u32::from(port.port.0);
        (index < end).then_some(index as usize)
    }

    #[inline]
    fn place(&self, port: PortRef) -> Option<u32> {
        self.places.get(self.index(port)?).copied()
    }

    fn place_mut(&mut self, port: PortRef) -> Option<&mut u32> {
        let index = self.index(port)?;
        self.places.get_mut(index)
    }

    /// The way that leads out of a port, if it has a link.
    #[inline]
    pub(crate) fn way_from(&self, port: PortRef) -> Option<u32> {
        // Without a cable there is no such way either.
        let way = self.place(port)? ^ 1;
        self.ways.get(way as usize).filter(|way| way.up)?;
        Some(way)
    }

    /// The link of a way goes and takes with it what is under way. How many packets that were.
    pub(crate) fn cut(&mut self, way: usize, flights: &mut Flights) -> u64 {
        let (way, mut packets) = (&mut self.ways[way], 0);
        way.up = false;
        while let Some(flying) = flights.take_first(&mut way.flying) {
            way.stale += 1;
            if let Some(lane) = flying.packet_lane() {
                packets += 1;
                self.missed.cut_off[usize::from(lane.0 & 0xf)] += 1;
            }
        }
        packets
    }

    /// A rule has lost a packet.
    pub(crate) fn lose(&mut self, lane: VirtualLane) {
        self.missed.lost[usize::from(lane.0 & 0xf)] += 1;
    }

    /// The cable in a port, and which of its ends that is.
    pub(crate) fn find(&self, port: PortRef) -> Option<(usize, usize)> {
        let end = self.place(port)?;
        (end != NOWHERE).then_some((end as usize / 2, end as usize % 2))
    }

    /// All cables of a node.
    pub(crate) fn of_node(&self, node: weft_topology::NodeIndex) -> Vec<usize> {
        let (start, end) = self.ports[node.index()];
        let places = &self.places[start as usize..end as usize];
        let ends = places.iter().filter(|&&end| end != NOWHERE);
        let mut cables: Vec<usize> = ends.map(|&end| end as usize / 2).collect();
        // A switch may be cabled to itself.
        cables.sort_unstable();
        cables.dedup();
        cables
    }
}

/// What a port that has just been switched on says in its hello.
pub(crate) fn initial_parameters(fabric: &Fabric, end: PortRef) -> LinkParameters {
    fabric.port(end).map(|port| port.enabled).unwrap_or_default().into()
}
