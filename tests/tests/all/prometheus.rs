//! Prometheus and promtool judge the exporters of a living laboratory, and `docs/metrics.md` with them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use weft_judges::{Lab, free_port, output_of, weft_program};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, xgft};

/// The page that a newcomer reads.
const DOCS: &str = include_str!("../../../docs/metrics.md");

/// No condition takes longer, or it never comes.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Four switches and four hosts.
fn tree() -> Fabric {
    xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap()
}

fn start(options: &[&str]) -> Lab {
    let lab = Lab::start(&tree(), options);
    wait_until("the performance manager has swept twice", || {
        let status = json(&output_of(&mut lab.weft(&["status", "--json"])));
        status["pm"]["sweeps"].as_u64() >= Some(2)
    });
    lab
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TIME_MAX, "{what}: not within {TIME_MAX:?}");
        std::thread::yield_now();
    }
}

/// The body of what is at `path`; `None` while no one answers with 200.
pub(crate) fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.lines().next()?.contains(" 200 ").then(|| body.to_owned())
}

/// What a query gives now at a Prometheus: one value for each series.
pub(crate) fn query_at(prometheus: SocketAddr, query: &str) -> Vec<Value> {
    let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let answer = get(prometheus, &format!("/api/v1/query?query={escaped}"));
    let answer = json(&answer.unwrap_or_else(|| panic!("Prometheus refuses {query}")));
    answer["data"]["result"].as_array().unwrap_or_else(|| panic!("{query}: {answer}")).clone()
}

/// The blocks of the page in this language.
fn blocks(language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let blocks = DOCS.split(&fence).skip(1);
    let found: Vec<String> =
        blocks.map(|rest| rest.split_once("```").expect("a block ends").0.to_owned()).collect();
    assert!(!found.is_empty(), "docs/metrics.md has no {language}");
    found
}

/// The queries of the page: one for each line that is no comment.
fn queries() -> Vec<String> {
    let blocks = blocks("promql");
    let lines = blocks.iter().flat_map(|block| block.lines()).map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// What promtool says about a page of metrics; nothing when all is well.
fn promtool_check(page: &str) -> String {
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool must be installed: apt-get install prometheus");
    // It reads all before it says anything.
    child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    if output.status.success() { said } else { format!("{}: {said}", output.status) }
}

/// Every exporter's address, by process.
fn exporters(lab: &Lab) -> Vec<(String, SocketAddr)> {
    let listed = json(&output_of(&mut lab.weft(&["metrics", "--list", "--json"])));
    let of = |target: &Value| {
        let url = target["url"].as_str().unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches("/metrics");
        (target["process"].as_str().unwrap().to_owned(), address.parse().unwrap())
    };
    listed.as_array().unwrap().iter().map(of).collect()
}

#[test]
fn promtool_has_nothing_to_say_about_any_page() {
    let lab = start(&["--metrics", "--pm", "--pm-interval", "100", "--pm-errors", "true"]);
    let exporters = exporters(&lab);
    assert_eq!(exporters.len(), 10, "two managers, four switches, four hosts");
    let (mut unknown, mut shown) = (Vec::new(), Vec::new());
    for (process, address) in &exporters {
        let page = get(*address, "/metrics").unwrap_or_else(|| panic!("{process} serves nothing"));
        assert_eq!(promtool_check(&page), "", "{process}");
        // What is shown is documented.
        for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
            let name = line.split(' ').next().unwrap();
            let told = name.replace("infiniband_switch_", "").replace("infiniband_hca_", "");
            if !DOCS.contains(&format!("`{told}`")) {
                unknown.push(told);
            }
            shown.push(name.to_owned());
        }
    }
    unknown.sort();
    unknown.dedup();
    assert!(unknown.is_empty(), "docs/metrics.md does not tell of {unknown:?}");
    let of_errors = "infiniband_switch_port_dli_mapping_errors_total";
    assert!(shown.iter().any(|name| name == of_errors), "{of_errors} is not shown");
}

