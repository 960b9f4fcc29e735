//! The services of a laboratory whose processes run apart: the command line of each, and which
//! files of the bundle it may read.

use std::path::Path;

use weft_bundle::folder::LabFolder;
use weft_bundle::folder::bundle::opensm_options;
use weft_bundle::names::{HUB, PM, VMM};
use weft_bundle::ports::DOOR_PORT;
use weft_bundle::record::{AgentRecord, LabRecord, OtherPlace};
use weft_wire::Guid;

/// Where a container finds its part of the bundle.
pub(crate) const BUNDLE: &str = "/bundle";
/// The folder that its process runs in; of the file system in memory above it only the mode is sure.
pub(crate) const RUN: &str = "/run/weft/run";
/// What of a container can be written to.
pub(crate) const SCRATCH: &str = "/run/weft";
/// Where OpenSM writes.
pub(crate) const TEMPORARY: &str = "/tmp";
/// The volume that an agent shares with a subnet manager of the user's.
const OWN_SM_VOLUME: &str = "sm-run";
/// The volume of the hub, which keeps the list of revoked identities there.
const HUB_VOLUME: &str = "hub-run";
/// weft's stand-in for libibumad in the image of tools.
const PRELOAD: &str = "/usr/lib/weft/libweft_umad.so";
/// Health checks of agents at a second on the machine, about.
const CHECKS_PER_SECOND: usize = 4;
/// The pause between an agent's health checks, in seconds.
const CHECK_EVERY: std::ops::RangeInclusive<usize> = 5..=60;

/// A file of the bundle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BundleFile {
    /// What a compose file calls it.
    pub name: String,
    /// Its path in the bundle.
    pub path: String,
}

weft_wire::named! {
    /// What a process is to a laboratory, with its name as a label of Kubernetes.
    #[derive(Default)]
    pub(crate) enum Role {
        /// It runs devices.
        #[default]
        Agent = "agent",
        /// weft's subnet manager, or a standby.
        SubnetManager = "subnet-manager",
        /// Unmodified OpenSM.
        Opensm = "opensm",
        /// The performance manager.
        PerformanceManager = "performance-manager",
        /// The VM manager.
        VmManager = "vm-manager",
        /// The hub.
        Hub = "hub",
    }
}

/// What a service runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Program {
    /// weft.
    #[default]
    Weft,
    /// Unmodified OpenSM, beside the agent that it attaches to: it shares the folder that the agent runs in.
    Opensm,
}

/// One service.
#[derive(Default)]
pub(crate) struct Service {
    /// Its name, by which others find it, too.
    pub name: String,
    /// What it is, for people.
    pub about: String,
    /// What it is to the laboratory.
    pub role: Role,
    /// How many devices it runs or knows.
    pub devices: usize,
    /// What it runs.
    pub program: Program,
    /// The arguments of the program.
    pub command: Vec<String>,
    /// What of its environment is not the image's.
    pub environment: Vec<(&'static str, String)>,
    /// The volume of the folder that it runs in, which OpenSM shares or which outlives the container; else that is in memory.
    pub volume: Option<String>,
    /// What it may read of the bundle.
    pub files: Vec<BundleFile>,
    /// Those that start first.
    pub depends_on: Vec<String>,
    /// What its health check asks beside its name.
    asked: Option<&'static str>,
    /// Seconds between two health checks.
    pub check_every: usize,
    /// The UDP port that others dial, if they do.
    pub port: Option<u16>,
}

impl Service {
    /// The command of its health check.
    pub(crate) fn health_check(&self) -> Vec<String> {
        // OpenSM answers what concerns the subnet when that is up.
        let asks = self.life_check().unwrap_or_else(|| ["saquery", "-c"].map(str::to_owned).to_vec());
        asks.into_iter().chain(self.asked.map(str::to_owned)).collect()
    }

