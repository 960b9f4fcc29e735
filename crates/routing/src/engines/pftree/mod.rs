//! Fat-tree routing for partitions (Zahid and others, "Efficient network isolation and load balancing in
//! multi-tenant HPC clusters", 2016).
//!
//! ```text
//!   Tree ──▶ tenants: who talks to whom
//!              │
//!              ▼   for every host, in the order of `order`
//!            route: main path by `choose`, everybody below it up to it, and whose traffic passes where
//!              │
//!              ▼
//!            policies: lanes for partitions that share links; what cannot be kept
//! ```
//!
//! The four engines differ in what decides between cables: `pftree` counts destinations, `pftree-ext` policies
//! before that, `pftree-wt` weights instead of it, and `pftree-combined` both by shares.

mod calculated;
mod choose;
mod kept;
mod order;
mod policies;
mod route;
mod tenants;
mod traffic;
mod weights;

use weft_vocabulary::routing::EngineReport;

use super::{Engine, Input};
use crate::options::EngineOptions;
use crate::partitions::{Isolation, Strictness};
use crate::routing::Routing;
use crate::tree::Tree;
use crate::tree::reach::Shape;
use choose::{Objective, SHARE_ALL};
use kept::Kept;

pub use calculated::{CalculatedPaths, KeptPaths};
pub use weights::{WEIGHTS, learn_order, learn_weights};

/// Declares one of the four engines with the options that it has besides those of all.
macro_rules! engine {
    ($name:ident = $text:literal, $about:literal $(, $option:literal)*) => {
        pub(crate) const $name: Engine = Engine {
            name: $text,
            about: $about,
            options: &[
                "partitions", "pftree_order", "order", $($option,)* "lanes", "roots", "compute_nodes", "io_nodes",
            ],
            deadlock_free: true,
            run: |input| route(input, $name.name),
        };
    };
}
engine!(PFTREE = "pftree", "fat-tree routing that keeps partitions apart");
engine!(PFTREE_EXT = "pftree-ext", "pftree with an isolation policy per partition", "literal", "leave_one");
engine!(PFTREE_WT = "pftree-wt", "pftree balanced by the weights of hosts", "weights");
engine!(
    PFTREE_COMBINED = "pftree-combined",
    "isolation and weights in one objective",
    "weights",
    "isolation_share"
);

/// What decides in one of the four engines; `None` for any other.
fn objective(engine: &str, options: &EngineOptions) -> Option<Objective> {
    let EngineOptions { literal, leave_one, isolation_share: share, .. } = *options;
    Some(match engine {
        _ if engine == PFTREE.name => Objective { share: SHARE_ALL, ..Objective::default() },
        _ if engine == PFTREE_EXT.name => Objective { policies: true, share: SHARE_ALL, literal, leave_one },
        _ if engine == PFTREE_WT.name => Objective::default(),
        _ if engine == PFTREE_COMBINED.name => {
            Objective { policies: share > 0, share, ..Objective::default() }
        }
        _ => return None,
    })
}

/// Both phases, one after the other.
fn route(input: &Input<'_>, engine: &str) -> Result<Routing, String> {
    let objective = objective(engine, input.options).unwrap_or_default();
    check(input.options, objective)?;
    let tree = Tree::new(input)?;
    let shape = Shape::new(&tree);
    assign(input, &tree, &shape, &mut Kept::default(), engine, objective)
}

fn check(options: &EngineOptions, objective: Objective) -> Result<(), String> {
    if options.leave_one && !options.literal {
        return Err(
            "leave-one changes the printed algorithm, which is not asked for: add --literal".to_owned()
        );
    }
    if objective.share > SHARE_ALL {
        return Err(format!(
            "the isolation's share is 0 to {SHARE_ALL} thousandths, not {}",
            objective.share
        ));
    }
    Ok(())
}

/// Assigns paths to destinations by their partitions.
fn assign(
    input: &Input<'_>,
    tree: &Tree,
    shape: &Shape,
    kept: &mut Kept,
    engine: &str,
    objective: Objective,
) -> Result<Routing, String> {
    let options = input.options;
    check(options, objective)?;
    let weights = match objective.share {
        SHARE_ALL => vec![1; tree.ends.len()],
        _ => weights::of_ends(input, &tree.ends)?,
    };
    let tenants = tenants::Tenants::new(input, tree);
    let routed = route::route(input, tree, shape, &tenants, objective, &weights, kept)?;
    let lanes = policies::assign(input.fabric, tree, shape, &tenants, &routed.users, options.lanes);
    let strictness = options.partitions.as_ref().map(|partitions| partitions.strictness);
    if let Some(first) = lanes.unsatisfied.first().filter(|_| strictness == Some(Strictness::Strict)) {
        return Err(first.clone());
    }
    let mut report = EngineReport {
        engine: engine.to_owned(),
        lanes: 1 + lanes.of.iter().max().copied().unwrap_or(0),
        ranks: Some(tree.rank_count()),
        roots: tree.roots(input.fabric),
        unsatisfied: lanes.unsatisfied,
        notes: tree.notes.iter().chain(&routed.notes).cloned().collect(),
        ..EngineReport::default()
    };
    if routed.detours > 0 {
        report.fallbacks.push(format!(
            "{} pairs of a switch and a LID have no path up and then down, none of them between hosts; theirs go \
             down and up again where nobody can wait for them in a circle",
            routed.detours,
        ));
    }
    let count = |isolation| tenants.list.iter().filter(|tenant| tenant.isolation == isolation).count();
    report.notes.push(format!(
        "{} partitions: {} with links of their own, {} with lanes of their own; {} share links with others, \
         {} pairs of them also a lane",
        tenants.list.len(),
        count(Isolation::Phy),
        count(Isolation::Vlane),
        lanes.sharing,
        lanes.mixed,
    ));
    Ok(Routing {
        routes: routed.routes,
        levels: tenants.levels(&tree.ends, input.lids.top(), &lanes.of),
        ranks: Some(tree.ranks_by_node()),
        report,
        ..Routing::default()
    })
}
