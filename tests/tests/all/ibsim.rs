//! ibsim simulates what weft wrote, infiniband-diags' ibnetdiscover walks it, and the cabling that it prints must be
//! the one that weft began with.

use weft_judges::{Ibsim, first_host, output_of};
use weft_topology::generate::{self, GenerateOptions, RandomFabric};
use weft_topology::{Cable, Fabric, PortRef};

fn survives(fabric: &Fabric) {
    let ibsim = Ibsim::start(fabric);
    let text = output_of(&mut ibsim.command("ibnetdiscover", &first_host(fabric).1.id));
    let walked = weft_topology::parse("ibnetdiscover", &text).unwrap_or_else(|error| panic!("{error}"));
    let differences = weft_topology::diff(fabric, &walked);
    assert!(differences.is_empty(), "{}", differences.iter().map(|d| format!("{d}\n")).collect::<String>());
    assert_eq!(walked.nodes().len(), fabric.nodes().len());
    assert_eq!(walked.cables().count(), fabric.cables().count());
}

/// A fabric's cables as a list of ports can tell them: by end ports' GUIDs and numbers, in order.
fn by_port_guids(fabric: &Fabric) -> Vec<String> {
    let end = |end: PortRef| {
        let node = fabric.node(end.node);
        let port = if node.is_switch() { 0 } else { usize::from(end.port.0) };
        format!("{} {} {}[{}]", node.kind, node.description, node.ports[port].guid, end.port)
    };
    let cable = |cable: Cable| {
        let mut ends = [end(cable.a), end(cable.b)];
        ends.sort();
        format!("{} {}", ends.join(" - "), cable.rate)
    };
    let mut cables: Vec<String> = fabric.cables().map(cable).collect();
    cables.sort();
    cables
}

#[test]
fn the_x5_cluster() {
    survives(&weft_judges::x5());
}

/// The lists of ports that other programs print give the fabric back too. (ibsim shows `iblinkinfo` all links as QDR
/// or slower, and X5's are.)
#[test]
fn lists_of_ports() {
    let generated = generate::xgft(&[4, 6], &[1, 4], &GenerateOptions::default()).unwrap();
    for fabric in [weft_judges::x5(), generated] {
        let ibsim = Ibsim::start(&fabric);
        for (program, option) in [("ibnetdiscover", "-p"), ("iblinkinfo", "-l")] {
            let text = output_of(ibsim.command(program, &first_host(&fabric).1.id).arg(option));
            let listed = weft_topology::parse(program, &text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(by_port_guids(&listed), by_port_guids(&fabric), "{program} {option}");
            assert_eq!(listed.counts(), fabric.counts(), "{program} {option}");
        }
    }
}

#[test]
fn generated_fabrics() {
    let options = GenerateOptions::default();
    let fabrics = [
        ("XGFT(2; 4,6; 1,4)", generate::xgft(&[4, 6], &[1, 4], &options)),
        ("PGFT(2; 4,3; 1,1; 1,2)", generate::pgft(&[4, 3], &[1, 1], &[1, 2], &options)),
        ("3-ary 3-tree", generate::kary_ntree(3, 3, &options)),
        ("3x2 mesh", generate::mesh(&[3, 2], 1, &options)),
        ("3x3 torus", generate::torus(&[3, 3], 2, &options)),
        ("6-ring", generate::ring(6, 1, &options)),
        ("4-cube", generate::hypercube(4, 1, &options)),
        ("dragonfly", generate::dragonfly(4, 2, 2, None, &options)),
    ];
    for (name, fabric) in fabrics {
        let fabric = fabric.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(fabric.cables().count() > 0, "{name}");
        survives(&fabric);
    }
}

#[test]
fn random_fabrics() {
    for seed in 0..12 {
        let parameters = RandomFabric {
            switches: 3 + seed % 9,
            hosts: 6 + 2 * seed,
            extra_cables: seed,
            parallel_cables: seed / 3,
        };
        let fabric = generate::random(&parameters, u64::from(seed), &GenerateOptions::default());
        println!("seed {seed}: {parameters:?}");
        survives(&fabric.unwrap_or_else(|error| panic!("seed {seed}: {error}")));
    }
}
