//! Traffic from everywhere to everywhere, also to where nothing is any more.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use rand::RngExt;
use rand_pcg::Pcg64;
use weft_machine::Time;
use weft_sim::{Load, Simulation, ToHost, TrafficAccount};
use weft_topology::PortRef;
use weft_wire::{DataPacket, Lid, ServiceLevel};

/// Every host whose port is active sends to LIDs that it has heard of, as fast as it can.
pub(crate) struct Anywhere {
    lids: Rc<RefCell<BTreeSet<Lid>>>,
    active: BTreeMap<PortRef, bool>,
    random: Pcg64,
    levels: u8,
    sequence: u64,
    over: Rc<Cell<bool>>,
}

impl Anywhere {
    /// Packets of this many service levels, until it is over.
    pub(crate) fn new(levels: u8, over: Rc<Cell<bool>>, random: Pcg64) -> Self {
        Self { lids: Rc::default(), active: BTreeMap::new(), levels, sequence: 0, over, random }
    }

    fn next(&mut self, port: PortRef, inject: &mut VecDeque<DataPacket>) {
        if self.over.get() || self.active.get(&port) != Some(&true) {
            return;
        }
        let lids = self.lids.borrow();
        let Some(&dlid) = lids.iter().nth(self.random.random_range(0..lids.len() as u64) as usize) else {
            return;
        };
        self.sequence += 1;
        let service_level = ServiceLevel(self.random.random_range(0..self.levels));
        let mut packet = super::datagram(dlid, service_level, self.sequence);
        packet.payload = 4 * self.random.random_range(4..=512u16);
        inject.push_back(packet);
    }
}

impl Load for Anywhere {
    fn hear(&mut self, _: Time, port: PortRef, what: ToHost, inject: &mut VecDeque<DataPacket>) {
        match what {
            ToHost::Injected { packets, .. } => (0..packets).for_each(|_| self.next(port, inject)),
            ToHost::Facts(facts) => {
                let was = self.active.insert(port, facts.active);
                if facts.lid != Lid(0) {
                    self.lids.borrow_mut().insert(facts.lid);
                }
                if facts.active && was != Some(true) {
                    (0..3).for_each(|_| self.next(port, inject));
                }
            }
            ToHost::Refused(_) | ToHost::Receive(_) | ToHost::HandedOn(_) => {}
            ToHost::Accept(packet) => assert!(self.lids.borrow().contains(&packet.dlid), "{packet:?}"),
        }
    }
}

/// Everything added up, which must close.
pub(crate) fn sound(simulation: &Simulation, seed: u64) -> TrafficAccount {
    match simulation.check_traffic() {
        Ok(report) => report.total,
        Err(violations) => {
            let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
            panic!("WEFT_SEED={seed}, at {}:\n{}", simulation.now(), lines.join("\n"));
        }
    }
}

/// The devices that hold packets.
pub(crate) fn stuck(simulation: &Simulation) -> Vec<String> {
    let fabric = simulation.fabric();
    let held = |(at, node): (_, &weft_topology::Node)| {
        let held = simulation.device(at)?.data_account().total().held;
        (held > 0).then(|| format!("{} at {}", held, node.id))
    };
    fabric.iter().filter_map(held).collect()
}
