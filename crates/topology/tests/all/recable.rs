//! Nodes and cables that come and go in a cabling that is there.

use weft_topology::generate::{GenerateOptions, ring};
use weft_topology::{BuildError, LinkRate, Node, PortRef, diff, parse};
use weft_wire::{Guid, LinkParameters, NodeType, PortNum};

fn rate(text: &str) -> LinkRate {
    text.parse().unwrap()
}

#[test]
fn a_host_comes_moves_and_goes_and_the_text_tells_it() {
    let options = GenerateOptions { radix: Some(5), rate: rate("4xQDR"), ..GenerateOptions::default() };
    let before = ring(3, 1, &options).unwrap();
    let new =
        Node { description: "new".to_owned(), ..Node::new(NodeType::Hca, Guid(0x77), 2, rate("4xEDR")) };
    let (mut fabric, host) = before.with(new.clone()).unwrap();
    assert_eq!(fabric.find("new"), Ok(host));
    assert_eq!(diff(&before, &fabric).len(), 1, "a node without cables");
    let free: Vec<PortRef> = fabric
        .switches()
        .filter_map(|(index, node)| {
            let free = node.external_ports().find(|(_, port)| port.peer.is_none())?;
            Some(PortRef::new(index, free.0))
        })
        .collect();
    let end = PortRef::new(host, PortNum(1));
    assert_eq!(fabric.connect(end, free[0]), Ok(rate("4xQDR")));
    assert_eq!(diff(&before, &fabric).len(), 2);
    assert_eq!(parse("new", &fabric.write_ibnetdiscover()).unwrap().counts(), fabric.counts());
    assert!(diff(&parse("new", &fabric.write_ibnetdiscover()).unwrap(), &fabric).is_empty());
    fabric.disconnect(end);
    // `equip` says what a port is like where no file says it.
    let slow = LinkParameters { width: 1, speed: 1, speed_ext: 0 };
    fabric.equip(end, Guid(0x1234), slow.into());
    assert_eq!(fabric.connect(free[1], end), Ok(rate("1xSDR")));
    assert_eq!(fabric.port(end).unwrap().guid, Guid(0x1234));
    fabric.equip(end, Guid(0x99), slow.into());
    assert_eq!(fabric.port(end).unwrap().guid, Guid(0x1234), "a cable is in it");
    let without = fabric.without(host).unwrap();
    assert!(diff(&before, &without).is_empty());
    assert!(matches!(
        before.with(Node { guid: before.nodes()[0].guid, ..new }),
        Err(BuildError::DuplicateGuid { .. })
    ));
}

#[test]
fn impossible_cables_are_refused_with_a_reason() {
    let mut fabric = ring(3, 1, &GenerateOptions::default()).unwrap();
    let (switch, _) = fabric.switches().next().unwrap();
    let taken = PortRef::new(switch, PortNum(1));
    let none = PortRef::new(switch, PortNum(200));
    let (host, _) = fabric.hosts().next().unwrap();
    for (a, b, said) in [
        (taken, taken, "is cabled to itself"),
        (taken, PortRef::new(host, PortNum(1)), "is already cabled to"),
        (none, taken, "is out of range"),
        (taken, PortRef::new(switch, PortNum(0)), "is out of range"),
    ] {
        let error = fabric.clone().connect(a, b).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    fabric.disconnect(taken);
    let peer = PortRef::new(host, PortNum(1));
    fabric.disconnect(peer);
    fabric.equip(peer, Guid(1), LinkParameters { width: 2, speed: 0, speed_ext: 32 }.into());
    assert!(matches!(fabric.connect(taken, peer), Err(BuildError::NoCommonRate { .. })));
}

#[test]
fn masks_are_what_they_were_when_they_come_back() {
    for text in ["1xSDR", "4xQDR", "4xFDR10", "12xFDR", "4xEDR", "4xHDR", "2xNDR"] {
        let masks = rate(text).enabled();
        assert_eq!(weft_topology::LinkMasks::from(LinkParameters::from(masks)), masks, "{text}");
    }
}
