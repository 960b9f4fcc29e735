//! A laboratory with load, a hot spot, a migration and every kind of fault: each panel's query returns data, and each of these shows in
//! the panel that is for it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use weft_judges::{output_of, weft_program};

use crate::boards::{Watched, consoles_show_the_same, dashboards, queries_of};
use crate::community::rules_and_queries_work;
use crate::prometheus::wait_until;

/// Queries that need not return data in this run, each with its reason. One that does must not stand here.
const EMPTY: [(&str, &str); 0] = [];

/// Something that is done, and the panel that shows it.
struct Shown {
    /// Verbs without `weft`.
    done: &'static [&'static str],
    board: &'static str,
    panel: &'static str,
    /// What stands in the query, where the panel has several.
    query: &'static str,
    /// Which of its series.
    series: &'static [(&'static str, &'static str)],
    is: Is,
}

/// What a series is to be.
#[derive(Clone, Copy, Debug)]
enum Is {
    Above(f64),
    Below(f64),
    /// To a thousandth.
    About(f64),
}

impl Is {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::Above(bound) => value > bound,
            Self::Below(bound) => value < bound,
            Self::About(wanted) => (value / wanted - 1.0).abs() < 1e-3,
        }
    }
}

const fn shows(
    done: &'static [&'static str],
    [board, panel]: [&'static str; 2],
    series: &'static [(&'static str, &'static str)],
    is: Is,
) -> Shown {
    Shown { done, board, panel, query: "", series, is }
}

/// The same where a panel has several queries.
const fn by(query: &'static str, shown: Shown) -> Shown {
    Shown { query, ..shown }
}

/// dFtree's first experiment: three hosts send to host-5, which is the one hot spot, and host-2 sends past them.
const LOAD: &[Shown] = &[
    shows(
        &[
            "flow start host-2 host-3 --name 2-3",
            "flow start host-1 host-5 --name 1-5",
            "flow start host-3 host-5 --name 3-5",
            "flow start host-6 host-5 --name 6-5",
            "flow start host-2 host-6 --ping-pong --size 256 --name ping",
            "traffic start ring --hosts host-1,host-2,host-3 --rate 0.1 --set ring",
        ],
        ["congestion", "Hot spots"],
        &[],
        Is::About(1.0),
    ),
    shows(&[], ["overview", "Hot spots"], &[], Is::About(1.0)),
    shows(
        &[],
        ["congestion", "Ports that lead to hot spots"],
        &[("node", "C"), ("port", "1")],
        Is::About(1.0),
    ),
    shows(&[], ["congestion", "Hosts on the slow lane"], &[], Is::Above(1.5)),
    by("repaths_total", shows(&[], ["congestion", "Requests to change lanes"], &[], Is::Above(0.0))),
    shows(
        &[],
        ["congestion", "Ports where data waits most"],
        &[("node", "C"), ("port", "1")],
        Is::Above(0.1),
    ),
    shows(&[], ["flows", "Flows running"], &[], Is::About(8.0)),
    shows(&[], ["flows", "Flows failed"], &[], Is::Below(0.5)),
    shows(&[], ["flows", "Rates"], &[("flow", "2-3")], Is::Above(0.0)),
    shows(&[], ["flows", "Rates"], &[("set", "ring")], Is::Above(0.0)),
    shows(&[], ["flows", "99 of 100 times"], &[("flow", "ping")], Is::Above(0.0)),
    // Two directions of 4xDDR carry 16 Gb/s each.
    shows(&[], ["ports", "Rates of links"], &[("node", "B"), ("port", "4")], Is::About(2e9)),
    by(
        "moves_done",
        shows(
            &["vm create web --host host-1", "vm migrate web host-3"],
            ["migrations", "Moves"],
            &[],
            Is::Above(0.0),
        ),
    ),
];

