//! Virtualised adapters under OpenSM and infiniband-diags, which know nothing of them.

use weft_judges::{Lab, described, output_of, x5};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, Node};

fn tree() -> Fabric {
    xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap()
}

fn bring_up(lab: &Lab, at: &Node, engine: &str) {
    output_of(
        lab.command("opensm", at, &[]).args(["-o", "-R", engine, "-f"]).arg(lab.folder().join("opensm.log")),
    );
    let log = std::fs::read_to_string(lab.folder().join("opensm.log")).unwrap();
    assert!(log.contains("SUBNET UP") && !log.contains(" ERR "), "{log}");
}

/// The LID of a node's first port, as `ibaddr` prints it: `LID start 0x3 end 0x3`.
fn lid(lab: &Lab, node: &Node) -> String {
    lab.says(node, "ibaddr -L").split_whitespace().nth(2).unwrap().to_owned()
}

/// The nodes of the path that `ibtracert` prints, by description.
fn path(printed: &str) -> Vec<String> {
    let steps = printed.lines().filter(|line| line.starts_with('[') || line.starts_with("From"));
    steps.filter_map(|line| Some(line.split('"').nth(1)?.trim().to_owned())).collect()
}

#[test]
fn opensm_brings_up_vswitches_and_the_tools_see_them() {
    let whole = tree().virtualised(2).unwrap().fabric;
    let lab = Lab::start(&tree(), &["--no-sm", "--vfs", "2"]);
    let (host, vf) = (described(&whole, "host-0"), described(&whole, "host-3 vf2"));
    bring_up(&lab, host, "minhop");
    output_of(&mut lab.weft(&["check"]));
    for at in [host, vf] {
        let read = weft_topology::parse("ibnetdiscover", &lab.says(at, "ibnetdiscover")).unwrap();
        assert_eq!(weft_topology::diff(&whole, &read), Vec::new());
        for node in whole.nodes() {
            let index = read.by_guid(node.guid).unwrap();
            let seen = read.node(index);
            assert_eq!(
                (&seen.description, seen.system_image_guid),
                (&node.description, node.system_image_guid)
            );
        }
    }
    let (from, to) = (lid(&lab, host), lid(&lab, vf));
    let way = path(&lab.says(host, &format!("ibtracert {from} {to}")));
    let (first, last) = (way.first().unwrap(), way.last().unwrap());
    assert_eq!((first.as_str(), last.as_str()), ("host-0", "host-3 vf2"), "{way:?}");
    assert_eq!(
        (way[1].as_str(), way[way.len() - 2].as_str()),
        ("host-0 vSwitch", "host-3 vSwitch"),
        "{way:?}"
    );
    // Two vSwitches, two leaves, a spine, and the two ends.
    assert_eq!(way.len(), 7, "{way:?}");
}

#[test]
fn opensm_and_tools_read_the_x5_with_vfs_on_every_host() {
    let whole = x5().virtualised(1).unwrap().fabric;
    let lab = Lab::start(&x5(), &["--no-sm", "--vfs", "1", "--pack", "all"]);
    let host = whole.hosts().next().unwrap().1;
    bring_up(&lab, host, "minhop");
    output_of(&mut lab.weft(&["check"]));
    let read = weft_topology::parse("ibnetdiscover", &lab.says(host, "ibnetdiscover")).unwrap();
    assert_eq!(weft_topology::diff(&whole, &read), Vec::new());
}

#[test]
fn ibtracert_finds_functions_by_wefts_tables() {
    let whole = tree().virtualised(2).unwrap().fabric;
    let lab = Lab::start(&tree(), &["--vfs", "2", "--engine", "ftree,no_fallback"]);
    let (from, to) = (described(&whole, "host-1 vf1"), described(&whole, "host-2 vf1"));
    let way = path(&lab.says(from, &format!("ibtracert {} {}", lid(&lab, from), lid(&lab, to))));
    assert_eq!(way.len(), 7, "{way:?}");
    assert_eq!((way[0].as_str(), way[6].as_str()), ("host-1 vf1", "host-2 vf1"), "{way:?}");
    // Functions of one host reach each other inside of the adapter.
    let beside = described(&whole, "host-1 vf2");
    let way = path(&lab.says(from, &format!("ibtracert {} {}", lid(&lab, from), lid(&lab, beside))));
    assert_eq!(way, ["host-1 vf1", "host-1 vSwitch", "host-1 vf2"]);
}
