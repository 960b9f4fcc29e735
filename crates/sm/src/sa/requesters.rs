//! Requesters of subnet administration: a host is one, whatever the number of its LIDs, ports and virtual functions.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::{Guid, Lid};

use crate::Options;
use crate::knowledge::{PortAt, Subnet};
use crate::moves::physical;

/// Hosts and their ports.
#[derive(Clone, Debug, Default)]
pub(super) struct Requesters {
    /// The host of each end port: the GUID of its vSwitch, or of its node.
    hosts: BTreeMap<Guid, Guid>,
    ports: BTreeMap<Guid, Vec<(Guid, Lid)>>,
    /// End ports of virtual functions.
    guests: BTreeSet<Guid>,
}

impl Requesters {
    /// Of end ports with their first LIDs and their places.
    pub(super) fn new(
        subnet: &Subnet,
        ends: impl Iterator<Item = (Guid, Lid, PortAt)>,
        options: &Options,
    ) -> Self {
        let mut all = Self::default();
        let node = |node: u32| subnet.guid(node);
        for vswitch in weft_routing::vswitches(&subnet.fabric, &options.routing.engine.management_nodes) {
            let own = physical(&vswitch);
            for (port, end) in &vswitch.functions {
                let guid = subnet.end_guid(PortAt { node: end.node.0, port: end.port });
                all.hosts.insert(guid, node(vswitch.node.0));
                if *port != own {
                    all.guests.insert(guid);
                }
            }
        }
        for (guid, lid, at) in ends {
            let host = *all.hosts.entry(guid).or_insert_with(|| node(at.node));
            all.ports.entry(host).or_default().push((guid, lid));
        }
        all
    }

    /// Whether an end port is a virtual function's.
    pub(super) fn is_guest(&self, end: Guid) -> bool {
        self.guests.contains(&end)
    }

    /// The host of an end port. A port that is not there is a host of its own.
    pub(super) fn host_of(&self, end: Guid) -> Guid {
        self.hosts.get(&end).copied().unwrap_or(end)
    }

    /// The hosts of which one of these ports is not notified, by itself or, if it is a virtual function's, by the physical function
    /// behind its vSwitch. One port of an adapter knows nothing of another.
    pub(super) fn not_among(
        &self,
        told: &BTreeSet<Guid>,
        ports: impl Iterator<Item = Guid>,
    ) -> BTreeSet<Guid> {
        let physical = |host: Guid| self.ports_of(host).iter().filter(|(port, _)| !self.is_guest(*port));
        let handed_on = |port: Guid| {
            self.is_guest(port) && physical(self.host_of(port)).any(|(port, _)| told.contains(port))
        };
        ports
            .filter(|port| !told.contains(port) && !handed_on(*port))
            .map(|port| self.host_of(port))
            .collect()
    }

    /// The end ports of a host, with their first LIDs.
    pub(super) fn ports_of(&self, host: Guid) -> &[(Guid, Lid)] {
        self.ports.get(&host).map_or(&[], Vec::as_slice)
    }
}

/// Whether one that `has` some of a thing may have one more, where a number is `left` for all: `most`, and no more than half of what
/// there is for the last ones. One that has none may, as long as there are any.
pub(super) fn may_have_more(has: usize, most: usize, left: usize) -> bool {
    left > 0 && (has == 0 || has < most.min(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Port 1 of host 10 is a vSwitch's physical function, 11 and 12 are its functions; 20 and 21 are two ports of one adapter.
    fn requesters() -> Requesters {
        let mut all = Requesters::default();
        for (port, host) in [(10, 1), (11, 1), (12, 1), (20, 2), (21, 2), (30, 3)] {
            all.hosts.insert(Guid(port), Guid(host));
            all.ports.entry(Guid(host)).or_default().push((Guid(port), Lid(port as u16)));
        }
        all.guests.extend([Guid(11), Guid(12)]);
        all
    }

    #[test]
    fn each_port_of_a_host_is_told_or_handed_on_to() {
        let cases: [(&[u64], &[u64]); 6] = [
            (&[], &[1, 2, 3]),
            (&[10, 20, 21, 30], &[]),
            // A machine that has subscribed does not speak for the physical function, nor for another machine.
            (&[11, 12, 20, 21], &[1, 3]),
            (&[10, 11, 20, 30], &[2]),
            (&[10, 21, 30], &[2]),
            (&[12, 30], &[1, 2]),
        ];
        for (told, wanted) in cases {
            let told: BTreeSet<Guid> = told.iter().copied().map(Guid).collect();
            let ports = [10, 11, 12, 20, 21, 30].map(Guid);
            let hosts: Vec<u64> =
                requesters().not_among(&told, ports.into_iter()).iter().map(|host| host.0).collect();
            assert_eq!(hosts, wanted, "{told:?}");
        }
    }
}
