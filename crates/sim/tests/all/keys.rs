//! M_Keys that devices keep from before, of another manager or of the same one.

use weft_machine::Time;
use weft_mgmt::{DirectedPath, Request, SmpRoute};
use weft_sim::{Fault, Process, SimOptions, Simulation};
use weft_sm::GuidToLid;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{AttributeId, MKey, Method, PhysState, PortInfo, PortNum, PortState, Smp, status};

const LIMIT: Time = Time::from_secs(300);
const OURS: MKey = MKey(0x1234);
const THEIRS: MKey = MKey(0xbad);

fn tree() -> Fabric {
    xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).expect("a tree")
}

/// A fabric whose links are trained and that no one manages yet; its manager will protect it.
fn unmanaged(fabric: &Fabric, level: u8) -> Simulation {
    unmanaged_by(fabric, OURS, level)
}

fn unmanaged_by(fabric: &Fabric, m_key: MKey, level: u8) -> Simulation {
    let mut options = SimOptions { with_sm: false, ..SimOptions::default() };
    (options.sm.keys.m_key, options.sm.keys.m_key_protection, options.sm.keys.m_key_lease_s) =
        (m_key, level, 60);
    let trained = options.sm_start + options.training + options.training_jitter;
    let mut simulation = Simulation::new(fabric, options, 1);
    simulation.run_until(trained);
    simulation
}

fn start(simulation: &mut Simulation) {
    simulation.set_guid2lid(GuidToLid::default());
    simulation.apply(Fault::Restart(Process::Sm));
}

fn quiet(simulation: &mut Simulation) {
    simulation.run_until_quiet(simulation.now() + LIMIT).unwrap_or_else(|error| panic!("{error}"));
    let (at, last) = simulation.summaries().last().expect("a sweep");
    assert!(last.complete, "{at}: {last:?}");
    simulation.check().unwrap_or_else(|violations| panic!("{violations:?}"));
}

/// PortInfo of a node's own end port, as a program at the node gets or sets it by showing `m_key`.
fn port_info(
    simulation: &mut Simulation,
    node: NodeIndex,
    m_key: MKey,
    set: Option<PortInfo>,
) -> Option<PortInfo> {
    let (attribute, modifier) = (AttributeId::PortInfo, 0);
    let request = match set {
        Some(info) => Request::set(attribute, modifier, &info.encode()),
        None => Request::get(attribute, modifier),
    };
    let mut request = request.by(&SmpRoute::Directed(DirectedPath::HERE));
    Smp::m_key.set(&mut request.mad.0, m_key);
    let answer = simulation.ask(node, request)?;
    assert_eq!((answer.mad.method(), answer.mad.status()), (Method::GetResp, status::OK));
    Some(PortInfo::decode(answer.mad.smp_attribute()))
}

/// Another manager was here: the node keeps its key.
fn keep(simulation: &mut Simulation, node: NodeIndex, level: u8, lease_s: u16) {
    let now = port_info(simulation, node, MKey(0), None).expect("nothing is protected yet");
    let (port_state, port_physical_state) = (PortState::NoChange, PhysState::NoChange);
    let wanted = PortInfo { m_key: THEIRS, m_key_protect_bits: level, m_key_lease_period: lease_s, ..now };
    let wanted = PortInfo { port_state, port_physical_state, ..wanted };
    let kept = port_info(simulation, node, MKey(0), Some(wanted)).expect("it takes any key");
    assert_eq!((kept.m_key, kept.m_key_protect_bits), (THEIRS, level));
}

fn key_of(simulation: &mut Simulation, node: NodeIndex) -> Option<MKey> {
    port_info(simulation, node, OURS, None).map(|info| info.m_key)
}

/// The last switch and the last host: the manager is at the first.
fn far(fabric: &Fabric) -> (NodeIndex, NodeIndex) {
    let switch = fabric.switches().filter(|(_, node)| node.cabled_ports().count() > 2).last();
    (switch.or(fabric.switches().last()).unwrap().0, fabric.hosts().last().unwrap().0)
}

