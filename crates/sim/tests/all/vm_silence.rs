//! For how long peers of a machine hear nothing of it when it moves, judged by datagrams that they
//! send to it all the time: from its old host, from its old leaf, and from other leaves.
//!
//! `WEFT_SEED` replays one order of moves, `WEFT_MOVES` says how many (6 if not said; `cargo xtask long` makes 100).

use crate::support::rest;
use crate::support::vms;

use std::io::Write as _;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rest::quiet;
use vms::{KEY, open, port, stream};
use weft_host::traffic::{FlowId, FlowSpec, Transport};
use weft_machine::Time;
use weft_sim::{SimOptions, Simulation};
use weft_sm::LidScheme;
use weft_topology::generate::{Damage, GenerateOptions, degraded, xgft};
use weft_topology::{Fabric, NodeIndex, PortRef, Virtualised};
use weft_vm::{
    Create, Detach, HostName, Hypervisor, Migrate, Migration, MoveCounts, Reply, Request, RequestId, Route,
};

/// What a peer may hear nothing for that no late row keeps waiting.
const PROMPT_MAX: Time = Time::from_millis(50);

/// OpenSM silences everyone for 1.0 to 1.2 s by its full reroute; one switch holds a packet for 1.074 s.
const LATE_MAX: Time = Time::from_millis(1100);

/// Leaves with a peer at most.
const PEERS_MAX: usize = 8;

/// How long a request may take, which waits for packets of earlier moves while the machine runs.
const PATIENCE: Time = Time::from_secs(130);

/// From one look to the next.
const LOOK: Time = Time::from_millis(1);

struct Site {
    simulation: Simulation,
    whole: Virtualised,
    /// Where the machine is.
    host: usize,
    /// The peers: physical functions, each with the number of its flow.
    peers: Vec<(usize, u32)>,
    /// Those of their hosts that a machine leaves by plans with late rows.
    homes: Vec<usize>,
}

impl Site {
    fn new(physical: &Fabric, engine: &str) -> Self {
        let whole = physical.virtualised(3).unwrap();
        let adapters = whole.adapters.clone();
        let mut options = SimOptions { hosts: true, recabling: true, adapters, ..SimOptions::default() };
        options.sm.routing.chain = engine.parse().unwrap();
        (options.sm.keys.sa_key, options.with_vmm) = (KEY, true);
        (options.empty_slots, options.sm.vm_lids.scheme) = (true, LidScheme::Dynamic);
        options.device.data.shaped = true;
        let mut simulation = Simulation::new(&whole.fabric, options, 7);
        quiet(&mut simulation);
        Self { simulation, whole, host: 0, peers: Vec::new(), homes: Vec::new() }
    }

    /// What the VM manager calls a host.
    fn name(&self, host: usize) -> HostName {
        self.simulation.host_name(self.whole.adapters[host].pf).unwrap()
    }

    fn leaf(&self, host: usize) -> NodeIndex {
        let uplink = PortRef::new(self.whole.adapters[host].vswitch, weft_wire::PortNum(1));
        self.whole.fabric.peer(uplink).unwrap().node
    }

    /// The port that the machine has now.
    fn machine(&self) -> PortRef {
        let slots = self.simulation.slots();
        let mut here = slots.filter(|(_, slot)| slot.vm.as_deref() == Some("web")).map(|(node, _)| node);
        port(here.next().unwrap())
    }

    #[track_caller]
    fn answer(&mut self, id: RequestId) -> Reply {
        let limit = self.simulation.now() + PATIENCE;
        while self.simulation.vmm_reply(id).is_none() {
            assert!(self.simulation.now() < limit, "no answer within {PATIENCE}");
            self.pass(LOOK);
        }
        self.simulation.vmm_reply(id).unwrap().1.clone().unwrap()
    }

