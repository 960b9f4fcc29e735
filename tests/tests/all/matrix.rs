//! Every program of infiniband-diags on the X5 cluster: on weft by both ways of attaching, and on ibsim with OpenSM.
//! The result is the table in `docs/compatibility.md`; `WEFT_WRITE_DOCS=1` writes it again.

use std::path::Path;

use weft_judges::matrix::{self, Verdict};
use weft_judges::{Ibsim, Lab, OpenSm, Site, Way, first_host, opensm};
use weft_routing::minhop;
use weft_topology::Fabric;

const BEGIN: &str = "<!-- The test `matrix` writes from here -->\n";
const END: &str = "<!-- to here -->\n";

fn on_weft(fabric: &Fabric, way: Way) -> Vec<Verdict> {
    let lab = Lab::start(fabric, &["--engine", "minhop"]);
    let lids = opensm::lids_of(fabric, &lab.guid2lid());
    let routes = minhop(fabric, &lids);
    let options: &[&str] = if way == Way::Protocol { &["--ibsim"] } else { &[] };
    matrix::run(&Site {
        way,
        fabric,
        lids,
        routes,
        host: first_host(fabric).0,
        folder: lab.folder().to_owned(),
        command: &|program, node| lab.command(program, node, options),
        totals: &|node, port| lab.totals(node, port),
    })
}

fn on_ibsim(fabric: &Fabric) -> Vec<Verdict> {
    let ibsim = Ibsim::start(fabric);
    let (host, node) = first_host(fabric);
    let mut manager = ibsim.command("opensm", &node.id);
    manager.args(["-R", "minhop"]);
    let _manager = OpenSm::start(manager, ibsim.folder());
    let (lids, fdbs) = opensm::written(fabric, ibsim.folder());
    matrix::run(&Site {
        way: Way::Ibsim,
        fabric,
        lids,
        routes: fdbs.routes,
        host,
        folder: ibsim.folder().to_owned(),
        command: &|program, node| ibsim.command(program, &node.id),
        totals: &|_, _| None,
    })
}

fn columns(fabric: &Fabric) -> Vec<(Way, Vec<Verdict>)> {
    // Side by side, since most of the time goes by while ibsim's tools wait for answers that never come.
    std::thread::scope(|scope| {
        let layer = scope.spawn(|| on_weft(fabric, Way::Layer));
        let protocol = scope.spawn(|| on_weft(fabric, Way::Protocol));
        let ibsim = scope.spawn(|| on_ibsim(fabric));
        vec![
            (Way::Layer, layer.join().unwrap()),
            (Way::Protocol, protocol.join().unwrap()),
            (Way::Ibsim, ibsim.join().unwrap()),
        ]
    })
}

#[test]
fn every_tool() {
    let fabric = weft_judges::x5();
    let columns = columns(&fabric);
    let mut wrong = Vec::new();
    for (index, case) in matrix::cases().enumerate() {
        for (way, verdicts) in &columns {
            let excused = match way {
                Way::Layer => false,
                Way::Protocol => case.beyond_protocol.is_some(),
                Way::Ibsim => true,
            };
            if let Err(problem) = &verdicts[index]
                && !excused
            {
                wrong.push(format!("{way:?}: {}: {problem:.300}", case.command));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    is_in_the_docs(&matrix::table(&columns));
}

fn is_in_the_docs(table: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/compatibility.md");
    let text = std::fs::read_to_string(&file).unwrap();
    let begin = text.find(BEGIN).expect("the page has a place for the table") + BEGIN.len();
    let end = text.find(END).expect("the page has a place for the table");
    if std::env::var_os("WEFT_WRITE_DOCS").is_some() {
        std::fs::write(&file, format!("{}{table}{}", &text[..begin], &text[end..])).unwrap();
        return;
    }
    let hint = "docs/compatibility.md is out of date; write it anew with WEFT_WRITE_DOCS=1";
    assert_eq!(of_weft(&text[begin..end]), of_weft(table), "{hint}");
}

/// All columns but the last: what ibsim's tools wait for in vain depends on how busy the machine is.
fn of_weft(table: &str) -> Vec<&str> {
    table
        .lines()
        .map(|line| line.trim_end_matches('|').rsplit_once('|').map_or(line, |(rest, _)| rest))
        .collect()
}
