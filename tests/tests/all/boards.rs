//! Dashboards, consoles and rules of `contrib/` on a laboratory that runs: each query returns data, each target is scraped, and alerts
//! fire for faults.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use weft_judges::{Lab, free_port, output_of};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, xgft};

use crate::prometheus::{Prometheus, get, json, query_at, wait_until};

/// Queries that need not return data on the laboratory of this test, each with its reason. One that does must not stand here.
const EMPTY: [(&str, &str); 0] = [];

/// What a dashboard leaves to its reader, and what takes its place here.
const CHOICES: [(&str, &str); 4] =
    [("$__rate_interval", "10s"), ("$lab", ".*"), ("$node", ".*"), ("$port", ".*")];

/// A target that came or went shows at the hub within this time.
const DISCOVERED_WITHIN: Duration = Duration::from_secs(5);

pub(crate) fn contrib(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../contrib").join(path)
}

fn tree() -> Fabric {
    xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap()
}

pub(crate) fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(contrib(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    assert!(!files.is_empty(), "no {extension} in {folder}");
    files
}

pub(crate) fn dashboards() -> Vec<Value> {
    files("grafana", "json").iter().map(|file| json(&std::fs::read_to_string(file).unwrap())).collect()
}

pub(crate) fn texts(list: &Value, key: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item[key].as_str().unwrap_or_default().to_owned()).collect()
}

/// The queries of a dashboard, panel after panel.
fn queries_of(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap();
    panels.iter().flat_map(|panel| texts(&panel["targets"], "expr")).collect()
}

/// The panels that stand in a console's page.
fn board_of(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"board\">").expect("a console has panels");
    json(rest.split_once("</script>").unwrap().0)
}

#[test]
fn dashboards_and_consoles_are_as_their_panels_say() {
    output_of(Command::new("python3").arg(contrib("boards.py")).arg("--check"));
    let mut uids = BTreeSet::new();
    for dashboard in dashboards() {
        let title = dashboard["title"].as_str().unwrap().to_owned();
        assert!(uids.insert(dashboard["uid"].to_string()), "{title}: its uid is another's");
        assert!(dashboard["schemaVersion"].as_u64() >= Some(39), "{title}");
        let variables = texts(&dashboard["templating"]["list"], "name");
        assert_eq!(variables[..2], ["datasource", "lab"], "{title}");
        let mut ids = BTreeSet::new();
        for panel in dashboard["panels"].as_array().unwrap() {
            let told = |key: &str| panel[key].as_str().is_some_and(|text| !text.is_empty());
            assert!(told("title") && told("description"), "{title}: {panel}");
            assert!(ids.insert(panel["id"].as_u64()), "{title}: {panel}");
            assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title}: {panel}");
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
            let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
            assert!(place("x") + place("w") <= 24, "{title}: {panel}");
        }
        let known = |query: &String| {
            let mut names = query.split('$').skip(1);
            names.all(|rest| {
                ["__rate_interval", "lab", "node", "port"].iter().any(|name| rest.starts_with(name))
            })
        };
        assert!(queries_of(&dashboard).iter().all(known), "{title}");
    }
}

#[test]
fn promtool_finds_no_fault_with_rules_and_configuration() {
    let folder = tempfile::tempdir().unwrap();
    for file in files("prometheus", "yml") {
        std::fs::copy(&file, folder.path().join(file.file_name().unwrap())).unwrap();
    }
    // These belong to a bundle.
    std::fs::create_dir(folder.path().join("identities")).unwrap();
    for file in ["ca.pem", "identities/http.token"] {
        std::fs::write(folder.path().join(file), "").unwrap();
    }
    let promtool = |arguments: &[&str]| {
        output_of(Command::new("promtool").args(arguments).current_dir(folder.path()));
    };
    promtool(&["check", "config", "prometheus.yml"]);
    promtool(&["check", "config", "prometheus-tls.yml"]);
    promtool(&["check", "rules", "weft.recording.yml", "weft.alerts.yml"]);
    promtool(&["test", "rules", "weft.tests.yml"]);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let (rules, tests) = (read("weft.alerts.yml"), read("weft.tests.yml"));
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() >= 20, "{alerts:?}");
    for alert in alerts {
        let silent = format!("- {{alertname: {alert}, ");
        let fires = format!("- alertname: {alert}\n");
        assert!(tests.contains(&silent) && tests.contains(&fires), "{alert} has no test for both");
    }
}