    /// One peer for each leaf, in an order that is drawn, the first at the machine's own host.
    fn listen_from_all_leaves(&mut self, random: &mut Pcg64) {
        let mut order: Vec<usize> =
            (0..self.whole.adapters.len()).filter(|host| *host != self.host).collect();
        order.sort_by_cached_key(|_| random.random::<u64>());
        let mut peers: Vec<usize> = vec![self.host];
        for host in order {
            if peers.iter().all(|other| self.leaf(*other) != self.leaf(host)) && peers.len() < PEERS_MAX {
                peers.push(host);
            }
        }
        // Of the leaf that it leaves first, another host too.
        let beside = (0..self.whole.adapters.len())
            .find(|host| *host != self.host && self.leaf(*host) == self.leaf(self.host));
        peers.extend(beside);
        self.listen(&peers);
    }

    /// Where the machine moves to: by every other move to one of the hosts that it leaves by late rows, if there are any.
    fn drawn(&self, nth: u64, random: &mut Pcg64) -> usize {
        let homes: Vec<usize> = self.homes.iter().copied().filter(|host| *host != self.host).collect();
        match homes.len() {
            count if count > 0 && nth.is_multiple_of(2) => homes[random.random_range(0..count)],
            _ => self.other_than(self.host, random),
        }
    }

    fn pass(&mut self, span: Time) {
        self.simulation.run_until(self.simulation.now() + span);
    }

    fn create(&mut self) {
        let made = Create::new("web".parse().unwrap(), Some(self.name(self.host)));
        let id = self.simulation.ask_vmm(Request::Create(made)).unwrap();
        self.answer(id);
        quiet(&mut self.simulation);
    }

    /// Which of the peers' hosts machines leave by plans with late rows, found by the plan of another machine that is there.
    fn find_homes(&mut self, random: &mut Pcg64) {
        let count = Some(self.whole.adapters.len() as u32);
        let fleet = Create { count, ..Create::new("other".parse().unwrap(), None) };
        let id = self.simulation.ask_vmm(Request::Create(fleet)).unwrap();
        self.answer(id);
        quiet(&mut self.simulation);
        for (host, _) in self.peers.clone() {
            let inside = self.whole.adapters[host].vfs.clone();
            let slots = self.simulation.slots().filter(|(node, _)| inside.contains(node));
            let vms: Vec<String> =
                slots.filter_map(|(_, slot)| slot.vm.as_deref().map(str::to_owned)).collect();
            let counts = self.plan(&vms[0], self.other_than(host, random));
            if counts.late + counts.detours > 0 {
                self.homes.push(host);
            }
        }
    }

    /// Another host than one.
    fn other_than(&self, host: usize, random: &mut Pcg64) -> usize {
        let hosts = self.whole.adapters.len();
        (host + random.random_range(1..hosts)) % hosts
    }

    /// Each of these hosts sends a datagram every four milliseconds.
    fn listen(&mut self, hosts: &[usize]) {
        let machine = self.machine();
        let to = self.simulation.fabric().port(machine).unwrap().guid;
        for (number, host) in (1..).zip(hosts) {
            let spec = FlowSpec {
                transport: Transport::UnreliableDatagram,
                bytes_per_second: Some(64_000),
                message_bytes: 256,
                packet_bytes: 256,
                ..stream(number, to)
            };
            open(&mut self.simulation, port(self.whole.adapters[*host].pf), machine, spec);
            self.peers.push((*host, number));
        }
        self.pass(Time::from_secs(1));
    }

    /// By peer: how many datagrams have arrived, as far as a slot knows that the machine is in.
    fn heard(&self) -> Vec<u64> {
        let slots = self.simulation.slots().filter(|(_, slot)| slot.vm.as_deref() == Some("web"));
        let stacks = slots.filter_map(|(node, _)| self.simulation.stack(port(node)));
        let reports: Vec<_> = stacks.flat_map(weft_host::stack::Stack::reports).collect();
        let packets = |flow: u32| {
            let own = reports.iter().filter(|report| report.flow == FlowId(flow) && !report.sender);
            own.map(|report| report.packets).max().unwrap_or(0)
        };
        self.peers.iter().map(|(_, flow)| packets(*flow)).collect()
    }

    /// What a move would come to.
    fn plan(&mut self, vm: &str, to: usize) -> MoveCounts {
        let (vm, host) = (vm.parse().unwrap(), self.name(to));
        let id = self.simulation.ask_vmm(Request::Plan { vm, host, route: Route::default() }).unwrap();
        match self.answer(id) {
            Reply::Plan(plan) => plan.counts,
            other => panic!("{other:?}"),
        }
    }

