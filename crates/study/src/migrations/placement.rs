//! Placement of virtual machines on hosts.

use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::case::{Start, VFS};

/// Virtual machines on hosts, which are numbered from the left of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// By machine: its host.
    host: Vec<usize>,
    /// By host: its machines, in the order in which they came.
    machines: Vec<Vec<usize>>,
}

impl Placement {
    /// Places machines at the start. There must be no more than virtual functions.
    pub(super) fn new(start: Start, hosts: usize, machines: usize, random: &mut Pcg64) -> Self {
        let mut places: Vec<usize> = match start {
            Start::Uniform => (0..machines).map(|machine| machine % hosts).collect(),
            Start::Random => {
                let mut functions: Vec<usize> = (0..hosts * VFS).map(|function| function / VFS).collect();
                functions.shuffle(random);
                functions.truncate(machines);
                functions
            }
        };
        // Machines boot from the left to the right.
        places.sort_unstable();
        Self::of(hosts, places)
    }

    /// Machines by their hosts.
    pub fn of(hosts: usize, host: Vec<usize>) -> Self {
        let mut machines = vec![Vec::new(); hosts];
        for (machine, host) in host.iter().enumerate() {
            machines[*host].push(machine);
        }
        Self { host, machines }
    }

    /// The number of hosts.
    pub fn hosts(&self) -> usize {
        self.machines.len()
    }

    /// The number of machines.
    pub fn machines(&self) -> usize {
        self.host.len()
    }

    /// The host of a machine.
    pub fn host(&self, machine: usize) -> usize {
        self.host[machine]
    }

    /// The machines on a host.
    pub fn on(&self, host: usize) -> &[usize] {
        &self.machines[host]
    }

    /// Whether a host has a free virtual function.
    pub fn has_room(&self, host: usize) -> bool {
        self.machines[host].len() < VFS
    }

    /// Puts a machine onto another host.
    pub(super) fn put(&mut self, machine: usize, to: usize) {
        let from = self.host[machine];
        self.machines[from].retain(|other| *other != machine);
        self.machines[to].push(machine);
        self.host[machine] = to;
    }
}
