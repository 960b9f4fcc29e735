//! A master whose process is stopped while a standby takes over and changes partitions, and that goes on.

use weft_machine::Time;
use weft_routing::{Isolation, Member, Partition, Partitions};
use weft_sim::{Fault, Process, Simulation};
use weft_topology::PortRef;
use weft_wire::Guid;

use super::file::guid;
use super::{hosts, options, tree};

/// A host that is a full member of these.
fn file(guid: Guid, keys: &[u16]) -> Partitions {
    let members = vec![Member { guid, full: true }];
    let partition = |key: &u16| Partition {
        name: String::new(),
        pkey: *key,
        members: members.clone(),
        isolation: Isolation::Def,
    };
    Partitions { list: keys.iter().map(partition).collect(), ..Partitions::default() }
}

fn table(simulation: &Simulation, host: PortRef) -> Vec<u16> {
    let keys = simulation.device(host.node).unwrap().own_p_keys(host.port);
    keys.iter().take(6).map(|key| key.partition()).collect()
}

fn pass(simulation: &mut Simulation, seconds: u64) {
    let until = simulation.now() + Time::from_secs(seconds);
    simulation.run_until(until);
}

/// By what it knew, it would give other places to the keys that came meanwhile.
#[test]
fn a_master_that_was_stopped_reads_tables_again() {
    let fabric = tree().unwrap();
    let host = hosts(&fabric)[7];
    let guid = guid(&fabric, host);
    let mut options = options(&fabric);
    options.sm.routing.engine.partitions = Some(file(guid, &[0x10, 0x20, 0x30]));
    let mut simulation = Simulation::new(&fabric, options, 1);
    simulation.run_until_quiet(Time::from_secs(600)).unwrap();
    assert_eq!(table(&simulation, host), [0x7fff, 0x10, 0x20, 0x30, 0, 0]);
    simulation.apply(Fault::Freeze(Process::Sm));
    pass(&mut simulation, 5);
    assert_eq!(simulation.master(), Some(Process::Standby(0)));
    simulation.set_partitions(&file(guid, &[0x10, 0x30, 0x900]));
    pass(&mut simulation, 60);
    assert_eq!(table(&simulation, host), [0x7fff, 0x10, 0x900, 0x30, 0, 0], "place 2 has rested");
    simulation.set_partitions(&file(guid, &[0x10, 0x900]));
    pass(&mut simulation, 5);
    assert_eq!(table(&simulation, host), [0x7fff, 0x10, 0x900, 0, 0, 0]);
    simulation.apply(Fault::Thaw(Process::Sm));
    simulation.set_partitions(&file(guid, &[0x5, 0x10, 0x900]));
    // The one that stood by is still in charge, and knows that place 3 rests and place 4 does not.
    for _ in 0..70 {
        pass(&mut simulation, 1);
        assert_eq!(table(&simulation, host), [0x7fff, 0x10, 0x900, 0, 0x5, 0], "{}", simulation.now());
    }
    assert_eq!(simulation.master(), Some(Process::Sm), "of higher priority");
}