    /// Moves the machine, and says for how long it heard nothing of each peer at most, from the moment at which it is frozen on.
    fn moved(&mut self, to: usize, stop_copy: Time) -> (Migration, Vec<Time>) {
        let request = Request::Migrate(Migrate {
            vm: "web".parse().unwrap(),
            host: self.name(to),
            cold: false,
            detach: Detach::Late,
            hypervisor: Hypervisor { stop_copy, ..Hypervisor::default() },
            route: Route::default(),
        });
        let id = self.simulation.ask_vmm(request).unwrap();
        let mut last: Vec<(u64, Time)> =
            self.heard().into_iter().map(|packets| (packets, self.simulation.now())).collect();
        let mut longest = vec![Time::ZERO; self.peers.len()];
        let limit = self.simulation.now() + PATIENCE;
        let mut until = None;
        while until.is_none_or(|until| self.simulation.now() < until) {
            assert!(self.simulation.now() < limit, "the move does not end");
            self.pass(LOOK);
            let now = self.simulation.now();
            if let Some((_, Ok(Reply::Migrated(moved)))) = self.simulation.vmm_reply(id)
                && until.is_none()
            {
                // A second more than the plan says shows a host that is silent for longer.
                let silence = moved.counts.as_ref().map_or(Time::ZERO, |counts| counts.silence);
                until = Some(now + silence + Time::from_secs(1));
            }
            let heard = self.heard();
            for ((heard, last), longest) in heard.into_iter().zip(&mut last).zip(&mut longest) {
                if heard > last.0 {
                    *last = (heard, now);
                }
                *longest = (*longest).max(now - last.1);
            }
        }
        self.host = to;
        match self.simulation.vmm_reply(id).unwrap().1.clone().unwrap() {
            Reply::Migrated(migration) => (*migration, longest),
            other => panic!("{other:?}"),
        }
    }
}

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap())
}

/// Every peer is heard again soon, and those at silent switches by the time that the plan names.
fn judge(what: &str, physical: &Fabric, engine: &str, most: Time) -> [usize; 2] {
    let (seed, moves) = (number("WEFT_SEED", 1), number("WEFT_MOVES", 6));
    let mut random = Pcg64::seed_from_u64(seed);
    let mut site = Site::new(physical, engine);
    site.create();
    site.listen_from_all_leaves(&mut random);
    site.find_homes(&mut random);
    let [mut late, mut silent] = [0; 2];
    for nth in 0..moves {
        let to = site.drawn(nth, &mut random);
        let (migration, longest) = site.moved(to, Time::ZERO);
        let counts = migration.counts.clone().unwrap();
        let bound = if counts.silent > 0 { counts.silence + PROMPT_MAX } else { PROMPT_MAX };
        let text = format!("{what}, seed {seed}, move {nth} to host {to}: {longest:?}, {counts:?}");
        assert!(longest.iter().all(|time| *time <= bound), "longer than {bound}: {text}");
        assert!(longest.iter().all(|time| *time <= most), "{text}");
        assert_eq!(migration.silent.len(), counts.silent as usize, "each silent switch is named: {text}");
        // The downtime that is reported is until the last is served.
        let downtime = migration.stages.downtime.unwrap();
        assert!(longest.iter().all(|time| *time <= downtime + PROMPT_MAX), "{downtime}: {text}");
        late += usize::from(counts.late + counts.detours > 0);
        silent += longest.iter().filter(|time| **time > PROMPT_MAX).count();
        quiet(&mut site.simulation);
    }
    let _ = writeln!(
        std::io::stderr(),
        "{what}: {late} of {moves} with late rows, {silent} peers waited for them"
    );
    [late, silent]
}

#[test]
fn peers_on_a_damaged_tree_wait_no_longer_than_the_plan_says() {
    let [late, silent] = judge("a damaged tree", &damaged(), "ftree", LATE_MAX);
    assert!(late > 0 && silent > 0, "no move had late rows");
}

