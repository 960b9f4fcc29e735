//! The same file under Debian's Compose 1.29, an agent for each device.
//!
//! Long tier: `cargo nextest run --profile long -p weft-judges old_compose::`, with a Docker engine.

use std::process::Command;
use std::time::{Duration, Instant};

use weft_judges::{Containers, Image, has_engine, output_of};

/// How long a host is cut off.
const AWAY: Duration = Duration::from_secs(30);

#[test]
fn a_ring_on_old_compose_heals_after_a_long_host_outage() {
    if !has_engine() {
        return;
    }
    let image = Image::make();
    let lab = Containers::up_with_old_compose(&image, "old", "ring-4.topo", &["--pm"]);
    lab.heals("at first", 8);
    let (agent, devices) = lab.agent_of("H3");
    assert_eq!(devices, 1);
    let (container, network) = (lab.container(&agent), format!("{}_fabric", lab.project));
    output_of(Command::new("docker").args(["network", "disconnect", &network, &container]));
    let began = Instant::now();
    lab.wait_for_nodes("while the host is cut off", 7);
    while began.elapsed() < AWAY {
        let status = lab.json(&["ask", "sm", "sm-status"]);
        assert_eq!(status["nodes"], 7, "{status}");
    }
    output_of(Command::new("docker").args(["network", "connect", "--alias", &agent, &network, &container]));
    lab.heals("after the host was cut off", 8);
}