/// Faults of cables. Several are at one cable at once, and each shows as what it is.
const IMPAIRED: &[Shown] = &[
    shows(
        &["fault add loss A:3 --percent 5"],
        ["agents", "Impaired packets"],
        &[("became", "lost")],
        Is::Above(0.0),
    ),
    shows(&[], ["flows", "Packets lost on cables"], &[("became", "lost")], Is::Above(0.0)),
    shows(&[], ["flows", "Packets sent again"], &[], Is::Above(0.0)),
    shows(
        &["fault add delay A:3 --by 1ms"],
        ["agents", "Impaired packets"],
        &[("became", "late")],
        Is::Above(0.0),
    ),
    shows(
        &["fault add reorder A:3 --percent 5"],
        ["agents", "Impaired packets"],
        &[("became", "reordered")],
        Is::Above(0.0),
    ),
    shows(
        &["fault add duplicate A:3 --percent 100"],
        ["agents", "Impaired packets"],
        &[("became", "duplicated")],
        Is::Above(0.0),
    ),
    shows(
        &["fault add bit-errors A:3 --rate 1e-6"],
        ["agents", "Impaired packets"],
        &[("became", "damaged")],
        Is::Above(0.0),
    ),
    by("symbol_error", shows(&[], ["ports", "Link errors"], &[("node", "R"), ("port", "1")], Is::Above(0.0))),
    shows(
        &["fault add width B:4 --to 1x"],
        ["ports", "Rates of links"],
        &[("node", "B"), ("port", "4")],
        Is::About(5e8),
    ),
    shows(
        &["fault add speed B:3 --to sdr"],
        ["ports", "Rates of links"],
        &[("node", "B"), ("port", "3")],
        Is::About(1e9),
    ),
    shows(
        &["fault add slow-drain host-3:1 --percent 5"],
        ["ports", "Waiting time"],
        &[("node", "B"), ("port", "1")],
        Is::Above(0.3),
    ),
    by(
        "link_downs",
        shows(
            &["fault add flap C:4 --every 2s --down 500ms"],
            ["ports", "Links of agents"],
            &[],
            Is::Above(1.5),
        ),
    ),
    // Where damaged packets outnumber the others the link trains again.
    by(
        "link_error_recovery",
        shows(
            &["fault add bit-errors host-6:1 --rate 3e-4"],
            ["ports", "Link errors"],
            &[("node", "C"), ("port", "2")],
            Is::Above(0.0),
        ),
    ),
    shows(&["fault clear --all"], ["agents", "Impaired packets"], &[("became", "late")], Is::Below(1e-9)),
    shows(
        &["fault add jitter A:3 --by 1ms"],
        ["agents", "Impaired packets"],
        &[("became", "late")],
        Is::Above(0.0),
    ),
    shows(&["fault clear --all"], ["overview", "Cable ends without a link"], &[], Is::Below(0.5)),
];

/// Faults of nodes and processes, and their ends.
const BROKEN: &[Shown] = &[
    shows(&["fault link-down A:4"], ["overview", "Cable ends without a link"], &[], Is::About(2.0)),
    shows(&["fault link-up A:4"], ["overview", "Cable ends without a link"], &[], Is::Below(0.5)),
    shows(&["fault freeze host-6"], ["subnet-manager", "Hosts cut off"], &[], Is::Above(0.5)),
    shows(&["fault thaw host-6"], ["subnet-manager", "Hosts cut off"], &[], Is::Below(0.5)),
    shows(&["fault partition C host-5 host-6"], ["subnet-manager", "Hosts cut off"], &[], Is::Above(1.5)),
    shows(&["fault heal C host-5 host-6"], ["subnet-manager", "Hosts cut off"], &[], Is::Below(0.5)),
    by(
        "refused_peers",
        shows(&["fault bad-identity host-6"], ["agents", "Trouble with cables"], &[], Is::Above(0.0)),
    ),
    shows(&["fault good-identity host-6"], ["overview", "Cable ends without a link"], &[], Is::Below(0.5)),
    shows(&["fault freeze sm"], ["overview", "Processes down"], &[], Is::About(1.0)),
    shows(&["fault thaw sm"], ["overview", "Processes down"], &[], Is::Below(0.5)),
    shows(&["fault kill host-6"], ["overview", "Processes down"], &[], Is::About(1.0)),
    shows(&[], ["flows", "Flows failed"], &[], Is::Above(0.5)),
    shows(&["fault restart host-6"], ["overview", "Processes down"], &[], Is::Below(0.5)),
];

