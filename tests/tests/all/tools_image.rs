//! The image of tools: unmodified OpenSM and infiniband-diags of Debian's packages, with weft's program, beside a laboratory in containers.
//!
//! Long tier: `cargo nextest run --profile long -p weft-judges tools_image::`, as root, with a Docker engine and debootstrap.

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
    let ring = weft_topology::parse("ring-4.topo", include_str!("../../../topologies/ring-4.topo")).unwrap();
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

/// The head of the compose file says how a user's own subnet manager attaches, and so it does.
#[test]
fn a_users_own_subnet_manager_attaches_in_a_container() {
    if !has_engine() || !is_root() {
        return;
    }
    let (image, tools) = (Image::make(), Image::tools());
    let lab = Containers::up(&image, "own-sm", "ring-4.topo", &["--pack", "leaf", "--sm", "none"]);
    assert!(!lab.verb(&["check"]).output().unwrap().status.success(), "a subnet without a manager is not up");
    let file = lab.file();
    let told = |option: &str| {
        let lines = file
            .lines()
            .filter_map(|line| line.strip_prefix("#   "))
            .filter_map(|line| line.strip_prefix(option));
        lines.map(|line| line.replace("PROJECT", &lab.project)).collect::<Vec<_>>()
    };
    let (volumes, variables) = (told("-v "), told("-e "));
    assert_eq!((volumes.len(), variables.len()), (1, 3), "{file}");
    let user = format!("{}:{}", rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let mut docker = Command::new("docker");
    docker.args(["run", "--rm", "--network", "none", "--user", &user, "--volume", &volumes[0]]);
    for variable in variables.iter().map(String::as_str).chain(["OSM_TMP_DIR=/tmp", "OSM_CACHE_DIR=/tmp"]) {
        docker.args(["--env", variable]);
    }
    // It sweeps once, and ends.
    let said = output_of(docker.args([tools.name(), "opensm", "-o", "-f", "stdout"]));
    assert!(said.contains("SUBNET UP"), "{said}");
    output_of(&mut lab.verb(&["check"]));
}
