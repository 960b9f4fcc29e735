//! Notices of machines that have another LID after their move: what agents receive is the closed form's, where each function subscribes
//! and where each server does, and a GUID that comes back with the LID that it had is no move (paper 004, algorithms 1 to 3).

use weft_host::stack::{Guids, Notices};
use weft_host::traffic::{Destination, FlowSpec};
use weft_machine::Time;
use weft_sim::{SimOptions, Simulation};
use weft_sm::migrations::{Servers, Subscribers, datagrams};
use weft_sm::signalling::Signalled;
use weft_sm::{LidScheme, Signalling};
use weft_topology::{NodeIndex, PortRef, Virtualised, parse};
use weft_vm::{Create, Detach, Hypervisor, Migrate, Reply, Request, Route};
use weft_wire::{Guid, Lid, Mad, Method, SaMad, SaRecord, ServiceRecord};

use crate::support::vms::{KEY, open, port, report, stream};

const TOPOLOGY: &str = include_str!("../../../../topologies/live-migration.topo");
const HOSTS: [&str; 3] = ["A", "B", "C"];
/// The GUID of the machine that moves.
const GUID: Guid = Guid(0x0277_0000_0000_0001);
const PATIENCE: Time = Time::from_secs(130);
const SETTLE: Time = Time::from_secs(5);

struct Site {
    simulation: Simulation,
    /// Machines of each server.
    machines: u64,
    guids: Guids,
}

impl Site {
    /// Machines on each of three servers, all of which send to `web`, the first one of A.
    fn new(machines: u64, notices: Notices, signal_moves: bool) -> Self {
        Self::with(machines, notices, signal_moves, Guids::Static)
    }

    fn with(machines: u64, notices: Notices, signal_moves: bool, guids: Guids) -> Self {
        let vfs = machines as u16 + 1;
        let Virtualised { fabric, adapters } =
            parse("live-migration.topo", TOPOLOGY).unwrap().virtualised(vfs).unwrap();
        let mut options = SimOptions { hosts: true, recabling: true, adapters, ..SimOptions::default() };
        options.with_vmm = true;
        options.empty_slots = true;
        options.sm.keys.sa_key = KEY;
        (options.sm.vm_lids.scheme, options.sm.vm_lids.vm_lids_stay) = (LidScheme::Dynamic, true);
        (options.sm.sa.signalling, options.sm.sa.signal_moves) = (Signalling::Off, signal_moves);
        (options.host.notices, options.host.wakes_peers, options.host.guids) = (notices, false, guids);
        let data = &mut options.device.data;
        (data.shaped, data.dilation, options.host.dilation) = (true, 1000, 1000);
        let mut site = Self { simulation: Simulation::new(&fabric, options, 1), machines, guids };
        site.simulation.run_until_quiet(PATIENCE).unwrap();
        site.create("web", "A");
        for (number, host) in (1..).zip(HOSTS.iter().flat_map(|host| vec![*host; machines as usize]).skip(1))
        {
            site.create(&format!("peer-{number}"), host);
        }
        site.pass(SETTLE);
        let web = site.at("web");
        for number in 1..=site.peers() {
            let from = site.at(&format!("peer-{number}"));
            let to = match guids {
                Guids::Static => Destination::One(GUID),
                Guids::Dynamic => Destination::Named("web".to_owned()),
            };
            open(&mut site.simulation, from, web, FlowSpec { to, ..stream(number, GUID) });
        }
        site.pass(SETTLE);
        site
    }

    fn peers(&self) -> u32 {
        (3 * self.machines - 1) as u32
    }

    fn servers(&self) -> Servers {
        Servers { servers: 3, machines: 3 * self.machines }
    }

    fn ask(&mut self, request: Request) -> Reply {
        let id = self.simulation.ask_vmm(request).unwrap();
        let limit = self.simulation.now() + PATIENCE;
        while self.simulation.vmm_reply(id).is_none() {
            assert!(self.simulation.now() < limit, "no answer within {PATIENCE}");
            self.pass(Time::from_millis(10));
        }
        self.simulation.vmm_reply(id).unwrap().1.clone().unwrap()
    }

    fn create(&mut self, name: &str, host: &str) {
        let guid = Some(GUID).filter(|_| name == "web" && self.guids == Guids::Static);
        let made = Create { guid, ..Create::new(name.parse().unwrap(), Some(host.parse().unwrap())) };
        assert!(matches!(self.ask(Request::Create(made)), Reply::Created(_)));
    }

    fn destroy(&mut self, name: &str) {
        assert!(matches!(self.ask(Request::Destroy(name.parse().unwrap())), Reply::Destroyed));
        self.pass(SETTLE);
    }