/// A laboratory whose hub tells Prometheus whom to scrape, with the rules and consoles of `contrib/`.
pub(crate) struct Watched {
    pub(crate) lab: Lab,
    hub: SocketAddr,
    prometheus: Prometheus,
}

impl Watched {
    fn start(options: &[&str]) -> Self {
        Self::of(&tree(), &[options, &["--pm-interval", "500"]].concat())
    }

    pub(crate) fn of(fabric: &Fabric, options: &[&str]) -> Self {
        let port = free_port().to_string();
        let all = [options, &["--metrics", "--pm", "--hub-metrics", &port]].concat();
        let lab = Lab::start(fabric, &all);
        let read = |name: &str| std::fs::read_to_string(contrib("prometheus").join(name)).unwrap();
        let config = read("prometheus.yml").replace(":9100/", &format!(":{port}/"));
        std::fs::write(lab.folder().join("prometheus.yml"), config).unwrap();
        std::fs::write(lab.folder().join("weft.recording.yml"), read("weft.recording.yml")).unwrap();
        // The same conditions, which need not hold as long.
        let lines = read("weft.alerts.yml");
        let short = lines.lines().map(|line| match line.trim_start().starts_with("for: ") {
            true => "        for: 1s\n".to_owned(),
            false => format!("{line}\n"),
        });
        std::fs::write(lab.folder().join("weft.alerts.yml"), short.collect::<String>()).unwrap();
        let consoles = ["consoles", "console_libraries"].map(|folder| contrib("prometheus").join(folder));
        let more = [
            format!("--web.console.templates={}", consoles[0].display()),
            format!("--web.console.libraries={}", consoles[1].display()),
        ];
        let prometheus = Prometheus::start_with(&lab.folder().join("prometheus.yml"), &more);
        Self { lab, hub: ([127, 0, 0, 1], port.parse().unwrap()).into(), prometheus }
    }

    /// The processes that the hub tells of, each with its labels.
    fn targets(&self) -> Vec<Value> {
        let page = get(self.hub, "/sd").expect("the hub serves /sd");
        let groups = json(&page);
        groups.as_array().unwrap().iter().map(|group| group["labels"].clone()).collect()
    }

    pub(crate) fn weft(&self, arguments: &[&str]) -> String {
        output_of(&mut self.lab.weft(arguments))
    }

    /// Whether an alert fires, perhaps among others.
    pub(crate) fn fires(&self, alert: &str) -> bool {
        let query = format!("ALERTS{{alertname=\"{alert}\", alertstate=\"firing\"}}");
        !self.prometheus.query(&query).is_empty()
    }

    fn query(&self, query: &str) -> Vec<Value> {
        self.prometheus.query(query)
    }

    /// What a query of a dashboard returns to a reader who has chosen everything.
    pub(crate) fn asked(&self, query: &str) -> Vec<Value> {
        let asked =
            CHOICES.iter().fold(query.to_owned(), |text, (choice, value)| text.replace(choice, value));
        self.query(&asked)
    }

    /// Whether a query of a dashboard returns data, and not only NaN.
    fn has_data(&self, query: &str) -> bool {
        self.asked(query).iter().any(|series| series["value"][1] != "NaN")
    }
}

/// Flows, faults, sweeps and a move of a virtual machine move what the panels show.
fn stir(watched: &Watched) {
    watched.weft(&["flow", "start", "host-0", "host-2", "--name", "stream"]);
    watched.weft(&["flow", "start", "host-1", "host-2", "--ping-pong", "--name", "ping"]);
    watched.weft(&["traffic", "start", "ring", "--rate", "0.1", "--set", "ring"]);
    watched.weft(&["vm", "create", "web"]);
    watched.weft(&["vm", "migrate", "web", "host-3"]);
    watched.weft(&["fault", "link-down", "switch-1-1:1"]);
    for alert in ["WeftLinkDown", "WeftFabricDegraded"] {
        wait_until(alert, || watched.fires(alert));
    }
}