/// At level 0 a device shows its key, so that another manager can take it over; so it does, and gives its own.
#[test]
fn a_key_that_is_shown_is_taken_over() {
    let fabric = tree();
    let (switch, host) = far(&fabric);
    for level in 0..4 {
        let mut simulation = unmanaged(&fabric, level);
        keep(&mut simulation, switch, 0, 0);
        keep(&mut simulation, host, 0, 0);
        start(&mut simulation);
        quiet(&mut simulation);
        for node in [switch, host] {
            let info = port_info(&mut simulation, node, OURS, None).expect("the key is right");
            let protection = (info.m_key, info.m_key_protect_bits, info.m_key_lease_period);
            assert_eq!(protection, (OURS, level, 60), "{}", fabric.node(node).id);
            let stranger = port_info(&mut simulation, node, MKey(1), None).map(|info| info.m_key);
            assert_eq!(stranger, [Some(OURS), Some(MKey(0)), None, None][usize::from(level)]);
        }
        simulation.probe().unwrap_or_else(|violations| panic!("{violations:?}"));
    }
}

/// A device that hides another key is left alone, and everything else comes up. A manager without a key, to which a hidden
/// key looks like its own, knows it too.
#[test]
fn a_key_that_is_hidden_stops_nothing_else() {
    let fabric = tree();
    let (_, host) = far(&fabric);
    for (ours, level) in [OURS, MKey(0)].into_iter().flat_map(|ours| (1..4).map(move |level| (ours, level))) {
        let mut simulation = unmanaged_by(&fabric, ours, u8::from(ours != MKey(0)));
        keep(&mut simulation, host, level, 0);
        start(&mut simulation);
        simulation.run_until(simulation.now() + Time::from_secs(40));
        let last = simulation.summaries().last().expect("sweeps end").1.clone();
        assert!(!last.complete, "level {level}");
        assert!(last.took < Time::from_secs(5), "level {level}: {}", last.took);
        // From level 2 on it does not even say that it has a key.
        assert_eq!(last.ports_refused > 0, level == 1, "{ours:?}, level {level}: {last:?}");
        for (node, _) in fabric.hosts().filter(|(node, _)| *node != host) {
            let port = simulation.device(node).unwrap().port_snapshot(PortNum(1)).unwrap();
            assert_eq!(
                port.state,
                PortState::Active,
                "level {level}, {}",
                fabric.port_name(PortRef::new(node, PortNum(1)))
            );
        }
        let kept = port_info(&mut simulation, host, THEIRS, None).expect("the key is right");
        assert_eq!((kept.m_key, kept.lid.0), (THEIRS, 0), "nothing was written");
    }
}

/// When the lease that the manager's own attempts start has run out, the key is shown, and the device taken over, its own
/// adapter too.
#[test]
fn a_lease_that_runs_out_lets_the_manager_in() {
    let fabric = tree();
    let (switch, host) = far(&fabric);
    let own = fabric.hosts().next().unwrap().0;
    for level in 1..4 {
        let mut simulation = unmanaged(&fabric, level);
        keep(&mut simulation, switch, level, 3);
        keep(&mut simulation, host, level, 3);
        keep(&mut simulation, own, level, 3);
        start(&mut simulation);
        // Leases run out one after the other: what lies behind a silent device is asked when that one answers.
        simulation.run_until(simulation.now() + Time::from_secs(30));
        quiet(&mut simulation);
        assert_eq!(key_of(&mut simulation, switch), Some(OURS), "level {level}");
        assert_eq!(key_of(&mut simulation, host), Some(OURS), "level {level}");
        assert_eq!(key_of(&mut simulation, own), Some(OURS), "level {level}");
        simulation.probe().unwrap_or_else(|violations| panic!("{violations:?}"));
    }
}

/// A manager that starts again with the same key finds nothing to write.
#[test]
fn the_same_key_takes_over_a_protected_fabric() {
    for level in 0..4 {
        let mut simulation = unmanaged(&tree(), level);
        start(&mut simulation);
        quiet(&mut simulation);
        let (lfts, lids) = (simulation.lft_writes(), simulation.lid_changes());
        simulation.apply(Fault::Kill(Process::Sm));
        simulation.apply(Fault::Restart(Process::Sm));
        quiet(&mut simulation);
        assert_eq!((simulation.lft_writes(), simulation.lid_changes()), (lfts, lids), "level {level}");
        simulation.probe().unwrap_or_else(|violations| panic!("{violations:?}"));
    }
}
