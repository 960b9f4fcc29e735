//! The image of tools: unmodified OpenSM and infiniband-diags of Debian's packages, with weft's program, beside a laboratory in containers.
//!
//! Long tier: `cargo nextest run --profile long -p weft-judges --test tools_image`, as root, with a Docker engine and debootstrap.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::process::Command;

use weft_judges::{Containers, Image, has_engine, is_root, output_of};

/// The ring's nodes: four switches, each with a host.
const NODES: u64 = 8;

fn read(printed: &str) -> weft_topology::Fabric {
    weft_topology::parse("ibnetdiscover", printed).unwrap()
}

#[test]
fn opensm_and_its_tools_run_from_their_image() {
    if !has_engine() || !is_root() {
        return;
    }
    let (image, tools) = (Image::make(), Image::tools());
    let parts = tools.parts();
    for inside in ["opensm", "infiniband-diags", "libc6", "quinn"] {
        assert!(parts.iter().any(|part| part == inside), "{inside} is not in {parts:?}");
    }
    let options = ["--pack", "leaf", "--sm", "opensm", "--tools", tools.name()];
    let lab = Containers::up(&image, "tools", "ring-4.topo", &options);
    output_of(&mut lab.verb(&["check"]));
    let ring = weft_topology::parse("ring-4.topo", include_str!("../../topologies/ring-4.topo")).unwrap();
    assert_eq!(ring.nodes().len() as u64, NODES);
    // In OpenSM's own container, which shares a socket with an agent.
    let near = lab.compose(&["exec", "-T", "opensm", "ibnetdiscover"]);
    assert_eq!(weft_topology::diff(&ring, &read(&near)), Vec::new());

    // In a container that has nothing but a network with the hub and an operator's identity.
    let network = format!("{}_fabric", lab.project);
    let identities = format!("{}:/identities:ro", lab.identities().canonicalize().unwrap().display());
    let authority = lab.identities().join("../ca.pem").canonicalize().unwrap();
    let authority = format!("{}:/ca.pem:ro", authority.display());
    let weft = |arguments: &[&str]| {
        let mut docker = Command::new("docker");
        // Keys are their owner's.
        docker.args(["run", "--rm", "--user", "0", "--network", &network, "--volume", &identities]);
        docker.args(["--volume", &authority, tools.name(), "weft", "--at", "hub:7443"]);
        docker.args(["--identity", "/identities/operator.pem"]).args(arguments);
        output_of(&mut docker)
    };
    let far = weft(&["shell", "--", "ibnetdiscover"]);
    assert_eq!(weft_topology::diff(&ring, &read(&far)), Vec::new());
    let at_h3 = weft(&["shell", "--at", "H3", "--", "ibstat"]);
    assert!(at_h3.contains("State: Active"), "{at_h3}");
    assert!(weft(&["shell", "--", "sminfo"]).contains("SMINFO_MASTER"));
    assert_eq!(weft(&["shell", "--", "saquery", "-N"]).matches("NodeRecord dump").count() as u64, NODES);
}
