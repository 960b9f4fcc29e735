//! Small fabrics of agents, each in a thread of its own, and programs that attach to them.

#![allow(dead_code, reason = "each test file uses its own part")]

#[path = "../../../../../tests/src/ports.rs"]
mod ports;
mod told;
pub(crate) mod traffic;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::runtime::LocalOptions;
use tokio::sync::oneshot;
use weft_agent::{AgentConfig, AgentError, serve};
use weft_agent_config::{AgentPart, CableConfig};
use weft_control::agent::{AgentStatus, DeviceStatus, PortEnd, PortStatus};
use weft_control::fault::Damage;
use weft_control::{Answer, Error, HexGuid, Page, Request as Ask};
use weft_device::{DeviceConfig, DeviceOptions, PortConfig};
use weft_link::{Authority, CableEnd, Credentials};
use weft_mgmt::{DirectedPath, Request, SmpRoute};
use weft_process::ClientError;
use weft_umad::{Client, ServerMessage};
use weft_wire::{AddressedMad, AttributeId, Guid, LinkParameters, NodeInfo, NodeType, PortNum};

pub(crate) const HCA_A: Guid = Guid(0xa0);
pub(crate) const SWITCH: Guid = Guid(0x50);
pub(crate) const HCA_B: Guid = Guid(0xb0);
pub(crate) const HCA_C: Guid = Guid(0xc0);
/// Long enough for a machine that does other things too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A device with ports of 4x QDR.
pub(crate) fn device(kind: NodeType, guid: Guid, ports: u8) -> DeviceConfig {
    let port = |number: u8| PortConfig {
        guid: if kind == NodeType::Switch { guid } else { Guid(guid.0 + u64::from(number)) },
        link: LinkParameters { width: 3, speed: 7, speed_ext: 0 },
    };
    DeviceConfig {
        kind,
        guid,
        system_image_guid: guid,
        description: format!("node {guid}"),
        vendor_id: 0x2c9,
        device_id: 1,
        enhanced_port0: false,
        ports: (1..=ports).map(port).collect(),
        options: DeviceOptions::default(),
    }
}

pub(crate) fn end(guid: Guid, port: u8) -> CableEnd {
    CableEnd { guid, port: PortNum(port) }
}

/// HCA A port 1 - switch port 1, switch port 2 - HCA B port 1, switch port 3 - HCA C port 1 where there is one, dealt out
/// to agents.
pub(crate) struct Fabric {
    pub(crate) folder: TempDir,
    pub(crate) agents: Vec<AgentConfig>,
    pub(crate) authority: Authority,
}

impl Fabric {
    /// Three agents, one device each.
    pub(crate) fn spread() -> Self {
        Self::new(&[&[HCA_A], &[SWITCH], &[HCA_B]], 500)
    }

    /// One agent with all three.
    pub(crate) fn packed() -> Self {
        Self::new(&[&[HCA_A, SWITCH, HCA_B]], 500)
    }

    /// One agent for each group of devices.
    pub(crate) fn new(groups: &[&[Guid]], link_timeout_ms: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let issuer = Authority::new("test").unwrap();
        let authority = &issuer;
        let addresses: Vec<SocketAddr> = groups.iter().map(|_| free_address()).collect();
        let mut cables = vec![(end(HCA_A, 1), end(SWITCH, 1)), (end(SWITCH, 2), end(HCA_B, 1))];
        if groups.iter().any(|group| group.contains(&HCA_C)) {
            cables.push((end(SWITCH, 3), end(HCA_C, 1)));
        }
        let group_of = |guid| groups.iter().position(|group| group.contains(&guid)).unwrap();
        let agents = groups.iter().enumerate().map(|(index, guids)| {
            let both_ways = cables.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
            let mine = both_ways.filter(|(local, _)| guids.contains(&local.guid));
            let lock_file = folder.path().join(format!("lock{index}"));
            std::fs::write(&lock_file, "").unwrap();
            AgentConfig {
                part: AgentPart {
                    name: format!("a{index}"),
                    lab: "test".into(),
                    devices: guids.iter().map(|guid| the_device(*guid)).collect(),
                    slots: Vec::new(),
                    cables: mine
                        .map(|(local, remote)| {
                            let there = group_of(remote.guid);
                            let remote_addr = (there != index).then(|| addresses[there].into());
                            CableConfig { local, remote, remote_addr, delay_ns: 0 }
                        })
                        .collect(),
                    bind: addresses[index],
                    link_timeout_ms,
                    hosts: None,
                    later_hosts: None,
                    metrics: None,
                    http_token: None,
                },
                credentials: Credentials::new(authority.issue(guids).unwrap()).unwrap(),
                papers: None,
                attach_socket: folder.path().join(format!("attach{index}")),
                control_socket: folder.path().join(format!("control{index}")),
                lock_file,
                faults_file: Some(folder.path().join(format!("faults{index}"))),
                slots_file: Some(folder.path().join(format!("slots{index}"))),
                record_file: None,
                record_bytes_max: weft_agent::RECORD_BYTES_MAX,
                waits: false,
            }
        });
        Self { agents: agents.collect(), folder, authority: issuer }
    }

