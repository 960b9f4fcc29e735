//! X5 with a container for each switch and each host, which break alone.
//!
//! Long tier: `cargo nextest run --profile long -p weft-judges apart::`, with a Docker engine.

use std::time::Duration;

use weft_judges::{Breakable, Containers, Image, has_engine, x5};

/// How long a host is cut off.
const AWAY: Duration = Duration::from_secs(30);
/// A host at another switch than the managers' hosts.
const FAR_HOST: &str = "H-78e7d1030022a0dc";
/// A switch that no manager's host is at.
const FAR_SWITCH: &str = "S-0008f10500108bba";

#[test]
fn x5_heals_after_a_host_outage_and_a_dead_switch() {
    if !has_engine() {
        return;
    }
    let (image, fabric) = (Image::make(), x5());
    let lab = Containers::up(&image, "apart", "psmn-x5.topo", &["--pm"]);
    lab.heals("at first", fabric.nodes().len() as u64);
    Breakable::of(&lab, &fabric, FAR_HOST).is_cut_off(AWAY);
    let switch = Breakable::of(&lab, &fabric, FAR_SWITCH);
    switch.dies();
    switch.stops();
    switch.is_cut_off(Duration::ZERO);
}
