//! The P_Key tables of hosts and of the switch ports in front of them.

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::Time;
use weft_routing::Partitions;
use weft_sim::Simulation;
use weft_sm::PartEnforce;
use weft_topology::PortRef;
use weft_wire::PKey;

use super::file::{guid, keys};
use super::{LOOK, Roles};
use crate::support::counts::Counts;

/// How long a place rests that a key has left.
const REST: Time = Time::from_secs(40);

/// Tables at the last look, and places that keys have left since.
#[derive(Default)]
pub(super) struct Tables {
    last: BTreeMap<PortRef, Vec<PKey>>,
    /// Whose a place was, and when that was seen.
    left: BTreeMap<(PortRef, usize), (u16, Time)>,
}

fn table(simulation: &Simulation, host: PortRef) -> Option<Vec<PKey>> {
    let device = simulation.device(host.node)?;
    Some(device.own_p_keys(host.port).to_vec())
}

impl Tables {
    /// No key has another place than at the last look, and no place another key before it has rested. Tables of hosts that have begun
    /// again begin again.
    pub(super) fn look(
        &mut self,
        simulation: &Simulation,
        hosts: impl Iterator<Item = PortRef>,
        restarted: &mut BTreeSet<PortRef>,
        counts: &mut Counts,
    ) -> Result<(), String> {
        for host in hosts {
            let Some(now) = table(simulation, host) else { continue };
            let before = self.last.insert(host, now.clone()).unwrap_or_default();
            if restarted.remove(&host) {
                self.left.retain(|(of, _), _| *of != host);
                continue;
            }
            self.compare(simulation, host, &before, &now, counts)?;
        }
        Ok(())
    }

    fn compare(
        &mut self,
        simulation: &Simulation,
        host: PortRef,
        before: &[PKey],
        now: &[PKey],
        counts: &mut Counts,
    ) -> Result<(), String> {
        let name = || simulation.fabric().port_name(host);
        for (place, key) in before.iter().enumerate().filter(|(_, key)| key.partition() != 0) {
            let there = now.iter().position(|other| other.partition() == key.partition());
            match there {
                Some(there) if there == place => counts.one("kept"),
                Some(there) => return Err(format!("{}: {key} went from place {place} to {there}", name())),
                None => {
                    self.left.insert((host, place), (key.partition(), simulation.now()));
                    counts.one("left");
                }
            }
        }
        let is_new = |key: PKey| {
            key.partition() != 0 && !before.iter().any(|other| other.partition() == key.partition())
        };
        for (place, key) in now.iter().enumerate().filter(|(_, key)| is_new(**key)) {
            counts.one("joined");
            let Some((whose, at)) = self.left.remove(&(host, place)) else { continue };
            if whose != key.partition() && simulation.now() + LOOK < at + REST {
                return Err(format!("{}: {key} has place {place}, which {whose:#06x} left at {at}", name()));
            }
        }
        Ok(())
    }
}

/// Tables of live hosts hold exactly the keys of the file, and their switches, where they look, let in no other.
pub(super) fn as_the_file_says(
    simulation: &Simulation,
    roles: &Roles,
    file: &Partitions,
    enforced: PartEnforce,
) -> Result<(), String> {
    let fabric = simulation.fabric();
    for host in roles.hosts() {
        let Some(held) = table(simulation, host) else { continue };
        let wanted: BTreeSet<PKey> = keys(file, guid(fabric, host)).collect();
        let leaf = fabric.peer(host).expect("a leaf");
        let filter = simulation.device(leaf.node).expect("it is on").own_p_keys(leaf.port).to_vec();
        let filter = (enforced != PartEnforce::Off).then_some(("its switch", filter));
        for (what, table) in [("the host", held)].into_iter().chain(filter) {
            let has: BTreeSet<PKey> = table.into_iter().filter(|key| key.partition() != 0).collect();
            if has != wanted {
                let name = fabric.port_name(host);
                return Err(format!("{name}: {what} has {has:?} instead of {wanted:?}"));
            }
        }
    }
    Ok(())
}