    /// Starts every agent.
    pub(crate) fn start(&self) -> Vec<Running> {
        self.agents.iter().map(Running::start).collect()
    }

    /// Starts every agent, and waits until all links are up.
    pub(crate) fn up(&self) -> Vec<Running> {
        let agents = self.start();
        for agent in &agents {
            agent.config.part.cables.iter().for_each(|cable| agent.await_link(cable.local, true));
        }
        agents
    }

    /// The events of this kind that its agents have reported, those that have ended.
    pub(crate) fn events(&self, event: &str) -> Vec<String> {
        told::events(self.folder.path(), event)
    }
}

fn the_device(guid: Guid) -> DeviceConfig {
    match guid {
        SWITCH => device(NodeType::Switch, SWITCH, 4),
        other => device(NodeType::Hca, other, 1),
    }
}

/// An address where no one listens, and that no other test process takes.
pub(crate) fn free_address() -> SocketAddr {
    (std::net::Ipv4Addr::LOCALHOST, ports::free_port()).into()
}

/// An agent in a thread.
pub(crate) struct Running {
    pub(crate) config: AgentConfig,
    stop: Option<oneshot::Sender<bool>>,
    thread: Option<std::thread::JoinHandle<Result<(), AgentError>>>,
    follower: Option<told::Follower>,
}

