//! Fat-tree routing for partitions.

use super::{Engine, Input, Refusal};
use crate::routing::Routing;

pub(crate) const PFTREE: Engine = Engine {
    name: "pftree",
    about: "fat-tree routing that keeps partitions apart",
    options: &["partitions", "lanes", "roots"],
    deadlock_free: true,
    run: |input| pftree(input),
};

fn pftree(_input: &Input<'_>) -> Result<Routing, Refusal> {
    Err(Refusal { engine: "pftree", reason: "not built yet".to_owned() })
}

pub(crate) const PFTREE_EXT: Engine = Engine {
    name: "pftree-ext",
    about: "pftree with an isolation policy per partition",
    options: &["partitions", "lanes", "roots"],
    deadlock_free: true,
    run: |input| pftree_ext(input),
};

fn pftree_ext(_input: &Input<'_>) -> Result<Routing, Refusal> {
    Err(Refusal { engine: "pftree-ext", reason: "not built yet".to_owned() })
}

pub(crate) const PFTREE_WT: Engine = Engine {
    name: "pftree-wt",
    about: "pftree balanced by the weights of hosts",
    options: &["partitions", "weights", "lanes", "roots"],
    deadlock_free: true,
    run: |input| pftree_wt(input),
};

fn pftree_wt(_input: &Input<'_>) -> Result<Routing, Refusal> {
    Err(Refusal { engine: "pftree-wt", reason: "not built yet".to_owned() })
}

pub(crate) const PFTREE_COMBINED: Engine = Engine {
    name: "pftree-combined",
    about: "isolation and weights in one objective",
    options: &["partitions", "weights", "isolation_share", "lanes", "roots"],
    deadlock_free: true,
    run: |input| pftree_combined(input),
};

fn pftree_combined(_input: &Input<'_>) -> Result<Routing, Refusal> {
    Err(Refusal { engine: "pftree-combined", reason: "not built yet".to_owned() })
}