/// A Prometheus that scrapes a laboratory, until dropped.
pub(crate) struct Prometheus {
    process: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Prometheus {
    /// Starts Prometheus with `config` and waits until it answers.
    fn start(config: &Path) -> Self {
        Self::start_with(config, &[])
    }

    /// The same with further arguments.
    pub(crate) fn start_with(config: &Path, more: &[String]) -> Self {
        loop {
            let mut started = Self::spawn(config, more);
            let mut ended = false;
            wait_until("Prometheus is ready", || {
                ended = started.process.try_wait().unwrap().is_some();
                ended || get(started.address, "/-/ready").is_some()
            });
            if !ended {
                return started;
            }
            // A port that was free may be taken by the time Prometheus asks for it; then another one is tried.
            let log = std::fs::read_to_string(started.log()).unwrap();
            assert!(log.contains("address already in use"), "{log}");
        }
    }

    /// With the arguments of a container that sees `bundle` as `/bundle`. Where it listens and keeps its series is this test's.
    pub(crate) fn start_as_in_container(bundle: &Path, arguments: &[String]) -> Self {
        let (mut config, mut more) = (None, Vec::new());
        for argument in arguments {
            let here = argument.replace("=/bundle/", &format!("={}/", bundle.display()));
            match here.strip_prefix("--config.file=") {
                Some(file) => config = Some(file.to_owned()),
                None if here.starts_with("--web.listen") || here.starts_with("--storage.tsdb.path") => {}
                None => more.push(here),
            }
        }
        Self::start_with(Path::new(&config.expect("a configuration is named")), &more)
    }

    fn spawn(config: &Path, more: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.path().join("log")).unwrap())
            .spawn()
            .expect("prometheus must be installed: apt-get install prometheus");
        Self { process, address, folder }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    fn log(&self) -> std::path::PathBuf {
        self.folder.path().join("log")
    }

    /// What a query gives now: one value for each series.
    pub(crate) fn query(&self, query: &str) -> Vec<Value> {
        query_at(self.address, query)
    }

    /// The value of the first series.
    pub(crate) fn value(&self, query: &str) -> f64 {
        let found = self.query(query);
        let value = found.first().and_then(|series| series["value"][1].as_str()?.parse().ok());
        value.unwrap_or_else(|| panic!("{query}: {found:?}"))
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn prometheus_scrapes_a_lab_and_documented_queries_work() {
    let lab = start(&["--metrics", "--pm", "--pm-interval", "200"]);
    let config = lab.folder().join("prometheus.yml");
    output_of(lab.weft(&["metrics", "--output"]).arg(&config));
    output_of(Command::new("promtool").args(["check", "config"]).arg(&config));
    let prometheus = Prometheus::start(&config);
    wait_until("every exporter is scraped", || prometheus.query("up == 1").len() == 10);
    for query in queries() {
        wait_until(&query, || !prometheus.query(&query).is_empty());
    }
    assert_eq!(prometheus.value("weft_pm_ports"), 16.0);
    assert!(prometheus.value("sum(infiniband_switch_port_transmit_data_bytes_total)") > 0.0);
    // An exporter that is gone is missed, and nothing else is.
    output_of(&mut lab.weft(&["fault", "kill", "pm"]));
    wait_until("one exporter is gone, and the others are there", || {
        ["up == 0", "up == 1"].map(|query| prometheus.query(query).len()) == [1, 9]
    });
    output_of(&mut lab.weft(&["fault", "restart", "pm"]));
    wait_until("it is back", || prometheus.query("up == 1").len() == 10);
}

#[test]
fn the_documented_rules_are_right() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks("yaml");
    let rules: Vec<&String> = blocks.iter().filter(|block| block.starts_with("groups:")).collect();
    assert!(!rules.is_empty(), "docs/metrics.md has no rules");
    for (at, text) in rules.into_iter().enumerate() {
        let file = folder.path().join(format!("rules-{at}.yml"));
        std::fs::write(&file, text).unwrap();
        let said = output_of(Command::new("promtool").args(["check", "rules"]).arg(&file));
        assert!(said.contains("SUCCESS"), "{said}");
    }
}

#[test]
fn the_documented_commands_run() {
    let blocks = blocks("sh");
    let commands =
        blocks.iter().flat_map(|block| block.lines()).filter_map(|line| line.strip_prefix("weft "));
    let mut lab: Option<Lab> = None;
    let mut ran = 0;
    for command in commands {
        let line = command.split(" #").next().unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), &lab) {
            // The laboratory of this test has a cabling of its own.
            (["topo", ..], _) => {}
            (["up", file, options @ ..], None) => {
                assert!(file.ends_with(".topo"), "{command}");
                lab = Some(Lab::start(&tree(), options));
            }
            (words, Some(lab)) => {
                output_of(&mut lab.weft(words));
                ran += 1;
            }
            _ => panic!("`weft {command}` stands before `weft up`"),
        }
    }
    assert!(ran >= 5, "too few of them");
}

