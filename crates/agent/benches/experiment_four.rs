//! Cost of the sixteen agents of the dFtree experiments III and IV while they carry traffic at rate scale 1/1000: four
//! switches and twelve hosts, an agent each, in threads of one process.
//!
//! `cargo bench -p weft-agent --bench experiment_four` runs experiment IV's flows, and then one flow from every host.
//! Reports processor time as a fraction of a core, packet-hops, flow control packets and lateness.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a program to be watched")]

#[path = "../tests/all/common/mod.rs"]
mod common;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use common::traffic::{bring, get, running, set, tell, weights};
use common::{Running, device, end, free_address};
use weft_agent::AgentConfig;
use weft_agent_config::{AgentPart, CableConfig};
use weft_control::{Answer, Request};
use weft_device::DataPathOptions;
use weft_host::stack::StackOptions;
use weft_host::traffic::{Command, Destination, FlowId, FlowSpec, LearntPath, Transport, Work};
use weft_link::{Authority, CableEnd, Credentials};
use weft_wire::{
    AttributeId, Guid, Lid, LinearForwardingTable, LinkParameters, NodeType, PKey, PathRate, PortInfo,
    PortNum, PortState, ServiceLevel, SwitchInfo,
};

const HOSTS: u64 = 12;
const WARM_UP: Duration = Duration::from_secs(4);
const MEASURED: Duration = Duration::from_secs(10);
const ROOT: Guid = Guid(0x210);
const DDR_4X: LinkParameters = LinkParameters { width: 2, speed: 2, speed_ext: 0 };
const QDR_4X: LinkParameters = LinkParameters { width: 2, speed: 4, speed_ext: 0 };

fn host(number: u64) -> Guid {
    Guid(0x100 + 0x10 * number)
}

fn leaf(number: u64) -> Guid {
    Guid(0x201 + number)
}

fn leaf_of(host: u64) -> u64 {
    (host - 1) / 4
}

/// The link of the root and a leaf that a host's packets come down by, as the paper's table has them.
fn down_link(host: u64) -> u8 {
    (1 + 2 * leaf_of(host) + (host - 1) % 2) as u8
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let agents: Vec<Running> = configs(folder.path()).iter().map(Running::start).collect();
    for agent in &agents {
        agent.config.part.cables.iter().for_each(|cable| agent.await_link(cable.local, true));
    }
    activate(&agents);
    let idle = measure(&agents, Duration::from_secs(3));
    println!("idle: {:.3} of a core", idle.cores);
    let four: &[(u64, u64)] = &[(1, 9), (5, 9), (10, 9), (2, 11)];
    load(&agents, "experiment IV", four, 0);
    let everybody: Vec<_> = (1..=HOSTS).map(|from| (from, (from + 4 - 1) % HOSTS + 1)).collect();
    load(&agents, "every host to the next leaf", &everybody, 100);
    agents.into_iter().for_each(Running::stop);
}

/// Runs flows, tells what they cost, and stops them.
fn load(agents: &[Running], what: &str, flows: &[(u64, u64)], first: u32) {
    let numbered = || (first..).zip(flows).map(|(flow, (from, to))| (FlowId(flow), host(*from), host(*to)));
    for (flow, from, to) in numbered() {
        stream(agents, flow, from, to);
    }
    std::thread::sleep(WARM_UP);
    let told = measure(agents, MEASURED);
    println!("{what}: {told:?}");
    for (flow, from, to) in numbered() {
        let _ = tell(running(agents, from), from, Command::Close { flow });
        let _ = tell(running(agents, to), to, Command::Close { flow });
    }
    std::thread::sleep(WARM_UP);
}

/// What was measured.
#[derive(Debug)]
#[expect(dead_code, reason = "it is printed")]
struct Told {
    cores: f64,
    hops_per_second: f64,
    us_per_hop: f64,
    latest_p50_us: u64,
    latest_p99_us: u64,
    latest_max_us: u64,
}

fn measure(agents: &[Running], window: Duration) -> Told {
    for agent in agents {
        agent.ask(Request::ResetLateness);
    }
    let (before, began, used) = (transmitted(agents), Instant::now(), processor_time());
    std::thread::sleep(window);
    let (elapsed, used) = (began.elapsed().as_secs_f64(), processor_time() - used);
    let hops = (transmitted(agents) - before) as f64;
    let lateness: Vec<_> = agents.iter().map(|agent| agent.status().lateness).collect();
    let worst =
        |of: fn(&weft_control::agent::Lateness) -> u64| lateness.iter().map(of).max().unwrap_or(0) / 1000;
    Told {
        cores: used.as_secs_f64() / elapsed,
        hops_per_second: hops / elapsed,
        us_per_hop: used.as_secs_f64() * 1e6 / hops,
        latest_p50_us: worst(|late| late.p50_ns),
        latest_p99_us: worst(|late| late.p99_ns),
        latest_max_us: worst(|late| late.max_ns),
    }
}

fn transmitted(agents: &[Running]) -> u64 {
    let accounts = common::traffic::accounts(agents);
    accounts.iter().flat_map(|account| &account.lanes).map(|lane| lane.transmitted).sum()
}

/// What this process has used, in steps of 10 ms.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// Every cable, and what its ends enable.
fn cables() -> Vec<(CableEnd, CableEnd, LinkParameters)> {
    let hosts = (1..=HOSTS).map(|number| {
        (end(host(number), 1), end(leaf(leaf_of(number)), ((number - 1) % 4 + 1) as u8), DDR_4X)
    });
    let up = (0..6u8).map(|link| (end(leaf(u64::from(link / 2)), 5 + link % 2), end(ROOT, link + 1), QDR_4X));
    hosts.chain(up).collect()
}

