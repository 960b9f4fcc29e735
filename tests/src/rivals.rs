//! weft's engines beside OpenSM's of the same name, on the same fabric and the same LIDs.

use weft_routing::quality::{Comparison, Participants, Pattern, SimulateOptions, compare, hosts};
use weft_routing::{Engine, EngineOptions, Input, Routing};
use weft_topology::Fabric;

use crate::{Ibsim, route_by_opensm};

/// How much worse than OpenSM's a routing may be, as a share of bandwidth.
const TOLERANCE: f64 = 0.01;

/// One engine on one fabric.
#[derive(Debug)]
pub enum Outcome {
    /// OpenSM's engine does not serve the fabric and it took another one; ours may.
    OpenSmRefused {
        /// The engine that OpenSM took.
        took: String,
        /// Why ours does not serve it either, if it does not.
        ours: Option<String>,
    },
    /// Ours does not serve the fabric, OpenSM's does.
    WeftRefused(String),
    /// Both serve it.
    Both(Rivals),
}

/// Two routings, OpenSM's and ours.
#[derive(Debug)]
pub struct Rivals {
    /// Under the same random bisections: OpenSM's is the first row, ours the second.
    pub comparison: Comparison,
    /// How long OpenSM computed, in seconds.
    pub seconds: f64,
}

impl Rivals {
    /// In what ours is worse, in a sentence each.
    pub fn faults(&self) -> Vec<String> {
        let [theirs, ours] = &self.comparison.rows[..] else { return vec!["not two rows".to_owned()] };
        let mut faults = Vec::new();
        if ours.failures > 0 {
            faults.push(format!("{} pairs do not arrive", ours.failures));
        }
        if ours.lanes > theirs.lanes {
            faults.push(format!("{} lanes instead of {}", ours.lanes, theirs.lanes));
        }
        let (mine, other) = (ours.bandwidth.mean, theirs.bandwidth.mean);
        if mine < other * (1.0 - TOLERANCE) {
            faults.push(format!("a bisection bandwidth of {mine:.4} instead of {other:.4}"));
        }
        faults
    }
}

/// Routes `fabric`, which `ibsim` simulates, by OpenSM's `engine` and by ours, and runs the same bisections over both.
///
/// # Panics
/// When there is no such engine, or OpenSM does not bring the subnet up.
pub fn side_by_side(ibsim: &Ibsim, fabric: &Fabric, engine: &str, runs: u32, seed: u64) -> Outcome {
    let theirs = route_by_opensm(ibsim, fabric, engine, &[]);
    let options = EngineOptions::default();
    let input = Input { fabric, lids: &theirs.lids, options: &options };
    let ours = Engine::by_name(engine).expect("weft has this engine").route(&input);
    if theirs.engine != engine {
        let ours = ours.err().map(|refusal| refusal.to_string());
        return Outcome::OpenSmRefused { took: theirs.engine, ours };
    }
    let ours = match ours {
        Ok(routing) => routing,
        Err(refusal) => return Outcome::WeftRefused(refusal.to_string()),
    };
    let mut opensm = Routing::on_one_lane(engine, theirs.routes);
    opensm.report.lanes = theirs.lanes;
    let participants = Participants::all(hosts(fabric, &theirs.lids));
    let options = SimulateOptions { runs, seed, ..SimulateOptions::default() };
    let rows = [("OpenSM", &opensm), ("weft", &ours)];
    let comparison = compare(fabric, &theirs.lids, &rows, &participants, Pattern::Bisect, &options)
        .expect("every host has a LID");
    Outcome::Both(Rivals { comparison, seconds: theirs.seconds })
}