#[test]
fn peers_on_a_whole_tree_never_wait() {
    let whole = xgft(&[4, 4], &[1, 2], &GenerateOptions::default()).unwrap();
    assert_eq!(judge("a whole tree", &whole, "ftree", PROMPT_MAX), [0, 0]);
}

/// On three levels the wait is as long as the way back from the last switch that is rewritten, which the plan says.
#[test]
fn peers_on_three_levels_wait_no_longer_than_the_plan_says() {
    let whole = xgft(&[3, 3, 3], &[1, 3, 3], &GenerateOptions::default()).unwrap();
    let tree = degraded(&whole, Damage { cables: 6, switches: 0 }, 1).unwrap();
    let [late, silent] = judge("three damaged levels", &tree, "ftree", PATIENCE);
    assert!(late > 0 && silent > 0, "no move had late rows");
}

#[test]
fn peers_on_x5_wait_no_longer_than_opensm_s() {
    let text = include_str!("../../../../topologies/psmn-x5.topo");
    let x5 = weft_topology::parse("psmn-x5.topo", text).unwrap();
    let [late, silent] = judge("X5", &x5, "updn", LATE_MAX);
    assert!(late as u64 * 2 >= number("WEFT_MOVES", 6) && silent > 0, "{late} moves had late rows");
}

/// What hosts wait for at silent switches passes while memory is copied, and only what exceeds the copy is felt.
#[test]
fn a_drain_within_the_stop_copy_is_not_felt() {
    let tree = damaged();
    for stop_copy in [0, 200, 2000].map(Time::from_millis) {
        let mut site = Site::new(&tree, "ftree");
        site.create();
        site.listen_from_all_leaves(&mut Pcg64::seed_from_u64(1));
        let to = (1..).find(|to| site.plan("web", *to).silent > 0).unwrap();
        let (migration, longest) = site.moved(to, stop_copy);
        let counts = migration.counts.as_ref().unwrap();
        let text = format!("{stop_copy}, to host {to}: {longest:?}, {migration:?}");
        // One switch holds a packet for 1.074 s (LifeTimeValue 18).
        assert_eq!(counts.silence, Time::from_micros(1_073_742), "{text}");
        let last = stop_copy.max(counts.silence);
        assert!(longest.iter().all(|time| *time <= last + PROMPT_MAX), "{text}");
        // The first peer is the old host, which is the one that waits; all others wait for the copy alone.
        let waits = |time: &&Time| **time > stop_copy + PROMPT_MAX;
        let expected = usize::from(counts.silence > stop_copy + PROMPT_MAX);
        assert_eq!(longest.iter().filter(waits).count(), expected, "{text}");
        assert!(longest[0] + PROMPT_MAX >= last, "{text}");
        let stages = migration.stages;
        let left = counts.silence.saturating_sub(stop_copy);
        let (after, downtime) = (stages.silent_after.unwrap(), stages.downtime.unwrap());
        assert!(after <= left + PROMPT_MAX && left <= after + PROMPT_MAX, "{text}");
        assert!(downtime >= last && downtime <= last + PROMPT_MAX, "{text}");
    }
}

/// The same as on a tree of which no plan has late rows.
#[test]
fn a_stop_copy_without_late_rows_is_as_long() {
    let whole = xgft(&[4, 4], &[1, 2], &GenerateOptions::default()).unwrap();
    let mut site = Site::new(&whole, "ftree");
    site.create();
    site.listen_from_all_leaves(&mut Pcg64::seed_from_u64(1));
    let stop_copy = Time::from_millis(2000);
    let (migration, longest) = site.moved(9, stop_copy);
    assert_eq!((migration.counts.unwrap().silent, migration.stages.silent_after), (0, None));
    assert!(longest.iter().all(|time| *time >= stop_copy && *time <= stop_copy + PROMPT_MAX), "{longest:?}");
}

/// Six leaves of four hosts, and four spines, without some of the cables.
fn damaged() -> Fabric {
    let whole = xgft(&[4, 6], &[1, 4], &GenerateOptions::default()).unwrap();
    degraded(&whole, Damage { cables: 4, switches: 0 }, 1).unwrap()
}
