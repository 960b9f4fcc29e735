//! A compose file, in the subset that Compose 1.29 and 5 and `docker stack deploy` read: `depends_on` as a list, secrets as files,
//! no `configs`, no driver.
//!
//! Every service mounts what its process needs of the bundle, and nothing else, as secrets below `/bundle`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use weft_bundle::folder::bundle::{AUTHORITY, HTTP_TOKEN, SCRAPE};
use weft_bundle::names::HUB;
use weft_bundle::ports::DOOR_PORT;
use weft_bundle::record::LabRecord;

use crate::services::{BUNDLE, BundleFile, Program, SCRATCH, Service, TEMPORARY, open_to, sharing};
use crate::watch::{
    self, GRAFANA, GRAFANA_DATA, GRAFANA_PORT, GRAFANA_SETTINGS, PROMETHEUS, PROMETHEUS_PORT, SERIES,
    WatchFile,
};

/// Health checks that may fail one after the other. A Swarm ends what is not healthy: the hub is to live through minutes in which
/// a machine is away.
const RETRIES: u32 = 3;
const HUB_RETRIES: u32 = 150;

/// What a compose file says beside the bundle.
#[derive(Clone, Copy, Debug)]
pub struct Containers<'a> {
    /// The bundle's folder, as the compose file is to name it.
    pub bundle: &'a Path,
    /// The image.
    pub image: &'a str,
    /// The image of OpenSM, where it manages the subnet.
    pub tools: &'a str,
    /// The image of Prometheus and where the host lets clients in to it, if there is one.
    pub prometheus: Option<(&'a str, &'a Publish)>,
    /// The same of Grafana.
    pub grafana: Option<(&'a str, &'a Publish)>,
    /// The user and group of all processes.
    pub user: (u32, u32),
    /// Whether the bundle has rules and consoles for Prometheus, which those of earlier versions have not.
    pub watch: bool,
    /// Where the host lets clients in to the hub.
    pub door: &'a Publish,
}

/// A port of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Publish {
    /// On all addresses.
    Everywhere(u16),
    /// On one.
    At(std::net::SocketAddr),
}

/// A text that names no port of the host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a port nor an address and a port")]
pub struct InvalidPublish(String);

impl std::str::FromStr for Publish {
    type Err = InvalidPublish;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let port = text.parse().ok().filter(|port: &u16| *port != 0).map(Self::Everywhere);
        let at = || text.parse().ok().map(Self::At);
        port.or_else(at).ok_or_else(|| InvalidPublish(text.to_owned()))
    }
}

/// The file.
pub fn render(record: &LabRecord, containers: &Containers<'_>) -> String {
    let services = sharing(record);
    let mut text = head(record, containers);
    for service in &services {
        write_service(&mut text, service, containers);
    }
    let scrape = scraping(containers.watch);
    if let Some((image, door)) = containers.prometheus {
        write_prometheus(&mut text, image, door, &scrape);
    }
    let shown: Vec<BundleFile> = watch::of_grafana().map(watched).collect();
    if let Some((image, door)) = containers.grafana {
        write_grafana(&mut text, image, door, &shown);
    }
    text += "\nnetworks:\n  fabric: {internal: true}\n  door: {}\n";
    let volumes: BTreeSet<&str> = services.iter().filter_map(|service| service.volume.as_deref()).collect();
    for (at, volume) in volumes.into_iter().enumerate() {
        let begins = if at == 0 { "\nvolumes:\n" } else { "" };
        put(&mut text, format_args!("{begins}  {volume}: {{}}\n"));
    }
    text += "\nsecrets:\n";
    let mut secrets: Vec<&BundleFile> = services.iter().flat_map(|service| &service.files).collect();
    secrets.extend(containers.prometheus.iter().flat_map(|_| &scrape));
    secrets.extend(containers.grafana.iter().flat_map(|_| &shown));
    secrets.sort();
    secrets.dedup();
    for BundleFile { name, path } in secrets {
        let file = containers.bundle.join(path);
        put(&mut text, format_args!("  {name}: {{file: {}}}\n", json!(named(&file))));
    }
    text
}

/// A path that is no name: without `./` a compose file would take it for one.
fn named(path: &Path) -> String {
    let shown = path.display();
    if path.is_absolute() || path.starts_with(".") || path.starts_with("..") {
        shown.to_string()
    } else {
        format!("./{shown}")
    }
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes all that is written");
}

fn head(record: &LabRecord, containers: &Containers<'_>) -> String {
    let Containers { image, user: (user, group), .. } = containers;
    let agents = record.agents.len();
    format!(
        "# The laboratory `{lab}` of weft in containers: {agents} agents for the devices of {topology}.\n\
         # Made by `weft compose` for Docker Compose 1.27 and later, and for `docker stack deploy`; docs/operations.md tells how to use it.\n\
         {open}\
         \n\
         x-process: &process\n\
         \x20 image: {image}\n\
         \x20 user: {user}\n\
         \x20 read_only: true\n\
         \x20 cap_drop: [ALL]\n\
         \x20 volumes: [{scratch}]\n\
         \x20 networks: [fabric]\n\
         \x20 restart: unless-stopped\n\
         \x20 stop_grace_period: 5s\n\
         \x20 deploy: {{endpoint_mode: dnsrr}}\n\
         \n\
         services:\n",
        open = open_to(record).iter().flatten().map(|line| format!("# {line}\n")).collect::<String>(),
        scratch = memory(SCRATCH),
        lab = record.lab,
        topology = record.topology,
        image = json!(image),
        user = json!(format!("{user}:{group}")),
    )
}

