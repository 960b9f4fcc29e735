//! The X5 cluster on a Swarm of three Docker engines, each in a network namespace of its own: from the file that Compose reads, too.
//!
//! Long tier: `cargo nextest run --profile long -p weft-judges swarm::`, as root and with a Docker engine, whose image store
//! and containerd these engines use. They leave it alone otherwise.

use weft_judges::{Image, STACK, Stack, has_engine, is_root, output_of};

#[test]
fn x5_on_a_swarm_heals_after_a_cut_off_and_a_dead_engine() {
    if !has_engine() || !is_root() {
        return;
    }
    let image = Image::make();
    let mut stack = Stack::deploy(&image, "psmn-x5.topo", &["--pack", "leaf", "--pm"]);
    stack.heals("after the stack was deployed");
    let placed = stack.placed();
    for machine in ["machine1", "machine2", "machine3"] {
        assert!(placed.contains(machine), "nothing runs on {machine}:\n{placed}");
    }

    stack.engines.machines.cut(3);
    // The Swarm may be sooner than the links' timeouts: the subnet manager need not miss a node.
    stack.wait_until("the Swarm gives it up", || stack.engines.state(3) == "down");
    stack.heals("its agents run on other machines");
    stack.engines.machines.mend(3);
    stack.wait_until("it is back", || stack.engines.state(3) == "ready");
    stack.heals("with both lives of its agents, one of which ends");

    stack.engines.kill(2);
    stack.wait_until("the Swarm misses the engine", || stack.engines.state(2) == "down");
    stack.engines.start_one(2);
    stack.wait_until("the engine is back", || stack.engines.state(2) == "ready");
    stack.heals("after an engine was killed and started");
    output_of(&mut stack.engines.docker(1, &["stack", "rm", STACK]));
}
