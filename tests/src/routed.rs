//! OpenSM's routing of a fabric: its tables, its LIDs and the number of lanes that it says it needs.

use weft_routing::{Lids, Routes};
use weft_topology::Fabric;

use crate::opensm::written;
use crate::{Ibsim, first_host};

/// What OpenSM made of a fabric with one of its engines.
#[derive(Debug)]
pub struct RoutedByOpenSm {
    /// The engine whose tables it wrote in the end, which is another one where the one asked for refused.
    pub engine: String,
    /// The LIDs that it gave.
    pub lids: Lids,
    /// Its tables.
    pub routes: Routes,
    /// How many lanes it says that it needs; 1 where it says nothing.
    pub lanes: u8,
    /// From the beginning of its computation to the end of it, in seconds, as its log has them.
    pub seconds: f64,
}

/// Routes `fabric`, which `ibsim` simulates, by OpenSM's `engine`; `more` are further arguments.
///
/// # Panics
/// When it does not bring the subnet up; its log is in the message.
pub fn route_by_opensm(ibsim: &Ibsim, fabric: &Fabric, engine: &str, more: &[&str]) -> RoutedByOpenSm {
    let log = ibsim.folder().join(format!("{engine}.log"));
    let (_, host) = first_host(fabric);
    let mut opensm = ibsim.command("opensm", &host.id);
    // Log flag 0x40 makes it write its tables; 0x4 tells which routing it builds.
    opensm.args(["-o", "-Q", "-D", "0x47", "-R", engine, "-f"]).arg(&log).args(more);
    let output = opensm.output().expect("OpenSM must be installed: apt-get install opensm");
    let text = String::from_utf8_lossy(&std::fs::read(&log).unwrap_or_default()).into_owned();
    assert!(output.status.success() && text.contains("SUBNET UP"), "opensm -R {engine}:\n{text}");
    let (lids, fdbs) = written(fabric, ibsim.folder());
    let engine = engine_of(&text).unwrap_or_else(|| panic!("no tables in the log:\n{text}"));
    RoutedByOpenSm { engine, lids, routes: fdbs.routes, lanes: lanes_of(&text), seconds: seconds_of(&text) }
}

/// The engine whose tables it wrote.
fn engine_of(log: &str) -> Option<String> {
    log.lines().find_map(|line| {
        let (before, _) = line.split_once(" tables configured on all switches")?;
        before.rsplit(' ').next().map(str::to_owned)
    })
}

/// What LASH and DFSSSP say of lanes.
fn lanes_of(log: &str) -> u8 {
    let after = |line: &str| {
        let at = line.find("anes needed: ")? + "anes needed: ".len();
        line[at..].split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    log.lines().rev().find_map(after).unwrap_or(1)
}

/// How long OpenSM has computed by its log, in seconds: from "building routing" to "tables configured".
pub fn seconds_of(log: &str) -> f64 {
    let stamp = |text: &str| {
        let line = log.lines().rfind(|line| line.contains(text))?;
        let mut words = line.split_whitespace().skip(2);
        let clock: Vec<f64> = words.next()?.split(':').filter_map(|part| part.parse().ok()).collect();
        let micros: f64 = words.next()?.parse().ok()?;
        let [hours, minutes, seconds] = clock[..] else { return None };
        Some(hours * 3600.0 + minutes * 60.0 + seconds + micros / 1e6)
    };
    let (from, to) = (stamp("building routing with"), stamp("tables configured on all switches"));
    from.zip(to).map_or(f64::NAN, |(from, to)| to - from)
}
