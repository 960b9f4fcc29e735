//! The production cluster's file: what is in it, and that nothing of it is lost.

use std::collections::BTreeMap;

use weft_topology::{Fabric, LinkRate, NodeType, parse};
use weft_wire::{Guid, Lid, PortNum};

const TEXT: &str = include_str!("../../../../topologies/psmn-x5.topo");

fn x5() -> Fabric {
    parse("psmn-x5.topo", TEXT).expect("the file is sound")
}

#[test]
fn it_has_11_switches_89_hcas_and_159_cables_in_one_piece() {
    let counts = x5().counts();
    assert_eq!((counts.switches, counts.hosts, counts.others), (11, 89, 0));
    let port_lines = TEXT.lines().filter(|line| line.starts_with('[')).count();
    assert_eq!(port_lines, 318, "each cable has two lines");
    assert_eq!((counts.cables, counts.components), (159, 1));
}

#[test]
fn it_mixes_qdr_and_ddr() {
    let mut rates: BTreeMap<String, usize> = BTreeMap::new();
    for cable in x5().cables() {
        *rates.entry(cable.rate.to_string()).or_default() += 1;
    }
    let lines = |rate: &str| TEXT.lines().filter(|line| line.ends_with(rate)).count();
    assert_eq!(rates["4xDDR"], lines("4xDDR") / 2);
    assert_eq!(rates["4xQDR"], lines("4xQDR") / 2);
    assert_eq!(rates.len(), 2);
}

#[test]
fn a_switch_has_all_that_the_file_says() {
    let fabric = x5();
    let node = fabric.node(fabric.find("S-0008f10500108bba").unwrap());
    assert_eq!(node.kind, NodeType::Switch);
    assert_eq!(node.description, "Voltaire 4036 # 4036-8BBA");
    assert_eq!((node.guid, node.system_image_guid), (Guid(0x8f10500108bba), Guid(0x8f10500108bbb)));
    assert_eq!((node.vendor_id, node.device_id), (0x8f1, 0x5a5a));
    assert_eq!((node.port_count(), node.enhanced_port0), (36, true));
    assert_eq!((node.ports[0].lid, node.ports[0].lmc), (Lid(7), 0));
    let cabled: Vec<u8> = node.cabled_ports().map(|(port, _)| port.0).collect();
    assert_eq!(cabled, [9, 10, 11, 13, 14, 27, 28, 29, 32, 33]);
}

#[test]
fn an_hca_has_all_that_the_file_says() {
    let fabric = x5();
    let index = fabric.by_guid(Guid(0x2c90300080e84)).unwrap();
    let node = fabric.node(index);
    assert_eq!((node.kind, node.port_count()), (NodeType::Hca, 1));
    assert_eq!((node.ports[1].guid, node.ports[1].lid), (Guid(0x2c90300080e85), Lid(17)));
    let peer = node.ports[1].peer.unwrap();
    assert_eq!((fabric.node(peer.node).id.as_str(), peer.port), ("S-0008f10500108bba", PortNum(27)));
    assert_eq!(fabric.by_port_guid(Guid(0x2c90300080e85)), Some(index));
}

#[test]
fn written_and_read_again_it_is_the_same() {
    let fabric = x5();
    let text = fabric.write_ibnetdiscover();
    let again = parse("again", &text).unwrap();
    assert_eq!(again, fabric);
    assert_eq!(weft_topology::diff(&again, &fabric), []);
}

#[test]
fn the_writer_prints_the_lines_of_the_file() {
    let text = x5().write_ibnetdiscover();
    let body = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    // The file's own blank lines after its heading aside, not a byte differs.
    assert_eq!(body(&text), body(TEXT));
}

#[test]
fn names_lead_to_nodes() {
    let fabric = x5();
    let index = fabric.by_id("S-0008f105002036b4").unwrap();
    assert_eq!(fabric.find("Voltaire 4036 # hoibp0013"), Ok(index));
    assert_eq!(fabric.find("0x8f105002036b4"), Ok(index));
    assert_eq!(fabric.find("0008f105002036b4"), Ok(index));
    let many = fabric.find("MT25408 ConnectX Mellanox Technologies").unwrap_err().to_string();
    assert!(many.contains("89 nodes: H-003048c707b60000, "), "{many}");
    let none = fabric.find("nobody").unwrap_err().to_string();
    assert_eq!(none, "no node has the id, description or GUID `nobody`");
}

#[test]
fn cut_after_any_line_it_is_an_error_or_the_whole_fabric() {
    let whole = x5();
    let mut lines = 0;
    for (at, _) in TEXT.match_indices('\n') {
        lines += 1;
        match parse("cut.topo", &TEXT[..=at]) {
            // After the first node's line it is a switch without cables, which is a fabric.
            Ok(fabric) if lines == 10 => assert_eq!(fabric.nodes().len(), 1),
            // The last line may be missing: the switch's line says the same of that cable.
            Ok(fabric) => assert_eq!((fabric.counts(), lines > 920), (whole.counts(), true), "line {lines}"),
            Err(error) => assert!(error.to_string().starts_with("cut.topo:"), "{error}"),
        }
    }
    assert_eq!(lines, 922);
    let half = parse("cut.topo", &TEXT[..TEXT.len() / 2]).unwrap_err();
    assert_eq!(half.hint.as_deref(), Some("the file may be truncated"), "{half}");
}

#[test]
fn a_cut_last_block_is_an_error_or_the_whole_fabric() {
    let whole = x5();
    let last_block = TEXT.rfind("\n\n").unwrap();
    for at in last_block..TEXT.len() {
        if let Ok(fabric) = parse("cut.topo", &TEXT[..at]) {
            assert_eq!(fabric.counts(), whole.counts(), "cut at byte {at}");
            let rates = |fabric: &Fabric| fabric.cables().map(|cable| cable.rate).collect::<Vec<LinkRate>>();
            assert!(rates(&fabric) == rates(&whole), "cut at byte {at}");
        }
    }
}