#[test]
fn each_panel_shows_data_and_each_target_is_scraped() {
    let watched = Watched::start(&["--vfs", "2"]);
    let targets = watched.targets();
    let names = targets.iter().map(|labels| labels["process"].as_str().unwrap());
    let names: BTreeSet<&str> = names.collect();
    assert_eq!(names.len(), 12, "a hub, three managers, four switches, four hosts: {names:?}");
    wait_until("each target is scraped", || watched.prometheus.query("up{process!=\"\"} == 1").len() == 12);
    let kinds = |kind: &str| targets.iter().filter(|labels| labels["kind"] == kind).count();
    assert_eq!(["hub", "sm", "pm", "vmm", "agent"].map(kinds), [1, 1, 1, 1, 8]);
    // Labels of metrics prevail over those of targets, which have the same names.
    wait_until("sweeps", || {
        !watched.prometheus.query("weft_sm_sweeps_total{kind=\"heavy\", lab=\"default\"}").is_empty()
    });
    assert!(!watched.fires("WeftLinkDown") && !watched.fires("WeftNoMaster"), "nothing is broken yet");
    stir(&watched);
    let dashboards = dashboards();
    let queries: BTreeSet<String> = dashboards.iter().flat_map(queries_of).collect();
    assert!(queries.len() > 100, "{}", queries.len());
    for query in &queries {
        if EMPTY.iter().any(|(empty, _)| empty == query) {
            assert!(!watched.has_data(query), "{query} does return data");
        } else {
            wait_until(query, || watched.has_data(query));
        }
    }
    consoles_show_the_same(&watched, &dashboards);
    // The same panels, as a browser draws them.
    let mut browser = crate::page::pytest("test_consoles.py", "not long");
    println!("{}", output_of(browser.env("WEFT_PROMETHEUS", watched.prometheus.address().to_string())));
    community_rules_have_their_sources(&watched);
}

/// The consoles are served, ask no other server, and have the dashboards' queries.
fn consoles_show_the_same(watched: &Watched, dashboards: &[Value]) {
    let consoles = files("prometheus/consoles", "html");
    assert_eq!(consoles.len(), dashboards.len() + 1, "an index, and one for each dashboard");
    for file in consoles {
        let name = file.file_name().unwrap().to_str().unwrap();
        let page = get(watched.prometheus.address(), &format!("/consoles/{name}")).expect(name);
        let elsewhere = page.replace("http://www.w3.org/2000/svg", "");
        for word in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!elsewhere.contains(word), "{name}: {word}");
        }
        assert!(page.contains("<html lang=\"en\">") && page.contains("name=\"viewport\""), "{name}");
        let Some(dashboard) = dashboards
            .iter()
            .find(|board| *board["uid"].as_str().unwrap() == *name.trim_end_matches(".html"))
        else {
            assert_eq!(name, "index.html");
            continue;
        };
        let board = board_of(&page);
        let panels = board["panels"].as_array().unwrap();
        let asked = panels.iter().flat_map(|panel| panel["queries"].as_array().unwrap());
        let asked: Vec<&str> = asked.map(|query| query[0].as_str().unwrap()).collect();
        assert_eq!(asked, queries_of(dashboard), "{name}");
    }
}

/// The community exporter's rules join each counter of switches with the other end of its cable; its dashboards read these.
fn community_rules_have_their_sources(watched: &Watched) {
    let page = watched.prometheus.query("{__name__=~\"infiniband_switch_port_.*_total\"}");
    let counters: BTreeSet<&str> =
        page.iter().map(|series| series["metric"]["__name__"].as_str().unwrap()).collect();
    assert!(counters.len() >= 20, "{counters:?}");
    for counter in counters {
        let joined = format!(
            "rate({counter}[10s]) * on(guid,port) group_left(switch, host, uplink, uplink_port) infiniband_switch_uplink_info"
        );
        wait_until(counter, || !watched.prometheus.query(&joined).is_empty());
        let of_switches = format!("sum({joined}) without (host, port, uplink, uplink_port)");
        assert!(!watched.prometheus.query(&of_switches).is_empty(), "{of_switches}");
    }
    for name in ["collect_errors", "collect_timeouts", "last_execution"] {
        let query = format!("infiniband_exporter_{name}{{collector=~\"switch|hca\"}}");
        assert_eq!(watched.prometheus.query(&query).len(), 2, "{name}");
    }
    let age = watched.prometheus.value("time() - min(infiniband_exporter_last_execution)");
    assert!((-1.0..60.0).contains(&age), "{age}");
}

