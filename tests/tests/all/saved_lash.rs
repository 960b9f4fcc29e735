//! The tables in topologies/lash-opensm are those that OpenSM's LASH makes of two meshes and of what cuts leave of them.

use std::path::{Path, PathBuf};

use weft_judges::opensm::hexadecimal;
use weft_judges::{Ibsim, OpenSm, output_of};
use weft_topology::generate::{self, GenerateOptions};
use weft_topology::{Fabric, PortRef, parse};
use weft_wire::PortNum;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../topologies")
}

/// The 3x2 mesh, or what is left of it without the cable between S2 and S5 (`ring`), without that between S3 and S4 too (`line`), or
/// without the one between S4 and S5.
fn fabric(name: &str) -> Fabric {
    if name.starts_with("4x4") {
        return larger(name.ends_with("cut"));
    }
    let text = std::fs::read_to_string(folder().join("lash-mesh.topo")).unwrap();
    let mesh = parse("lash-mesh.topo", &text).unwrap();
    let cuts: &[(&str, u8)] = match name {
        "mesh" => &[],
        "ring" => &[("S2", 2)],
        "line" => &[("S2", 2), ("S3", 2)],
        _ => &[("S4", 2)],
    };
    let cuts: Vec<PortRef> =
        cuts.iter().map(|(node, port)| PortRef::new(mesh.find(node).unwrap(), PortNum(*port))).collect();
    let kept = mesh.cables().filter(|cable| !cuts.contains(&cable.a) && !cuts.contains(&cable.b));
    mesh.part(|_| true, kept.collect::<Vec<_>>()).unwrap()
}

/// A mesh of 16 switches with a host each, or what is left of it without a cable in its middle.
fn larger(is_cut: bool) -> Fabric {
    let mesh = generate::mesh(&[4, 4], 1, &GenerateOptions::default()).unwrap();
    let cut = PortRef::new(mesh.find("switch-1-1").unwrap(), PortNum(2));
    let kept = mesh.cables().filter(|cable| !is_cut || ![cable.a, cable.b].contains(&cut));
    mesh.part(|_| true, kept.collect::<Vec<_>>()).unwrap()
}

/// The level that OpenSM answers to a path record's question.
fn level(ibsim: &Ibsim, host: &str, from: &str, to: &str) -> u64 {
    let mut saquery = ibsim.command("saquery", host);
    let said = output_of(saquery.args(["--src-to-dst", &format!("{from}:{to}")]));
    let line =
        said.lines().find(|line| line.trim_start().starts_with("sl.")).unwrap_or_else(|| panic!("{said}"));
    hexadecimal(line.rsplit('.').next().unwrap())
}

/// OpenSM's tables and the levels between hosts are the files'.
fn is_as_saved(name: &str) {
    let fabric = fabric(name);
    let ibsim = Ibsim::start(&fabric);
    let hosts: Vec<&str> = fabric.hosts().map(|(_, node)| node.id.as_str()).collect();
    let mut opensm = ibsim.command("opensm", hosts[0]);
    opensm.args(["-Q", "-R", "lash"]);
    let _opensm = OpenSm::start(opensm, ibsim.folder());
    let saved = |file: String| std::fs::read_to_string(folder().join("lash-opensm").join(file)).unwrap();
    let written = std::fs::read_to_string(ibsim.folder().join("opensm-lfts.dump")).unwrap();
    let tables = saved(format!("{name}-lfts.dump"));
    assert_eq!(written, tables, "{name}");

    let lids: Vec<(String, String)> = tables
        .lines()
        .take_while(|line| !line.ends_with("dumped"))
        .filter_map(|line| {
            let (lid, owner) = line.split_once(" # Channel Adapter portguid ")?;
            let port = hexadecimal(owner.split(':').next()?);
            let node =
                fabric.nodes().iter().find(|node| node.end_ports().any(|(_, end)| end.guid.0 == port))?;
            Some((hexadecimal(lid.split(' ').next()?).to_string(), format!("{:#018x}", node.guid.0)))
        })
        .collect();
    assert_eq!(lids.len(), hosts.len());
    let levels = saved(format!("{name}.psl"));
    for (from, node) in &lids {
        for (to, _) in lids.iter().filter(|(to, _)| to != from) {
            let line = format!("{node} {to} {}", level(&ibsim, hosts[1], from, to));
            assert!(levels.lines().any(|saved| saved == line), "{name}: no line {line:?}");
        }
    }
}

#[test]
fn the_mesh_is_as_saved() {
    is_as_saved("mesh");
}

#[test]
fn the_ring_is_as_saved() {
    is_as_saved("ring");
}

#[test]
fn the_line_is_as_saved() {
    is_as_saved("line");
}

#[test]
fn the_mesh_after_fault_one_is_as_saved() {
    is_as_saved("fault-one");
}

#[test]
fn the_larger_mesh_is_as_saved() {
    is_as_saved("4x4");
}

#[test]
fn the_larger_mesh_without_a_cable_is_as_saved() {
    is_as_saved("4x4-cut");
}