impl Shown {
    /// Does it, and waits until the panel shows it.
    fn happens(&self, watched: &Watched) {
        for line in self.done {
            watched.weft(&line.split_whitespace().collect::<Vec<_>>());
        }
        let boards = dashboards();
        let uid = format!("weft-{}", self.board);
        let board = boards.iter().find(|board| board["uid"] == *uid).expect(self.board);
        let panels = board["panels"].as_array().unwrap();
        let panel = panels.iter().find(|panel| panel["title"] == self.panel).expect(self.panel);
        let queries =
            panel["targets"].as_array().unwrap().iter().map(|target| target["expr"].as_str().unwrap());
        let queries: Vec<&str> = queries.filter(|query| query.contains(self.query)).collect();
        assert_eq!(queries.len(), 1, "{}: {queries:?}", self.panel);
        let matches = |metric: &Value| self.series.iter().all(|(label, value)| metric[label] == *value);
        let mut last: Vec<f64> = Vec::new();
        println!("{:?} shows in {} of {}, as {:?}", self.done, self.panel, self.board, self.is);
        wait_until(self.panel, || {
            let series = watched.asked(queries[0]).into_iter().filter(|series| matches(&series["metric"]));
            let found: Vec<f64> =
                series.map(|series| series["value"][1].as_str().unwrap().parse().unwrap()).collect();
            if found != last {
                println!("    {found:?}");
            }
            last = found;
            let holds = |value: &f64| self.is.holds(*value);
            match self.is {
                // Of a sum that has fallen, no part may be left.
                Is::Below(_) => !last.is_empty() && last.iter().all(holds),
                Is::Above(_) | Is::About(_) => last.iter().any(holds),
            }
        });
    }
}

/// The commands that help lists after these words.
fn commands(words: &[&str]) -> Vec<String> {
    let help = output_of(Command::new(weft_program()).args(words).arg("-h"));
    let (_, rest) = help.split_once("Commands:\n").expect("help lists commands");
    let lines = rest.lines().take_while(|line| !line.is_empty());
    let first = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    first.filter(|word| !word.is_empty() && *word != "help").map(str::to_owned).collect()
}

/// No kind of fault is forgotten here.
#[test]
fn every_kind_of_fault_has_a_panel_that_shows_it() {
    let done: Vec<&str> =
        [IMPAIRED, BROKEN].into_iter().flatten().flat_map(|shown| shown.done).copied().collect();
    let of = |words: &[&str]| {
        commands(words).into_iter().map(|word| [words, &[&word]].concat().join(" ")).collect::<Vec<_>>()
    };
    let (faults, impairments) = (of(&["fault"]), of(&["fault", "add"]));
    assert!(faults.len() > 10 && impairments.len() > 8, "{faults:?} {impairments:?}");
    for kind in faults.iter().chain(&impairments) {
        // These list faults.
        if !["fault ls", "fault times"].contains(&kind.as_str()) {
            assert!(done.iter().any(|line| line.starts_with(&format!("{kind} "))), "`{kind}` is not tried");
        }
    }
}

#[test]
fn each_panel_returns_data_while_everything_happens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let rates = root.join("experiments/dftree-1.toml");
    let topology = root.join("topologies/dftree-1.topo");
    let fabric = weft_topology::parse("dftree-1.topo", &std::fs::read_to_string(topology).unwrap()).unwrap();
    let watched = Watched::of(
        &fabric,
        &[
            "--rates",
            rates.to_str().unwrap(),
            "--engine",
            "ftree",
            "--sm-at",
            "host-4",
            "--pm-at",
            "host-4",
            "--vfs",
            "2",
        ],
    );
    wait_until("each target is scraped", || watched.query("up{process!=\"\"} == 1").len() == 14);
    for shown in LOAD {
        shown.happens(&watched);
    }
    wait_until("WeftHotSpot", || watched.fires("WeftHotSpot"));
    watched.weft(&["flow", "stop", "1-5", "3-5"]);
    for shown in IMPAIRED.iter().chain(BROKEN) {
        shown.happens(&watched);
    }
    wait_until("WeftFlowsFail", || watched.fires("WeftFlowsFail"));
    let dashboards = dashboards();
    let queries: BTreeSet<String> = dashboards.iter().flat_map(queries_of).collect();
    assert!(queries.len() > 120, "{}", queries.len());
    for query in &queries {
        if EMPTY.iter().any(|(empty, _)| empty == query) {
            assert!(!watched.has_data(query), "{query} does return data");
        } else {
            wait_until(query, || watched.has_data(query));
        }
    }
    consoles_show_the_same(&watched, &dashboards);
    rules_and_queries_work(&watched);
}