/// Targets are those of the plan: one that is killed stays, and is missed; one that is removed goes.
#[test]
fn alerts_fire_for_faults_and_targets_come_and_go() {
    let watched = Watched::start(&[]);
    let (lab, prometheus) = (&watched.lab, &watched.prometheus);
    wait_until("each target is scraped", || prometheus.query("up{process!=\"\"} == 1").len() == 11);
    let nodes = || -> BTreeSet<String> {
        watched.targets().iter().filter_map(|labels| Some(labels["node"].as_str()?.to_owned())).collect()
    };
    assert_eq!(nodes().len(), 8, "an agent's target names its device");
    output_of(&mut lab.weft(&["topo", "remove", "host-3"]));
    let begun = Instant::now();
    wait_until("the host is no target", || !nodes().contains("host-3 mlx5_0"));
    assert!(begun.elapsed() < DISCOVERED_WITHIN, "{:?}", begun.elapsed());
    wait_until("it is not missed", || prometheus.query("up{process!=\"\"}").len() == 10);
    output_of(&mut lab.weft(&["topo", "add-host", "host-9", "--at", "switch-1-1:2"]));
    let begun = Instant::now();
    wait_until("the new host is a target", || nodes().contains("host-9"));
    assert!(begun.elapsed() < DISCOVERED_WITHIN, "{:?}", begun.elapsed());
    wait_until("it is scraped", || prometheus.query("up{node=\"host-9\"} == 1").len() == 1);
    // Without a subnet manager the performance manager could not learn of it.
    wait_until("its counters are read", || {
        !prometheus.query("infiniband_hca_info{hca=\"host-9\"}").is_empty()
    });
    output_of(&mut lab.weft(&["fault", "kill", "sm"]));
    output_of(&mut lab.weft(&["fault", "kill", "switch-2-0"]));
    for alert in ["WeftProcessDown", "WeftProcessEnded", "WeftNoMaster", "WeftDeviceSilent"] {
        wait_until(alert, || watched.fires(alert));
    }
    output_of(&mut lab.weft(&["fault", "restart", "sm"]));
    output_of(&mut lab.weft(&["fault", "restart", "switch-2-0"]));
    for alert in ["WeftProcessDown", "WeftProcessEnded", "WeftNoMaster", "WeftDeviceSilent"] {
        wait_until(&format!("{alert} is over"), || !watched.fires(alert));
    }
}

/// A hub that is not on loopback asks for the token, which the Prometheus of `up --watch` shows.
#[test]
fn a_watched_lab_has_a_prometheus_until_it_is_down() {
    let everywhere = format!("0.0.0.0:{}", free_port());
    let lab = Lab::start(&tree(), &["--pm", "--watch", "--hub-metrics", &everywhere]);
    let log = || std::fs::read_to_string(lab.folder().join("w/default/logs/prometheus")).unwrap();
    wait_until("Prometheus listens", || log().contains("msg=\"Listening on\" address="));
    let log = log();
    let (_, rest) = log.split_once("msg=\"Listening on\" address=").unwrap_or_else(|| panic!("{log}"));
    let address: SocketAddr = rest.split_whitespace().next().unwrap().parse().unwrap();
    wait_until("Prometheus is ready", || get(address, "/-/ready").is_some());
    wait_until("each target is scraped", || query_at(address, "up{process!=\"\"} == 1").len() == 11);
    assert!(get(address, "/consoles/weft-overview.html").is_some_and(|page| page.contains("id=\"board\"")));
    assert!(get(address, "/api/v1/rules").is_some_and(|rules| rules.contains("WeftLinkDown")));
    output_of(&mut lab.weft(&["down"]));
    assert!(TcpStream::connect(address).is_err(), "it outlives its laboratory");
}
