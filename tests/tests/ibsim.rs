//! ibsim simulates what weft wrote, infiniband-diags' ibnetdiscover walks it, and the cabling that it prints must be
//! the one that weft began with.

use weft_judges::{Ibsim, first_host, output_of};
use weft_topology::Fabric;
use weft_topology::generate::{self, GenerateOptions, RandomFabric};

fn survives(fabric: &Fabric) {
    let ibsim = Ibsim::start(fabric);
    let text = output_of(&mut ibsim.command("ibnetdiscover", &first_host(fabric).1.id));
    let walked = weft_topology::parse("ibnetdiscover", &text).unwrap_or_else(|error| panic!("{error}"));
    let differences = weft_topology::diff(fabric, &walked);
    assert!(differences.is_empty(), "{}", differences.iter().map(|d| format!("{d}\n")).collect::<String>());
    assert_eq!(walked.nodes().len(), fabric.nodes().len());
    assert_eq!(walked.cables().count(), fabric.cables().count());
}

#[test]
fn the_x5_cluster() {
    survives(&weft_judges::x5());
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
