//! Fat-tree routing with a weight per virtual machine.

use super::{Engine, Input, Refusal};
use crate::routing::Routing;

pub(crate) const ENGINE: Engine = Engine {
    name: "vswitch-ftree",
    about: "ftree, balanced by the weights of virtual machines",
    options: &["roots", "vm_weights"],
    deadlock_free: true,
    run: |input| vswitch(input),
};

fn vswitch(_input: &Input<'_>) -> Result<Routing, Refusal> {
    Err(Refusal { engine: "vswitch-ftree", reason: "not built yet".to_owned() })
}