    /// The command that asks whether the process itself answers, whatever it waits for. OpenSM answers nothing before its subnet is up.
    pub(crate) fn life_check(&self) -> Option<Vec<String>> {
        let asks = ["/weft", "health", "--run", RUN, "--as", &self.name];
        (self.program == Program::Weft).then(|| asks.map(str::to_owned).to_vec())
    }
}

/// All of them.
pub(crate) fn services(record: &LabRecord) -> Vec<Service> {
    let every = (record.agents.len() / CHECKS_PER_SECOND).clamp(*CHECK_EVERY.start(), *CHECK_EVERY.end());
    let mut services: Vec<Service> = record.agents.iter().map(|agent| agent_service(agent, every)).collect();
    let agents: Vec<String> = record.agents.iter().map(|agent| agent.name.clone()).collect();
    for (name, place) in record.subnet_managers() {
        // Behind all agents, so that its first sweep finds the fabric whole.
        services.push(manager(&name, "sm", format!("subnet manager at {}", place.node), agents.clone()));
    }
    for place in &record.opensms {
        // Several at one agent share its folder.
        let agent = services.iter_mut().find(|service| service.name == place.agent);
        let volume = agent.map(|agent| agent.volume.get_or_insert_with(|| run_volume(&place.name)).clone());
        services.push(opensm(place, volume, agents.clone()));
    }
    let sms = record.leaders().map(|(name, _)| name);
    let first: Vec<String> = sms.chain(record.opensms.iter().map(|place| place.name.clone())).collect();
    let behind = if first.is_empty() { agents } else { first };
    for place in &record.pms {
        let about = format!("performance manager at {}", place.node);
        services.push(manager(&place.name, PM, about, behind.clone()));
    }
    for place in &record.vmms {
        services.push(manager(&place.name, VMM, format!("VM manager at {}", place.node), behind.clone()));
    }
    services.push(hub(record));
    let devices = record.agents.iter().map(|agent| agent.devices.len()).sum();
    for service in services.iter_mut().filter(|service| service.role != Role::Agent) {
        service.devices = devices;
    }
    services
}

/// The node where a subnet manager of the user's attaches, and its agent, where the laboratory has none of its own: the first host.
fn open_place(record: &LabRecord) -> Option<(Guid, &str)> {
    if record.sm.is_some() || !record.opensms.is_empty() {
        return None;
    }
    let hosts = |agent: &AgentRecord| {
        agent.devices.iter().find(|device| !device.switch && !device.slot).map(|host| host.guid)
    };
    record.agents.iter().find_map(|agent| Some((hosts(agent)?, agent.name.as_str())))
}

/// The same services where containers share volumes: the folder of one agent is open to a subnet manager of the user's, if the
/// laboratory has none of its own.
pub(crate) fn sharing(record: &LabRecord) -> Vec<Service> {
    let mut services = services(record);
    if let Some((_, agent)) = open_place(record) {
        let agent = services.iter_mut().find(|service| service.name == agent);
        agent.into_iter().for_each(|agent| agent.volume = Some(OWN_SM_VOLUME.to_owned()));
    }
    services
}

/// The environment that a program of libibumad needs in a container that shares an agent's folder.
fn umad_environment(node: Guid, agent: &str) -> [(&'static str, String); 3] {
    let run = LabFolder::of_run(Path::new(RUN), "").expect("a short path from the root");
    [
        ("LD_PRELOAD", PRELOAD.to_owned()),
        ("WEFT_UMAD_NODE", node.to_string()),
        ("WEFT_UMAD_SOCKET", run.umad_socket(agent).display().to_string()),
    ]
}

/// How a subnet manager of the user's attaches to the laboratory, if there is none of its own: lines without an end.
pub(crate) fn open_to(record: &LabRecord) -> Option<Vec<String>> {
    let (node, agent) = open_place(record)?;
    let environment = umad_environment(node, agent).map(|(name, value)| format!("  -e {name}={value}"));
    let begins = format!("Your subnet manager attaches to {agent}, in a container that shares its volume:");
    let volume = format!("  -v PROJECT_{OWN_SM_VOLUME}:{SCRATCH}");
    Some([begins, volume].into_iter().chain(environment).collect())
}

/// The volume of the folder that a manager runs in.
fn run_volume(name: &str) -> String {
    format!("{name}-run")
}

fn file(name: &str, path: impl Into<String>) -> BundleFile {
    BundleFile { name: name.to_owned(), path: path.into() }
}

/// What each process needs, whatever it is.
fn own(name: &str) -> Vec<BundleFile> {
    vec![file("ca", "ca.pem"), file(&format!("{name}-identity"), format!("identities/{name}.pem"))]
}

fn command(verb: &str, name: Option<&str>, more: &[&str]) -> Vec<String> {
    let named = name.iter().flat_map(|name| ["--as", name]);
    let all = [verb, "--bundle", BUNDLE].into_iter().chain(named).chain(["--run", RUN]);
    all.chain(more.iter().copied()).map(str::to_owned).collect()
}

fn agent_service(agent: &AgentRecord, every: usize) -> Service {
    let name = &agent.name;
    let about = match agent.devices.as_slice() {
        [] => String::new(),
        [device] => device.label.clone(),
        [device, others @ ..] => format!("{} and {} more", device.label, others.len()),
    };
    let mut files = own(name);
    files.push(file(name, format!("agents/{name}.json")));
    Service {
        name: name.clone(),
        about,
        devices: agent.devices.len(),
        command: command(weft_bundle::names::AGENT, Some(name), &[]),
        files,
        check_every: every,
        port: Some(agent.address.port()),
        ..Service::default()
    }
}

/// OpenSM, which tools of the same image can ask.
fn opensm(place: &OtherPlace, volume: Option<String>, depends_on: Vec<String>) -> Service {
    let name = &place.name;
    let options = file(&format!("{name}-options"), opensm_options(name));
    let conf = format!("{BUNDLE}/{}", options.path);
    let own = ["OSM_TMP_DIR", "OSM_CACHE_DIR"].map(|name| (name, TEMPORARY.to_owned()));
    Service {
        name: name.clone(),
        about: format!("unmodified OpenSM at {}", place.node),
        role: Role::Opensm,
        program: Program::Opensm,
        command: ["-f", "stdout", "-F", &conf].map(str::to_owned).to_vec(),
        environment: umad_environment(place.node, &place.agent).into_iter().chain(own).collect(),
        volume,
        files: vec![options],
        depends_on,
        check_every: *CHECK_EVERY.start(),
        ..Service::default()
    }
}

fn manager(name: &str, verb: &str, about: String, depends_on: Vec<String>) -> Service {
    let mut files = own(name);
    files.push(file(name, format!("managers/{name}.json")));
    files.push(file("keys", "identities/keys.json"));
    if verb == VMM {
        files.extend([file("lab", "lab.json"), file("topology", "topology")]);
    }
    let door = format!("0.0.0.0:{DOOR_PORT}");
    Service {
        name: name.to_owned(),
        about,
        role: match verb {
            PM => Role::PerformanceManager,
            VMM => Role::VmManager,
            _ => Role::SubnetManager,
        },
        command: command(verb, Some(name), &["--door", &door]),
        volume: (verb == VMM).then(|| run_volume(name)),
        files,
        depends_on,
        check_every: *CHECK_EVERY.start(),
        port: Some(DOOR_PORT),
        ..Service::default()
    }
}

fn hub(record: &LabRecord) -> Service {
    let mut files = own(HUB);
    files.extend([file("lab", "lab.json"), file("topology", "topology")]);
    // What `weft vm` has to know.
    files.extend(record.vmms.iter().map(|place| file(&place.name, format!("managers/{}.json", place.name))));
    let mut more = vec!["--door".to_owned(), format!("0.0.0.0:{DOOR_PORT}")];
    if let Some(port) = record.metrics_port() {
        // Prometheus reads there whom to scrape.
        more.extend(["--metrics".to_owned(), format!("0.0.0.0:{port}")]);
    }
    Service {
        name: HUB.to_owned(),
        about: "watches all others; `weft --at` talks to it".to_owned(),
        role: Role::Hub,
        command: command(HUB, None, &more.iter().map(String::as_str).collect::<Vec<_>>()),
        volume: Some(HUB_VOLUME.to_owned()),
        files,
        asked: Some("--lab-up"),
        check_every: 2,
        port: Some(DOOR_PORT),
        ..Service::default()
    }
}