impl Running {
    /// Starts it; it may not listen yet when this returns.
    pub(crate) fn start(config: &AgentConfig) -> Self {
        let (stop, stopped) = oneshot::channel::<bool>();
        let mine = config.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build_local(LocalOptions::default())
                .unwrap();
            runtime.block_on(async {
                let (kill, killed) = oneshot::channel::<()>();
                let stop = async move {
                    // A word is an order to stop; a dropped sender is a kill.
                    if stopped.await != Ok(true) {
                        let _ = kill.send(());
                        std::future::pending::<()>().await;
                    }
                };
                tokio::select! {
                    result = serve(&mine, stop) => result,
                    Ok(()) = killed => Ok(()),
                }
            })
        });
        let follower = told::Follower::start(&config.control_socket);
        Self { config: config.clone(), stop: Some(stop), thread: Some(thread), follower: Some(follower) }
    }

    /// Waits for its end.
    pub(crate) fn join(mut self) -> Result<(), AgentError> {
        let stop = self.stop.take();
        let result = self.ended();
        drop(stop);
        result
    }

    /// Asks it to stop and waits until it has.
    pub(crate) fn stop(mut self) {
        self.stop.take().unwrap().send(true).unwrap();
        self.ended().unwrap();
    }

    /// Ends it without a word to anybody.
    pub(crate) fn kill(mut self) {
        drop(self.stop.take());
        self.ended().unwrap();
    }

    /// Waits until the thread has ended and its events are read.
    fn ended(&mut self) -> Result<(), AgentError> {
        let result = self.thread.take().unwrap().join().unwrap();
        self.follower.take().unwrap().finish();
        result
    }

    /// A program's connection, as soon as the agent listens.
    pub(crate) fn connect(&self) -> Client {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Client::connect(&self.config.attach_socket) {
                Ok(client) => return client,
                Err(error) if Instant::now() > deadline => panic!("{error:?}"),
                Err(_) => std::thread::yield_now(),
            }
        }
    }

    /// A connection attached to a port.
    pub(crate) fn attach(&self, node: Guid, port: u8) -> Client {
        let mut client = self.connect();
        client.attach(node, PortNum(port), vec![], PATIENCE).unwrap();
        client
    }

    /// A client of the control protocol, as soon as the agent listens.
    pub(crate) fn client(&self) -> weft_process::Client {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match weft_process::Client::connect(&self.config.control_socket) {
                Ok(client) => return client,
                Err(error) if Instant::now() > deadline => panic!("{error:?}"),
                Err(_) => std::thread::yield_now(),
            }
        }
    }

    /// What the agent answers.
    pub(crate) fn try_ask(&self, request: Ask) -> Result<Answer, Error> {
        match self.client().ask(request, PATIENCE) {
            Err(ClientError::Refused(error)) => Err(error),
            answered => Ok(answered.unwrap()),
        }
    }

    #[track_caller]
    pub(crate) fn ask(&self, request: Ask) -> Answer {
        self.try_ask(request).unwrap()
    }

    pub(crate) fn status(&self) -> AgentStatus {
        match self.ask(Ask::AgentStatus) {
            Answer::AgentStatus(status) => status,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn devices(&self) -> Vec<DeviceStatus> {
        match self.ask(Ask::Devices(Page::default())) {
            Answer::Devices { devices, more: false } => devices,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn port(&self, at: CableEnd) -> PortStatus {
        match self.ask(Ask::Ports(Page::default())) {
            Answer::Ports { ports, more: false } => {
                ports.into_iter().find(|port| port.end == port_end(at)).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    /// Waits until a port has a link, or has none.
    pub(crate) fn await_link(&self, at: CableEnd, up: bool) {
        self.await_port(at, |port| port.link_up == up);
    }

    pub(crate) fn await_port(&self, at: CableEnd, wanted: impl Fn(&PortStatus) -> bool) -> PortStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let port = self.port(at);
            if wanted(&port) {
                return port;
            }
            assert!(Instant::now() < deadline, "{at} never came to what was awaited: {port:?}");
        }
    }

    /// Unplugs this end of a cable, or plugs it in.
    pub(crate) fn set_cable(&self, at: CableEnd, up: bool) -> Result<Answer, Error> {
        let id = format!("cut-{}-{}", at.guid, at.port).parse().unwrap();
        let damage = Damage::Unplugged(port_end(at));
        self.try_ask(match up {
            false => Ask::SetFault { id, damage, for_ms: None },
            true => Ask::ClearFault { id },
        })
    }
}

/// A port as the control protocol names it.
pub(crate) fn port_end(at: CableEnd) -> PortEnd {
    PortEnd { node: HexGuid(at.guid), port: at.port }
}

/// A directed-route Get.
pub(crate) fn get(attribute: AttributeId, path: &[u8]) -> AddressedMad {
    let ports: Vec<PortNum> = path.iter().copied().map(PortNum).collect();
    Request::get(attribute, 0).by(&SmpRoute::Directed(DirectedPath::new(&ports).unwrap()))
}

/// Sends a request and awaits a MAD, asking again when none comes: VL 15 may lose.
pub(crate) fn ask(client: &mut Client, request: &AddressedMad) -> AddressedMad {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        client.send(request).unwrap();
        client.flush().unwrap();
        if let Some(ServerMessage::Receive(mad)) = client.recv(Duration::from_millis(500)).unwrap() {
            return mad;
        }
    }
    panic!("no answer to {request:?}");
}

/// The GUID of the node at the end of a path.
pub(crate) fn node_at(client: &mut Client, path: &[u8]) -> Guid {
    let answer = ask(client, &get(AttributeId::NodeInfo, path));
    NodeInfo::decode(answer.mad.smp_attribute()).node_guid
}
