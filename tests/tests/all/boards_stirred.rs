//! A laboratory with load, a hot spot, a move and every kind of fault: each shows in the panel that is meant for it, from a real Prometheus.

use std::path::Path;

use serde_json::Value;

use crate::boards::{Watched, dashboards, texts};
use crate::prometheus::{json, wait_until};

/// A fault, and the panel that shows it.
struct Shown {
    /// What `weft fault` is given.
    fault: &'static [&'static str],
    /// Title of the dashboard and of the panel, and what stands in the query.
    panel: [&'static str; 3],
    /// A label that the series has.
    label: Option<(&'static str, &'static str)>,
    /// From here on it is shown.
    least: f64,
}

/// Of kinds that impair packets the panel says what became of them.
const fn impaired(fault: &'static [&'static str], became: &'static str) -> Shown {
    Shown { fault, panel: ["Agents", "Impaired packets", ""], label: Some(("became", became)), least: 0.01 }
}

/// The links that no one answers at, as a dashboard has them.
const DOWN: [&str; 3] = ["Overview", "Cable ends without a link", ""];

/// All kinds of faults that lanes and rates do not show, group after group. Flow 1-5 crosses A:1.
const FAULTS: [&[Shown]; 7] = [
    &[
        impaired(&["add", "loss", "--percent", "10", "A:1"], "lost"),
        impaired(&["add", "delay", "--by", "5ms", "A:1"], "late"),
        impaired(&["add", "reorder", "--percent", "20", "A:1"], "reordered"),
        impaired(&["add", "duplicate", "--percent", "100", "A:1"], "duplicated"),
        impaired(&["add", "bit-errors", "--rate", "1e-5", "A:1"], "damaged"),
        Shown {
            fault: &["add", "flap", "--every", "2s", "B:2"],
            panel: ["Ports and lanes", "Links of agents", "link_downs"],
            label: None,
            least: 1.0,
        },
        Shown {
            fault: &["add", "slow-drain", "--percent", "5", "host-5:1"],
            panel: ["Ports and lanes", "Waiting time", ""],
            label: Some(("node", "host-5 vSwitch")),
            least: 0.5,
        },
    ],
    &[
        impaired(&["add", "jitter", "--by", "5ms", "A:1"], "late"),
        Shown { fault: &["link-down", "C:4"], panel: DOWN, label: None, least: 2.0 },
    ],
    &[Shown { fault: &["partition", "host-6"], panel: DOWN, label: None, least: 2.0 }],
    &[Shown {
        fault: &["bad-identity", "host-6"],
        panel: ["Agents", "Trouble with cables", "refused_peers"],
        label: None,
        least: 1.0,
    }],
    &[Shown { fault: &["freeze", "host-6"], panel: DOWN, label: None, least: 1.0 }],
    &[Shown {
        fault: &["kill", "host-6"],
        panel: ["Overview", "Processes down", ""],
        label: None,
        least: 1.0,
    }],
    &[Shown { fault: &["kill", "sm"], panel: ["Overview", "Processes down", ""], label: None, least: 1.0 }],
];

/// The queries of a panel.
fn queries_of([board, title, part]: [&str; 3]) -> Vec<String> {
    let boards = dashboards();
    let of = |board: &Value| board["panels"].as_array().unwrap().clone();
    let named = boards.iter().filter(|found| found["title"].as_str().unwrap().ends_with(board));
    let panels: Vec<Value> = named.flat_map(of).filter(|panel| panel["title"] == title).collect();
    assert_eq!(panels.len(), 1, "{board}: {title}");
    let queries = texts(&panels[0]["targets"], "expr");
    queries.into_iter().filter(|query| query.contains(part)).collect()
}

/// The greatest value of a panel's series that have the label.
fn greatest(watched: &Watched, panel: [&str; 3], label: Option<(&str, &str)>) -> f64 {
    let series = queries_of(panel).into_iter().flat_map(|query| watched.asked(&query));
    let labelled = series.filter(|found| label.is_none_or(|(name, value)| found["metric"][name] == value));
    let value = |found: Value| found["value"][1].as_str().unwrap().parse::<f64>().unwrap();
    labelled.map(value).filter(|value| !value.is_nan()).fold(0.0, f64::max)
}

