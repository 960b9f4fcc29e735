//! weft's engines beside OpenSM's of the same name, on the same fabric and the same LIDs.

use weft_routing::quality::{
    Comparison, ComparisonRow, Participants, Pattern, SimulateOptions, compare, hosts,
};
use weft_routing::{Engine, EngineOptions, Expectations, Input, Routing, verify_routing};
use weft_topology::Fabric;

use crate::{Ibsim, route_by_opensm};

/// How much worse than OpenSM's a routing may be, as a share of bandwidth.
const TOLERANCE: f64 = 0.01;

/// How much more than OpenSM's the busiest link may carry, as a share.
const LINK_TOLERANCE: f64 = 0.1;

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
    /// Whether OpenSM's may deadlock on the one lane that it uses: then its number of lanes is no measure.
    pub opensm_deadlocks: bool,
    /// How long OpenSM computed, in seconds.
    pub seconds: f64,
}

impl Rivals {
    /// What ours may be on no fabric: without a way for some pair, on more lanes than OpenSM's without more bandwidth, or
    /// with cables idle where none of OpenSM's is.
    pub fn faults(&self) -> Vec<String> {
        let [theirs, ours] = self.rows();
        let mut faults = Vec::new();
        if ours.failures > 0 {
            faults.push(format!("{} pairs do not arrive", ours.failures));
        }
        let [their_least, our_least] = [theirs, ours].map(|row| row.balance.flows.all.min);
        if our_least == 0.0 && their_least > 0.0 {
            faults.push("cables are idle, and none of OpenSM's is".to_owned());
        }
        let gains = ours.bandwidth.mean > theirs.bandwidth.mean * (1.0 + TOLERANCE);
        if ours.lanes > theirs.lanes && !gains && !self.opensm_deadlocks {
            faults.push(format!("{} lanes instead of {}, for nothing", ours.lanes, theirs.lanes));
        }
        faults
    }

    /// OpenSM's figures and ours.
    ///
    /// # Panics
    /// When there are not two rows.
    pub fn rows(&self) -> [&ComparisonRow; 2] {
        let [theirs, ours] = &self.comparison.rows[..] else { panic!("two routings are compared") };
        [theirs, ours]
    }
}

/// What has been seen of one engine on some fabrics.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Fabrics that both serve.
    pub fabrics: u32,
    /// Their lanes added up, OpenSM's and ours.
    pub lanes: [u32; 2],
    /// Their bandwidths added up, OpenSM's and ours.
    pub bandwidth: [f64; 2],
    /// How many pairs use the busiest link of each, added up, OpenSM's and ours.
    pub worst_link: [f64; 2],
    /// Fabrics that only ours serves.
    pub only_weft: u32,
    /// Fabrics that only OpenSM's serves, and why ours does not.
    pub only_opensm: Vec<String>,
    /// What ours may be on no fabric.
    pub faults: Vec<String>,
    /// Fabrics on which ours has less bandwidth by more than the tolerance.
    pub behind: u32,
}

impl Tally {
    /// Adds what came out on one fabric.
    pub fn add(&mut self, fabric: &str, outcome: &Outcome) {
        match outcome {
            Outcome::OpenSmRefused { ours: None, .. } => self.only_weft += 1,
            Outcome::OpenSmRefused { .. } => {}
            Outcome::WeftRefused(reason) => self.only_opensm.push(format!("{fabric}: {reason}")),
            Outcome::Both(rivals) => {
                let rows = rivals.rows();
                self.fabrics += 1;
                for (place, row) in rows.into_iter().enumerate() {
                    self.lanes[place] += u32::from(row.lanes);
                    self.bandwidth[place] += row.bandwidth.mean;
                    self.worst_link[place] += row.balance.flows.all.max;
                }
                self.behind += u32::from(is_behind(rows.map(|row| row.bandwidth.mean)));
                self.faults.extend(rivals.faults().into_iter().map(|fault| format!("{fabric}: {fault}")));
            }
        }
    }

    /// All that is wrong: what ours may not be on any fabric, and less bandwidth on the mean over all of them, or,
    /// for dfsssp, a busier link.
    pub fn verdict(&self, engine: &str) -> Vec<String> {
        let mut wrong = self.faults.clone();
        wrong.extend(self.only_opensm.iter().cloned());
        if is_behind(self.bandwidth) {
            let [theirs, ours] = self.bandwidth.map(|sum| sum / f64::from(self.fabrics));
            wrong.push(format!("a mean bisection bandwidth of {ours:.4} instead of {theirs:.4}"));
        }
        let [theirs, ours] = self.worst_link;
        // Others trade it for lanes or look at their own ports alone.
        if engine == "dfsssp" && ours > theirs * (1.0 + LINK_TOLERANCE) {
            let share = ours / theirs;
            wrong.push(format!("the busiest link carries {share:.2} times what OpenSM's does"));
        }
        wrong
    }
}

/// Whether ours, the second, is less than OpenSM's by more than the tolerance.
fn is_behind([theirs, ours]: [f64; 2]) -> bool {
    ours < theirs * (1.0 - TOLERANCE)
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
    let opensm_deadlocks = theirs.lanes == 1
        && !verify_routing(fabric, &theirs.lids, &opensm, &Expectations::default()).is_deadlock_free();
    let participants = Participants::all(hosts(fabric, &theirs.lids));
    let options = SimulateOptions { runs, seed, ..SimulateOptions::default() };
    let rows = [("OpenSM", &opensm), ("weft", &ours)];
    let comparison = compare(fabric, &theirs.lids, &rows, &participants, Pattern::Bisect, &options)
        .expect("every host has a LID");
    Outcome::Both(Rivals { comparison, opensm_deadlocks, seconds: theirs.seconds })
}