/// Processes that serve metrics off loopback show a certificate and ask for a token. A Prometheus
/// with the bundle's scrape file has both; a client with one of them sees nothing.
#[test]
fn a_prometheus_scrapes_what_asks_for_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("net.topo"), tree().write_ibnetdiscover()).unwrap();
    let (port, udp) = (free_port(), free_port());
    let mut compose = Command::new(weft_program());
    compose.args(["compose", "net.topo", "--out", "bundle", "--pack", "all", "--no-sm"]);
    compose
        .args([format!("--metrics={port}"), format!("--udp-port={}", udp.max(1024))])
        .current_dir(folder.path());
    output_of(&mut compose);
    let mut agent = Command::new(weft_program());
    agent.args(["agent", "--bundle", "bundle", "--as", "a0000", "--run", "run"]).current_dir(folder.path());
    let mut agent = Stopped(agent.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());

    // curl finds the process by the name that every certificate has.
    let name = format!("pages.http.weft:{port}");
    let curl = |scheme: &str, more: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--max-time", "10", "--write-out", "%{http_code}"]);
        curl.args(["--resolve", &format!("{name}:127.0.0.1")]).args(more).current_dir(folder.path());
        let output = curl.arg(format!("{scheme}://{name}/metrics")).output().expect("curl must be installed");
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let token = std::fs::read_to_string(path("bundle/identities/http.token")).unwrap();
    let (ca, bearer) = (["--cacert", "bundle/ca.pem"], format!("Authorization: Bearer {token}"));
    let shows = || curl("https", &[&ca[..], &["--header", &bearer]].concat());
    wait_until("the agent serves its page", || shows().0 == Some(0));
    let (_, page) = shows();
    assert!(page.contains("weft_build_info{kind=\"agent\"") && page.ends_with("200"), "{page}");
    assert_eq!(curl("https", &["--header", &bearer]).0, Some(60), "no authority that curl knows");
    assert!(curl("http", &["--header", &bearer]).1.ends_with("000"), "no answer without TLS");
    let wrong = format!("Authorization: Bearer {}", token.to_uppercase());
    for header in ["X: y", "Authorization: Basic x", "Authorization: Bearer", &wrong] {
        let (code, said) = curl("https", &[&ca[..], &["--header", header]].concat());
        assert!(code == Some(0) && said.ends_with("401") && !said.contains("weft_build_info"), "{said}");
    }
    let forged = curl(
        "https",
        &[&ca[..], &["--header", &bearer, "--header", "Origin: https://evil.example"]].concat(),
    );
    assert!(forged.1.ends_with("403"), "{}", forged.1);

    let config = path("bundle/prometheus.yml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("a0000:", "127.0.0.1:")).unwrap();
    output_of(Command::new("promtool").args(["check", "config"]).arg(&config));
    let prometheus = Prometheus::start(&config);
    wait_until("it is scraped", || prometheus.query("up{process=\"a0000\"} == 1").len() == 1);
    assert!(agent.0.try_wait().unwrap().is_none());
}

/// A process that ends with the test.
struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
