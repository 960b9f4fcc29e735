//! Cables: which are in which ports, how their links come and go, what is under way on them, and faults that last there.

mod cable;
mod flight;
mod lasting;
mod links;
mod transit;

use weft_machine::Time;
use weft_node::Frame;
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::LinkParameters;

use crate::{Rule, SimOptions};
use cable::Cable;
pub(crate) use cable::{Link, Way, initial_parameters};
use flight::{Flights, NOWHERE};
use lasting::Lasting;

/// Packets that went into a cable and did not come out, by lane.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Missed {
    /// A link took them with it.
    pub(crate) cut_off: [u64; 16],
    /// A rule lost them.
    pub(crate) lost: [u64; 16],
}

/// Which cable is in each port, and the ways over all of them: a cable's ways follow each other, and lead to its first
/// end and to its second.
pub(crate) struct Cabling {
    pub(crate) cables: Vec<Cable>,
    pub(crate) ways: Vec<Way>,
    /// How long the data lanes of most cables take, and those of each; the latter empty where all take the same.
    pub(crate) usual_delay: Time,
    delays: Vec<Time>,
    /// Packets under way on data lanes.
    flights: Flights,
    /// What did not arrive.
    pub(crate) missed: Missed,
    pub(crate) rule: Option<Box<dyn Rule>>,
    lasting: Lasting,
    /// Numbers of cables that were taken out.
    free: Vec<usize>,
    /// Where each node's ports are in `places`.
    ports: Vec<(u32, u32)>,
    /// Twice the number of the cable in each port, and which of its ends it is; also the number of the way that leads here.
    places: Vec<u32>,
}

impl Cabling {
    pub(crate) fn new(fabric: &Fabric, options: &SimOptions) -> Self {
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
            flights: Flights::new(),
            missed,
            rule: None,
            lasting: Lasting::default(),
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
        cabling.with_delays(options.data_link_delay.unwrap_or(options.link_delay), &options.link_delays)
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

    /// No port has a cable any more.
    fn leave_ports(&mut self, number: usize) {
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
    fn with_delays(mut self, usual: Time, others: &[(PortRef, Time)]) -> Self {
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

    /// What is under way in one direction on data lanes, in the order of arrival.
    pub(crate) fn flying(&self, way: &Way) -> impl Iterator<Item = &Frame> {
        self.flights.iter(way.flying)
    }

    /// The cable in a port, and which of its ends that is.
    pub(crate) fn find(&self, port: PortRef) -> Option<(usize, usize)> {
        let end = self.place(port)?;
        (end != NOWHERE).then_some((end as usize / 2, end as usize % 2))
    }

    /// All cables of a node.
    pub(crate) fn of_node(&self, node: NodeIndex) -> Vec<usize> {
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