fn write_service(text: &mut String, service: &Service, containers: &Containers<'_>) {
    let Service { name, about, command, files, depends_on, check_every: every, .. } = service;
    put(text, format_args!("  {name}:  # {}\n    <<: *process\n", weft_wire::Printable(about)));
    if service.program == Program::Opensm {
        put(text, format_args!("    image: {}\n    entrypoint: [\"opensm\"]\n", json!(containers.tools)));
    }
    if let Some(volume) = &service.volume {
        // In place of the memory that only one container sees, and that goes with it.
        let more = if service.program == Program::Opensm {
            format!(", {}", memory(TEMPORARY))
        } else {
            String::new()
        };
        put(text, format_args!("    volumes: [\"{volume}:{SCRATCH}\"{more}]\n"));
    }
    for (at, (variable, value)) in service.environment.iter().enumerate() {
        let begins = if at == 0 { "    environment:\n" } else { "" };
        put(text, format_args!("{begins}      {variable}: {}\n", json!(value)));
    }
    put(text, format_args!("    command: {}\n", list(command)));
    let retries = if name == HUB { HUB_RETRIES } else { RETRIES };
    let test: Vec<String> = std::iter::once("CMD".to_owned()).chain(service.health_check()).collect();
    put(
        text,
        format_args!(
            "    healthcheck: {{test: {}, interval: {every}s, timeout: 10s, retries: {retries}, start_period: 60s}}\n",
            list(&test)
        ),
    );
    if !depends_on.is_empty() {
        put(text, format_args!("    depends_on: {}\n", list(depends_on)));
    }
    if name == HUB {
        // On a Swarm its door is at a manager, whichever machines the others run on.
        *text += "    deploy: {endpoint_mode: dnsrr, placement: {constraints: [node.role == manager]}}\n";
        open_door(text, containers.door, DOOR_PORT, "udp");
    }
    *text += "    secrets:\n";
    files.iter().for_each(|file| mount(text, file));
}

/// What Prometheus may read of the bundle: whom it scrapes, who they are, and what it shows them.
fn scraping(with_watch: bool) -> Vec<BundleFile> {
    let file = |name: &str, path: &str| BundleFile { name: name.to_owned(), path: path.to_owned() };
    let own = [file(PROMETHEUS, SCRAPE), file("ca", AUTHORITY), file("http-token", HTTP_TOKEN)];
    own.into_iter().chain(watch::of_prometheus().filter(|_| with_watch).map(watched)).collect()
}

fn watched(file: &WatchFile) -> BundleFile {
    BundleFile { name: file.name.to_owned(), path: file.path.to_owned() }
}

/// What the laboratory's metrics are scraped by.
fn write_prometheus(text: &mut String, image: &str, door: &Publish, scrape: &[BundleFile]) {
    put(text, format_args!("  {PROMETHEUS}:  # scrapes all others\n    <<: *process\n"));
    put(text, format_args!("    image: {}\n    entrypoint: [\"prometheus\"]\n", json!(image)));
    put(
        text,
        format_args!(
            "    command: {}\n    volumes: [{}]\n",
            list(&watch::prometheus_arguments()),
            memory(SERIES)
        ),
    );
    open_door(text, door, PROMETHEUS_PORT, "tcp");
    *text += "    secrets:\n";
    scrape.iter().for_each(|file| mount(text, file));
}

/// What shows the dashboards. Its image knows how to start.
fn write_grafana(text: &mut String, image: &str, door: &Publish, shown: &[BundleFile]) {
    put(
        text,
        format_args!("  {GRAFANA}:  # shows dashboards\n    <<: *process\n    image: {}\n", json!(image)),
    );
    *text += "    environment:\n";
    for (variable, value) in GRAFANA_SETTINGS {
        put(text, format_args!("      {variable}: {}\n", json!(value)));
    }
    put(text, format_args!("    volumes: [{}, {}]\n", memory(GRAFANA_DATA), memory(TEMPORARY)));
    put(text, format_args!("    depends_on: [\"{PROMETHEUS}\"]\n"));
    open_door(text, door, GRAFANA_PORT, "tcp");
    *text += "    secrets:\n";
    shown.iter().for_each(|file| mount(text, file));
}

/// Lets clients in from the host.
fn open_door(text: &mut String, door: &Publish, target: u16, protocol: &str) {
    *text += "    networks: [fabric, door]\n    ports:\n";
    *text += &match door {
        Publish::Everywhere(port) => {
            format!("      - {{target: {target}, published: {port}, protocol: {protocol}, mode: host}}\n")
        }
        Publish::At(address) => format!("      - {}\n", json!(format!("{address}:{target}/{protocol}"))),
    };
}

/// A file system in memory. A Swarm ignores `tmpfs:`.
fn memory(target: &str) -> String {
    format!("{{type: tmpfs, target: {target}}}")
}

fn mount(text: &mut String, BundleFile { name, path }: &BundleFile) {
    put(text, format_args!("      - {{source: {name}, target: {BUNDLE}/{path}}}\n"));
}

/// As JSON has it, which is YAML too.
fn list(items: &[String]) -> String {
    json!(items).to_string().replace("\",\"", "\", \"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_is_a_port_or_an_address_with_one() {
        assert_eq!("7443".parse(), Ok(Publish::Everywhere(7443)));
        assert_eq!("127.0.0.1:9".parse(), Ok(Publish::At(([127, 0, 0, 1], 9).into())));
        for wrong in ["", "0", "70000", "here:1"] {
            assert!(wrong.parse::<Publish>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_folder_is_named_as_one() {
        let shown = |path: &str| named(Path::new(path));
        assert_eq!((shown("x5/ca.pem"), shown("/x5")), ("./x5/ca.pem".into(), "/x5".into()));
        assert_eq!((shown("../x5"), shown("./x5")), ("../x5".into(), "./x5".into()));
    }
}