    fn migrate(&mut self, host: &str) {
        self.migrate_for(host, Time::from_secs(2));
    }

    /// Moves the machine, which is away for so long.
    fn migrate_for(&mut self, host: &str, stop_copy: Time) {
        let (vm, host) = ("web".parse().unwrap(), host.parse().unwrap());
        let hypervisor = Hypervisor { stop_copy, ..Hypervisor::default() };
        let ask =
            Migrate { vm, host, cold: false, detach: Detach::Late, hypervisor, route: Route::default() };
        assert!(matches!(self.ask(Request::Migrate(ask)), Reply::Migrated(_)));
        self.pass(SETTLE);
    }

    /// The GUIDs of those who offer a service.
    fn offered(&mut self) -> Vec<Guid> {
        let mut ask = Mad::default();
        SaMad::method.set(&mut ask.0, Method::GetTable);
        SaMad::attribute_id.set(&mut ask.0, ServiceRecord::ATTRIBUTE);
        let manager = self.simulation.sm_port().node;
        let answer = self.simulation.ask_sa(manager, &ask).expect("an answer");
        let records = answer.records.chunks(usize::from(ServiceRecord::OFFSET) * 8);
        records.map(|bytes| ServiceRecord::from_bytes(bytes).service_gid.guid).collect()
    }

    fn pass(&mut self, time: Time) {
        self.simulation.run_until(self.simulation.now() + time);
    }

    fn at(&self, vm: &str) -> PortRef {
        port(self.simulation.find_vm(vm).unwrap().0)
    }

    fn lid(&self) -> Lid {
        let at = self.at("web");
        self.simulation.device(at.node).unwrap().port_snapshot(at.port).unwrap().lid
    }

    fn port_guid(&self) -> Guid {
        self.simulation.slot(self.at("web").node).unwrap().identity.port_guid
    }

    fn signalled(&self) -> Signalled {
        self.simulation.sm().unwrap().sa_counts().signalled()
    }

    /// Subscriptions that stand, of all hosts.
    fn subscriptions(&self) -> u64 {
        let adapters = &self.simulation.options().adapters;
        let nodes: Vec<NodeIndex> =
            adapters.iter().flat_map(|one| one.vfs.iter().chain([&one.pf])).copied().collect();
        let stacks = nodes.into_iter().filter_map(|node| self.simulation.stack(port(node)));
        stacks.map(|stack| stack.counts().subscriptions).sum()
    }

    /// What each peer has heard of moves.
    fn heard(&self) -> Vec<u64> {
        let peers = (1..=self.peers()).map(|number| self.at(&format!("peer-{number}")));
        peers.map(|at| self.simulation.stack(at).unwrap().suspension_counts().moves_heard).collect()
    }

    /// Whether each peer's flow delivers bytes in a second.
    fn flows(&mut self) -> Vec<bool> {
        let web = self.at("web");
        let bytes = |site: &Self| -> Vec<u64> {
            (1..=site.peers()).map(|flow| report(&site.simulation, web, flow, false).bytes).collect()
        };
        let before = bytes(self);
        self.pass(Time::from_secs(1));
        before.iter().zip(bytes(self)).map(|(before, after)| after > *before).collect()
    }
}

fn costs(machines: u64, notices: Notices, subscribers: Subscribers) {
    let case = format!("{machines} machines a server, {notices}");
    let mut site = Site::new(machines, notices, true);
    let wanted = datagrams(subscribers, site.servers());
    assert_eq!(2 * site.subscriptions(), wanted.start, "{case}: subscriptions and their answers");
    // All machines have booted for the first time.
    assert_eq!(site.signalled().reports, 0, "{case}");
    for (moves, host) in (1..).zip(["C", "B", "A"]) {
        let (lid, before) = (site.lid(), site.signalled());
        site.migrate(host);
        assert_ne!(site.lid(), lid, "{case}: the LID stays with the function");
        let now = site.signalled().since(&before);
        let signalled =
            Signalled { reports: wanted.reports, responses: wanted.responses, ..Signalled::default() };
        assert_eq!(now, signalled, "{case}, to {host}");
        assert_eq!(2 * site.subscriptions(), wanted.start, "{case}, to {host}");
        assert!(site.heard().iter().all(|heard| *heard == moves), "{case}, to {host}: {:?}", site.heard());
        assert!(site.flows().iter().all(|goes_on| *goes_on), "{case}, to {host}");
    }
}

#[test]
fn a_move_costs_a_notice_for_each_function_that_subscribes() {
    (1..=3).for_each(|machines| costs(machines, Notices::Repath, Subscribers::Functions));
}

#[test]
fn a_move_costs_a_notice_for_each_server_that_hands_it_on() {
    (1..=3).for_each(|machines| costs(machines, Notices::Server, Subscribers::Servers));
}

