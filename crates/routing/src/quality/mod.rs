//! Quality of a routing, by the flows that meet on its paths.
//!
//! [`Paths`] makes tables ready once; everything else reads it:
//!
//! - [`simulate`] runs a communication pattern many times among hosts drawn at random, and gives the metrics of ORCS,
//!   the Oblivious Routing Congestion Simulator (Schneider, Hoefler and Lumsdaine, Indiana University TR-675, 2009;
//!   described in Tasoulas' thesis of 2017, section 2.5.2). Under `bisect` the mean of `hist_acc_band` is the effective
//!   bisection bandwidth;
//! - [`congestion`] does the same for flows that are given;
//! - [`survey`] follows every pair and tells how evenly links are used;
//! - [`busiest_share`] weighs pairs by what their receivers have received;
//! - [`contention`] and [`interference`] are the measures of Zahid 2016, section 7.1;
//! - [`compare`] puts several routings of one fabric into a table.
//!
//! Links are counted in each direction by themselves. A flow's share of bandwidth is that of the link on its path which
//! the most flows use, and lanes make no difference to it: flows on different lanes of a link share its bandwidth.
//! A pair that does not arrive loads no link, is counted, and the first few are named with the reason.

mod compare;
mod congestion;
mod contention;
mod participants;
mod paths;
mod pattern;
mod random;
mod received;
mod simulate;
mod summary;
mod survey;

use serde::Serialize;
use weft_wire::Lid;

pub use compare::{Comparison, ComparisonRow, compare};
pub use congestion::{Congestion, congestion};
pub use contention::{Contended, Contention, Interference, contention, interference};
pub use participants::{Participants, hosts, members};
pub use paths::Paths;
pub use pattern::{Level, Pattern, PatternError, Traffic};
pub use received::busiest_share;
pub use simulate::{CableCongestion, Metric, MetricError, SimulateOptions, Simulation, simulate};
pub use summary::{Bin, Figure, Summary};
pub use survey::{Balance, Directions, LinkLoad, Survey, survey};

use paths::Endpoint;

/// How many flows that do not arrive are named; the others are counted.
pub const UNREACHED_MAX: usize = 16;

/// A sender or receiver that no one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody has LID {0}, so it can neither send nor receive")]
pub struct UnknownLid(pub Lid);

/// A flow that does not arrive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unreached {
    /// The LID that sends.
    pub from: Lid,
    /// The LID that was to receive.
    pub to: Lid,
    /// How far a packet comes, and why no further.
    pub reason: String,
}

impl Unreached {
    fn new(paths: &Paths<'_>, from: Endpoint, to: Endpoint) -> Option<Self> {
        let error = paths.why_not(from, to)?;
        Some(Self { from: paths.lid(from), to: paths.lid(to), reason: error.to_string() })
    }
}

weft_wire::displayed!(Unreached { reason } => "{reason}");