/// dFtree's first experiment on processes: hosts 1, 3 and 6 send to host 5, and flow 2-3 waits behind 1-5.
fn dftree() -> Watched {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = std::fs::read_to_string(root.join("topologies/dftree-1.topo")).unwrap();
    let fabric = weft_topology::parse("dftree-1.topo", &text).unwrap();
    let rates = root.join("experiments/dftree-1.toml");
    let rates = rates.to_str().unwrap();
    let watched =
        Watched::of(&fabric, &["--rates", rates, "--engine", "ftree", "--sm-at", "host-4", "--vfs", "2"]);
    for (from, to) in [("2", "3"), ("1", "5"), ("3", "5"), ("6", "5")] {
        let [host, other] = [from, to].map(|number| format!("host-{number}"));
        watched.weft(&["flow", "start", &host, &other, "--name", &format!("{from}-{to}")]);
    }
    watched
}

#[test]
fn a_hot_spot_a_move_and_every_fault_show_in_their_panels() {
    let watched = dftree();
    // The performance manager asks for the rates of links once a minute.
    for (fault, ..) in SLOWER {
        watched.weft(&[&["fault"][..], &fault].concat());
    }
    let shows = |panel: [&str; 3], label, least: f64| {
        let what = format!("{panel:?} shows {least} or more");
        wait_until(&what, || greatest(&watched, panel, label) >= least);
    };
    shows(["Congestion and slow lanes", "Hot spots", ""], None, 1.0);
    shows(["Congestion and slow lanes", "Hosts on the slow lane", ""], None, 1.0);
    shows(
        ["Congestion and slow lanes", "Ports that lead to hot spots", ""],
        Some(("node", "host-5 vSwitch")),
        1.0,
    );
    shows(["Flows", "Flows running", ""], None, 4.0);
    wait_until("the alert of hot spots", || watched.fires("WeftHotSpot"));

    watched.weft(&["vm", "create", "web", "--host", "host-2"]);
    watched.weft(&["vm", "migrate", "web", "host-6"]);
    shows(["Migrations", "Moves", ""], None, 0.5);

    for group in FAULTS {
        faults_show(&watched, group);
    }
    slower_links_show(&watched);
}

/// None of these shows, then all do, and none is left.
fn faults_show(watched: &Watched, group: &[Shown]) {
    let value = |shown: &Shown| greatest(watched, shown.panel, shown.label);
    for shown in group {
        wait_until(&format!("{:?} is calm", shown.panel), || value(shown) < shown.least);
    }
    let before = lasting(watched);
    for shown in group {
        watched.weft(&[&["fault"][..], shown.fault].concat());
    }
    for shown in group {
        wait_until(&format!("{:?} shows", shown.fault), || value(shown) >= shown.least);
    }
    for shown in group {
        match shown.fault {
            ["kill", name] => watched.weft(&["fault", "restart", name]),
            ["freeze", name] => watched.weft(&["fault", "thaw", name]),
            ["bad-identity", name] => watched.weft(&["fault", "good-identity", name]),
            _ => continue,
        };
    }
    let added = lasting(watched).into_iter().filter(|fault| !before.contains(fault));
    for fault in added {
        watched.weft(&["fault", "clear", &fault]);
    }
    assert_eq!(lasting(watched), before);
}

/// Links with fewer lanes, or at a lower speed, which data hardly uses, and what is left of 4x DDR, in bytes per second.
const SLOWER: [([&str; 5], &str, f64); 2] =
    [(["add", "width", "--to", "1x", "A:4"], "A", 0.5e9), (["add", "speed", "--to", "sdr", "B:4"], "B", 1e9)];

/// The table of links has what is left of them.
fn slower_links_show(watched: &Watched) {
    let [query] = queries_of(["Ports and lanes", "Rates of links", ""]).try_into().unwrap();
    for (fault, node, left) in SLOWER {
        let is_port = |row: &&Value| row["metric"]["node"] == node && row["metric"]["port"] == "4";
        let rate = || watched.asked(&query).iter().find(is_port)?["value"][1].as_str()?.parse::<f64>().ok();
        wait_until(&format!("{fault:?} shows"), || rate() == Some(left));
    }
}

/// The faults that last, by id.
fn lasting(watched: &Watched) -> Vec<String> {
    let all = json(&watched.weft(&["fault", "ls", "--json"]));
    texts(&all, "id")
}
