//! The engines: from cabling, LIDs and options to a routing.

mod chain;
mod contest;
mod dor;
mod file;
mod ftree;
mod lash;
mod minhop;
mod outside;
mod pftree;
mod phases;
mod sssp;
mod updn;
mod vftree;
mod vswitch;

use std::borrow::Cow;

use crate::collapse::Collapsed;
use crate::lanes::ServiceLevels;
use crate::options::LANES_MAX;
use crate::routing::Routing;
use crate::switches::SwitchGraph;

pub use crate::input::Input;
pub use chain::{Chain, ChainError};
pub use minhop::minhop;
pub(crate) use outside::is_program;
pub use outside::{Outside, PROGRAM, PROGRAM_OPTIONS, ProgramFailed};
pub use pftree::{CalculatedPaths, KeptPaths, WEIGHTS, learn_order, learn_weights};

/// Why an engine does not serve a fabric: one sentence that names the node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{engine}: {reason}")]
pub struct Refusal {
    /// The engine.
    pub engine: Cow<'static, str>,
    /// Why.
    pub reason: String,
}

/// A routing engine.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// The fields of [`EngineOptions`](crate::EngineOptions) that it reads, besides `threads`.
    pub options: &'static [&'static str],
    /// Whether what it returns is free of deadlock by its own claim, which the verifier tests.
    pub deadlock_free: bool,
    run: fn(&Input<'_>) -> Result<Routing, String>,
}

impl PartialEq for Engine {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Engine {}

/// All engines, min-hop first.
pub static ENGINES: [Engine; 14] = [
    minhop::ENGINE,
    updn::ENGINE,
    dor::ENGINE,
    ftree::ENGINE,
    lash::ENGINE,
    sssp::SSSP,
    sssp::DFSSSP,
    vftree::ENGINE,
    vswitch::ENGINE,
    pftree::PFTREE,
    pftree::PFTREE_EXT,
    pftree::PFTREE_WT,
    pftree::PFTREE_COMBINED,
    file::ENGINE,
];

/// Engines whose promises are about each path by itself and its lane, so that some paths can be replaced
/// ([`crate::Proven`]). Of the others, `dor` promises an order of dimensions, `vswitch` and the `pftree` family weigh what
/// they promise over all paths, and `file` takes tables as they are.
static REPAIRABLE: [&Engine; 7] = [
    &minhop::ENGINE,
    &updn::ENGINE,
    &ftree::ENGINE,
    &lash::ENGINE,
    &sssp::SSSP,
    &sssp::DFSSSP,
    &vftree::ENGINE,
];

impl Engine {
    /// Whether some of its paths can be replaced while it keeps what it promises of the others.
    pub fn is_repairable(&self) -> bool {
        REPAIRABLE.contains(&self)
    }

    /// The engine of this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        ENGINES.iter().find(|engine| engine.name == name)
    }

    /// Routes a fabric, by as many threads as the options say; by those of the pool that this is called in where
    /// they say 0.
    pub fn route(&self, input: &Input<'_>) -> Result<Routing, Refusal> {
        in_pool(input.options.threads, || self.run_here(input))
            .unwrap_or_else(|reason| Err(self.refusal(reason)))
    }

    /// Routes a fabric in the pool that this is called in; its vSwitches as part of their hosts.
    fn run_here(&self, input: &Input<'_>) -> Result<Routing, Refusal> {
        self.run_by(input, self.run)
    }

    /// The same by another way of the engine's to run.
    fn run_by(
        &self,
        input: &Input<'_>,
        run: impl FnOnce(&Input<'_>) -> Result<Routing, String>,
    ) -> Result<Routing, Refusal> {
        let lanes = input.options.lanes;
        if self.options.contains(&"lanes") && !(1..=LANES_MAX).contains(&lanes) {
            return Err(self.refusal(format!("the number of lanes must be 1 to {LANES_MAX}, not {lanes}")));
        }
        // Saved tables name every switch as it is.
        let collapsed = if self == &file::ENGINE { None } else { Collapsed::of(input) };
        let routing = match collapsed {
            Some(collapsed) => run(&collapsed.input(input)).map(|routing| collapsed.expand(input, routing)),
            None => run(input),
        };
        routing.map_err(|reason| self.refusal(reason))
    }

    fn refusal(&self, reason: String) -> Refusal {
        Refusal { engine: self.name.into(), reason }
    }
}

/// Service levels all 0, with a class for each switch: that of the LIDs attached to it.
fn classes_of_switches(input: &Input<'_>, graph: &SwitchGraph) -> ServiceLevels {
    let mut levels = ServiceLevels::classes(input.lids.top(), graph.len(), graph.len());
    for lids in input.lids.iter() {
        if let Some((switch, _)) = graph.attachment(input.fabric, lids.port) {
            lids.iter().for_each(|lid| levels.set_class(lid, switch as u16));
        }
    }
    levels
}

/// Works by this many threads; by those of the pool that this is called in where it is 0. Fails where the system has no
/// more threads.
fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> Result<T, String> {
    if threads == 0 {
        return Ok(work());
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    Ok(pool.map_err(|error| error.to_string())?.install(work))
}