fn configs(folder: &std::path::Path) -> Vec<AgentConfig> {
    let authority = Authority::new("test").unwrap();
    let nodes: Vec<(Guid, NodeType, u8)> = (1..=HOSTS)
        .map(|number| (host(number), NodeType::Hca, 1))
        .chain((0..3).map(|number| (leaf(number), NodeType::Switch, 6)))
        .chain([(ROOT, NodeType::Switch, 6)])
        .collect();
    let addresses: Vec<SocketAddr> = nodes.iter().map(|_| free_address()).collect();
    let place = |guid| nodes.iter().position(|node| node.0 == guid).unwrap();
    let config = |(index, &(guid, kind, ports)): (usize, &(Guid, NodeType, u8))| {
        let mut device = device(kind, guid, ports);
        device.options.data =
            DataPathOptions { shaped: true, dilation: 1000, host_limit_mbps: 12_900, ..Default::default() };
        let mut mine = Vec::new();
        for (a, b, link) in cables() {
            for (local, remote) in [(a, b), (b, a)] {
                if local.guid == guid {
                    device.ports[usize::from(local.port.0) - 1].link = link;
                    let remote_addr = Some(addresses[place(remote.guid)].into());
                    mine.push(CableConfig { local, remote, remote_addr, delay_ns: 0 });
                }
            }
        }
        let lock_file = folder.join(format!("lock{index}"));
        std::fs::write(&lock_file, "").unwrap();
        AgentConfig {
            part: AgentPart {
                name: format!("a{index}"),
                lab: "test".into(),
                devices: vec![device],
                slots: Vec::new(),
                cables: mine,
                bind: addresses[index],
                link_timeout_ms: 2000,
                hosts: Some(StackOptions { dilation: 1000, ..StackOptions::default() }),
                later_hosts: None,
                metrics: None,
                http_token: None,
            },
            credentials: Credentials::new(authority.issue(&[guid]).unwrap()).unwrap(),
            papers: None,
            attach_socket: folder.join(format!("attach{index}")),
            control_socket: folder.join(format!("control{index}")),
            faults_file: None,
            slots_file: None,
            lock_file,
            record_file: None,
            record_bytes_max: weft_agent::RECORD_BYTES_MAX,
            waits: false,
        }
    };
    nodes.iter().enumerate().map(config).collect()
}

/// Writes what a subnet manager would, by directed routes from the first host.
fn activate(agents: &[Running]) {
    let mut program = agents[0].attach(host(1), 1);
    let switches: [(&[u8], Option<u64>); 4] =
        [(&[1], Some(0)), (&[1, 5], None), (&[1, 5, 3], Some(1)), (&[1, 5, 5], Some(2))];
    for (path, leaf) in switches {
        let mut table = LinearForwardingTable { ports: [PortNum(255); 64] };
        for number in 1..=HOSTS {
            table.ports[number as usize] = PortNum(match leaf {
                Some(leaf) if leaf_of(number) == leaf => ((number - 1) % 4 + 1) as u8,
                Some(_) => 5 + ((number + 1) % 2) as u8,
                None => down_link(number),
            });
        }
        let now = get(&mut program, path, AttributeId::SwitchInfo, 0);
        let info = SwitchInfo::decode(now.first_chunk().unwrap());
        let info = SwitchInfo { linear_fdb_top: Lid(12).0, life_time_value: 20, ..info };
        set(&mut program, path, AttributeId::SwitchInfo, 0, &info.encode());
        set(&mut program, path, AttributeId::LinearForwardingTable, 0, &table.encode());
        let lid = Lid(21 + leaf.unwrap_or(3) as u16);
        set(&mut program, path, AttributeId::PortInfo, 0, &PortInfo { lid, ..PortInfo::default() }.encode());
    }
    for state in [PortState::NoChange, PortState::Armed, PortState::Active] {
        for (path, leaf) in switches {
            for port in 1..=6 {
                weights(&mut program, path, port);
                bring(&mut program, path, port, Lid(0), state);
                let Some(leaf) = leaf.filter(|_| port <= 4) else { continue };
                let number = 4 * leaf + u64::from(port);
                let way = if number == 1 { vec![] } else { [path, &[port]].concat() };
                weights(&mut program, &way, 1);
                bring(&mut program, &way, 1, Lid(number as u16), state);
            }
        }
    }
}

fn stream(agents: &[Running], flow: FlowId, from: Guid, to: Guid) {
    let lid = |guid: Guid| Lid(((guid.0 - 0x100) / 0x10) as u16);
    let port_guid = |guid: Guid| Guid(guid.0 + 1);
    let path = |to| LearntPath {
        to: port_guid(to),
        dlid: lid(to),
        service_level: ServiceLevel(0),
        p_key: PKey::DEFAULT_FULL,
        rate: PathRate::default(),
    };
    let expect = Command::Expect {
        flow,
        from: Some(port_guid(from)),
        transport: Transport::ReliableConnection,
        work: Work::Stream,
        message_bytes: 2048,
    };
    let open = Command::Open(FlowSpec {
        flow,
        to: Destination::One(port_guid(to)),
        transport: Transport::ReliableConnection,
        work: Work::Stream,
        message_bytes: 2048,
        packet_bytes: 2048,
        bytes_per_second: None,
        bytes_max: None,
        paths: Default::default(),
        move_by: Default::default(),
    });
    let commands = [
        (to, Command::LearnPaths(vec![path(from)])),
        (from, Command::LearnPaths(vec![path(to)])),
        (to, expect),
        (from, open),
    ];
    for (node, command) in commands {
        assert_eq!(tell(running(agents, node), node, command), Ok(Answer::Done));
    }
}