#[test]
fn without_signalling_no_flow_comes_back() {
    let mut site = Site::new(1, Notices::Repath, false);
    assert_eq!(site.flows(), [true, true]);
    site.migrate("C");
    assert_eq!((site.signalled().reports, site.flows()), (0, vec![false, false]));
}

/// Dynamic vGUIDs (paper 004, section III-A): no notice helps, as the machine has another GUID. Each peer asks for the name once, after the
/// acknowledgement timeout of 4 s, which is longer than the machine is away, and for the path to the GUID that the answer has. The machine asks
/// for its own name once.
#[test]
fn a_move_with_another_guid_costs_a_name_and_a_path_a_peer() {
    for machines in 1..=3 {
        let mut site = Site::with(machines, Notices::None, false, Guids::Dynamic);
        let peers = u64::from(site.peers());
        let asked = site.signalled();
        // Each machine asks who has its own name before it offers it, and the peers ask for that of `web`.
        assert_eq!(
            (asked.names, asked.paths),
            (2 * peers + 1, peers),
            "{machines} machines a server, at first"
        );
        for host in ["C", "B", "A"] {
            let case = format!("{machines} machines a server, to {host}");
            let (lid, guid, before) = (site.lid(), site.port_guid(), site.signalled());
            site.migrate(host);
            assert!(
                site.lid() != lid && site.port_guid() != guid,
                "{case}: LID and GUID stay with the function"
            );
            let wanted = Signalled { names: peers + 1, paths: peers, ..Signalled::default() };
            assert_eq!(site.signalled().since(&before), wanted, "{case}");
            assert!(site.flows().iter().all(|goes_on| *goes_on), "{case}");
        }
    }
}

/// While a machine is away its peers ask after each timeout and find where it was; it is away for 10 s, more than two timeouts of 4 s.
#[test]
fn a_name_is_looked_up_until_the_machine_is_back() {
    let mut site = Site::with(1, Notices::None, false, Guids::Dynamic);
    let before = site.signalled();
    site.migrate_for("C", Time::from_secs(10));
    let asked = site.signalled().since(&before);
    let peers = u64::from(site.peers());
    assert_eq!(
        (asked.names, asked.paths),
        (3 * peers + 1, peers),
        "after 4, 8 and 12 s, the path after the last, and the machine once"
    );
    assert!(site.flows().iter().all(|goes_on| *goes_on));
    // Two machines of one name never are: the record of the old place is withdrawn.
    site.migrate("B");
    assert!(site.flows().iter().all(|goes_on| *goes_on));
}

/// The record of a machine that is destroyed, or shut down for a cold move, goes with its function: whoever has the name next is found.
#[test]
fn a_machine_created_anew_is_found_where_it_is() {
    let mut site = Site::with(1, Notices::None, false, Guids::Dynamic);
    let first = site.port_guid();
    assert!(site.offered().contains(&first));
    site.destroy("web");
    assert!(!site.offered().contains(&first), "its function is gone");
    site.create("web", "C");
    site.pass(SETTLE);
    let flows = |site: &mut Site, flow| {
        let (from, web) = (site.at("peer-1"), site.at("web"));
        let to = Destination::Named("web".to_owned());
        open(&mut site.simulation, from, web, FlowSpec { to, ..stream(flow, GUID) });
        site.pass(SETTLE);
        report(&site.simulation, web, flow, false).bytes
    };
    assert!(site.port_guid() != first && flows(&mut site, 100) > 0, "created elsewhere");
    let second = site.port_guid();
    let (vm, host) = ("web".parse().unwrap(), "B".parse().unwrap());
    let hypervisor = Hypervisor::default();
    let cold = Migrate { vm, host, cold: true, detach: Detach::Late, hypervisor, route: Route::default() };
    assert!(matches!(site.ask(Request::Migrate(cold)), Reply::Migrated(_)));
    site.pass(SETTLE);
    assert!(site.port_guid() != second && flows(&mut site, 101) > 0, "begun again elsewhere");
}

/// Algorithm 1's cases: a GUID that is set again where it was is a boot, and in another slot a move, also of a machine that was shut down.
#[test]
fn a_guid_is_signalled_only_when_its_lid_is_another() {
    let mut site = Site::new(1, Notices::Server, true);
    let first = site.lid();
    for (host, reports) in [("A", 0), ("B", 3), ("B", 3), ("A", 6)] {
        site.destroy("web");
        site.create("web", host);
        site.pass(SETTLE);
        assert_eq!(site.signalled().reports, reports, "on {host}");
    }
    assert_eq!(site.lid(), first, "the LID of A's function is the same again");
}
