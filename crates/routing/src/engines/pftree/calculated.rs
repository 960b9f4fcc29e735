//! Routing in two phases (Zahid 2016, section 8.1): paths are calculated once for a cabling, and assigned to destinations by partition
//! as often as partitions change.
//!
//! ```text
//!   cabling ─▶ tree, shape, and by target and main path the way of everyone else ─┐
//!                                                                                 ▼
//!   partitions, policies, weights ──────────────────────────────▶ main path of each destination, by its partition ─▶ tables
//! ```
//!
//! The way of everyone else follows from the target and the main path alone, unless several cables are as short: those ways are chosen
//! by load each time, and are not kept.

use weft_topology::Fabric;

use super::choose::{Objective, SHARE_ALL};
use super::kept::Kept;
use super::{assign, check, objective, route};
use crate::collapse::Collapsed;
use crate::engines::{Engine, Input, Refusal, in_pool};
use crate::lids::Lids;
use crate::options::EngineOptions;
use crate::routing::Routing;
use crate::tree::Tree;
use crate::tree::reach::Shape;
/// The first phase: paths of a cabling with its LIDs, for the engines of the `pftree` family.
#[derive(Debug)]
pub struct CalculatedPaths {
    tree: Tree,
    shape: Shape,
    kept: Kept,
    fabric: Fabric,
    lids: Lids,
    /// The options that the tree follows from.
    of_tree: EngineOptions,
}

impl CalculatedPaths {
    /// Calculates the paths of a fabric: those that all destinations take where there are no partitions. Others are calculated when they
    /// are first assigned.
    ///
    /// # Errors
    /// A refusal that names the node when the cables make no tree, or where virtual switches share the LIDs of their hosts.
    pub fn new(input: &Input<'_>) -> Result<Self, Refusal> {
        Self::calculate(input).map_err(|reason| Refusal { engine: super::PFTREE.name.into(), reason })
    }

    fn calculate(input: &Input<'_>) -> Result<Self, String> {
        if Collapsed::of(input).is_some() {
            return Err(
                "paths of virtual switches follow those of their hosts, and are not calculated apart"
                    .to_owned(),
            );
        }
        let mut calculated = Self::begin(input)?;
        let options = calculated.of_tree.clone();
        let plain = Input { options: &options, ..*input };
        let tenants = super::tenants::Tenants::new(&plain, &calculated.tree);
        let weights = vec![1; calculated.tree.ends.len()];
        let objective = Objective { share: SHARE_ALL, ..Objective::default() };
        let Self { tree, shape, kept, .. } = &mut calculated;
        route::route(&plain, tree, shape, &tenants, objective, &weights, kept)?;
        Ok(calculated)
    }

    /// The tree, and no paths yet.
    fn begin(input: &Input<'_>) -> Result<Self, String> {
        let of_tree = tree_options(input.options);
        let tree = Tree::new(&Input { options: &of_tree, ..*input })?;
        let shape = Shape::new(&tree);
        let kept = Kept::new(input.lids, &shape);
        let (fabric, lids) = (input.fabric.clone(), input.lids.clone());
        Ok(Self { tree, shape, kept, fabric, lids, of_tree })
    }

    /// Whether they are paths of this fabric.
    fn fits(&self, input: &Input<'_>) -> bool {
        *input.lids == self.lids
            && tree_options(input.options) == self.of_tree
            && *input.fabric == self.fabric
    }

    /// The second phase without a proof, for who measures or compares both.
    ///
    /// # Errors
    /// As [`Self::assign`], but for the proof.
    pub fn assign_unproven(&mut self, engine: &Engine, input: &Input<'_>) -> Result<Routing, Refusal> {
        let refuse = |reason: String| Refusal { engine: engine.name.into(), reason };
        let Some(objective) = objective(engine.name, input.options) else {
            return Err(refuse("it does not assign paths by partitions".to_owned()));
        };
        if !self.fits(input) {
            let what = "paths were calculated for other LIDs, cables, roots or kinds of nodes";
            return Err(refuse(what.to_owned()));
        }
        let Self { tree, shape, kept, .. } = self;
        in_pool(input.options.threads, || assign(input, tree, shape, kept, engine.name, objective))
            .unwrap_or_else(Err)
            .map_err(refuse)
    }

    /// How many ways are kept: pairs of a target and a main path.
    pub fn ways(&self) -> usize {
        self.kept.len()
    }
}

/// Paths that engines of the `pftree` family keep from one routing of a cabling to the next: at first none. Each routing keeps those
/// that it calculates, and those of another cabling are forgotten.
#[derive(Debug, Default)]
pub struct KeptPaths(Option<Box<CalculatedPaths>>);

impl KeptPaths {
    /// Whether an engine keeps any.
    pub(crate) fn serve(engine: &Engine) -> bool {
        objective(engine.name, &EngineOptions::default()).is_some()
    }

    /// Both phases, of which the first does what is left to do.
    pub(crate) fn route(&mut self, engine: &Engine, input: &Input<'_>) -> Result<Routing, String> {
        let objective = objective(engine.name, input.options).unwrap_or_default();
        check(input.options, objective)?;
        let known = self.0.take().filter(|known| known.fits(input));
        let known = known.map_or_else(|| CalculatedPaths::begin(input).map(Box::new), Ok)?;
        let CalculatedPaths { tree, shape, kept, .. } = &mut **self.0.insert(known);
        assign(input, tree, shape, kept, engine.name, objective)
    }
}

/// The options that decide how a fabric is seen as a tree.
fn tree_options(options: &EngineOptions) -> EngineOptions {
    EngineOptions {
        roots: options.roots.clone(),
        compute_nodes: options.compute_nodes.clone(),
        io_nodes: options.io_nodes.clone(),
        management_nodes: options.management_nodes.clone(),
        ..EngineOptions::default()
    }
}
