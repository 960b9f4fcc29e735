//! Files as sites have them: with a byte order mark, a shell's prompt, GUIDs of the system, and as lists of ports.

use weft_topology::{Fabric, LoadError, PortRef, parse, parse_bytes};
use weft_wire::{Guid, Lid, NodeType, PortNum};

fn read(text: &str) -> Fabric {
    parse("net", text).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    parse("net", text).expect_err("the file is wrong").to_string()
}

/// Every cable by its ends' ids and ports, with its rate.
fn cables(fabric: &Fabric) -> Vec<String> {
    let name = |end| fabric.port_name(end).to_string();
    fabric.cables().map(|cable| format!("{} {} {}", name(cable.a), name(cable.b), cable.rate)).collect()
}

const PAIR: &str = "Switch 4 \"a\"\n[1] \"h\"[1]\n\nCa 1 \"h\"\n";

#[test]
fn a_byte_order_mark_is_none_of_the_text() {
    let none = &mut |_: &str, _: &str| Err(LoadError::new(""));
    let marked = [b"\xef\xbb\xbf", PAIR.as_bytes()].concat();
    assert_eq!(parse_bytes("net", &marked, none), Ok(read(PAIR)));
    // Columns are counted without it.
    assert!(refused("\u{feff}Swich 8 \"a\"\n").starts_with("net:1:1: unknown keyword: `Swich`"));
    // What a Windows shell's `>` writes.
    let wide: Vec<u8> = "\u{feff}Switch".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let error = parse_bytes("net", &wide, none).unwrap_err().to_string();
    assert!(error.ends_with("(`iconv -f UTF-16 -t UTF-8 net` makes it that)"), "{error}");
}

#[test]
fn a_shells_prompt_is_no_data() {
    for prompt in [
        "[root@head ~]# ibnetdiscover",
        "root@head:~# ibnetdiscover -f",
        "head:~ # ibnetdiscover",
        "$ sudo ibnetdiscover > x",
        "bash-4.2$ /usr/sbin/ibnetdiscover",
        "[root@head ~]#",
    ] {
        assert_eq!(read(&format!("{prompt}\n{PAIR}")), read(PAIR), "{prompt}");
        assert_eq!(read(&format!("{PAIR}\n{prompt}\n")), read(PAIR), "{prompt}");
    }
    // A misspelt line is none.
    for line in ["Swich 8 \"a\" # me@here", "vendd=5 # ibnetdiscover", "[1 \"a\"[2] # x@y", "@[x # a"] {
        assert!(parse("net", &format!("{line}\n{PAIR}")).is_err(), "{line}");
    }
}

#[test]
fn the_guid_is_the_ids_where_the_line_before_gives_the_systems() {
    let fabric = read(
        "sysimgguid=0x900\nswitchguid=0x900(900)\nSwitch 4 \"S-0000000000000010\" # \"a\" base port 0 lid 1 lmc 0\n\
         [1] \"S-0000000000000011\"[1]\n[2] \"H-0000000000000020\"[1](21)\n\n\
         sysimgguid=0x900\nswitchguid=0x900(900)\nSwitch 4 \"S-0000000000000011\"\n\n\
         sysimgguid=0x950\ncaguid=0x950\nCa 1 \"H-0000000000000020\"\n[1](21) \"S-0000000000000010\"[2]\n\n\
         sysimgguid=0x950\ncaguid=0x950\nCa 1 \"H-0000000000000030\"\n[1](31) \"S-0000000000000011\"[2]\n",
    );
    let node = |id: &str| fabric.node(fabric.by_id(id).unwrap());
    for guid in [0x10, 0x11] {
        let switch = node(&format!("S-{guid:016x}"));
        assert_eq!(
            (switch.guid, switch.ports[0].guid, switch.system_image_guid),
            (Guid(guid), Guid(guid), Guid(0x900))
        );
    }
    for guid in [0x20, 0x30] {
        let host = node(&format!("H-{guid:016x}"));
        assert_eq!(
            (host.guid, host.ports[1].guid, host.system_image_guid),
            (Guid(guid), Guid(guid + 1), Guid(0x950))
        );
    }
    // A GUID that is not the system's is the node's, whatever its id looks like.
    let other = read("sysimgguid=0x900\nswitchguid=0x5\nSwitch 4 \"S-0000000000000010\"\n");
    assert_eq!(other.nodes()[0].guid, Guid(5));
}

/// A switch with a switch, an adapter of two ports, a single one and a port without a cable.
const PORTS: &str = "\
[root@head ~]# ibnetdiscover -p
SW    11  5 0x0008f105001086a2 4x SDR                                    'it's # one'
SW    11  4 0x0008f105001086a2 4x FDR10 - CA     5  1 0x0000000000000031 ( 'it's # one' - 'h mlx4_0' )
SW    11  3 0x0008f105001086a2 4x DDR - CA     4  2 0x0000000000000022 ( 'it's # one' - 'h mlx4_0' )
SW    11  2 0x0008f105001086a2 4x QDR - CA     3  1 0x0000000000000021 ( 'it's # one' - 'h mlx4_0' )
SW    11  1 0x0008f105001086a2 4x EDR - SW     8  6 0x0008f10500108530 ( 'it's # one' - 'two' )
CA     4  2 0x0000000000000022 4x DDR - SW    11  3 0x0008f105001086a2 ( 'h mlx4_0' - 'it's # one' )
CA     3  1 0x0000000000000021 4x QDR - SW    11  2 0x0008f105001086a2 ( 'h mlx4_0' - 'it's # one' )
CA     5  1 0x0000000000000031 4x FDR10 - SW    11  4 0x0008f105001086a2 ( 'h mlx4_0' - 'it's # one' )
SW     8  6 0x0008f10500108530 4x EDR - SW    11  1 0x0008f105001086a2 ( 'two' - 'it's # one' )
";

/// The same from the other program.
const LINKS: &str = r#"
0x0008f105001086a2 "                    it's # one"     11    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>  0x0008f10500108530      8    6[  ] "two" ( )
0x0008f105001086a2 "                    it's # one"     11    2[  ] ==( 4X          10.0 Gbps Active/  LinkUp)==>  0x0000000000000021      3    1[  ] "h mlx4_0" (Could be 12X )
0x0008f105001086a2 "                    it's # one"     11    3[  ] ==( 4X           5.0 Gbps Active/  LinkUp)==>  0x0000000000000022      4    2[  ] "h mlx4_0" ( )
0x0008f105001086a2 "                    it's # one"     11    4[  ] ==( 4X 10.0 Gbps (FDR10) Active/  LinkUp)==>  0x0000000000000031      5    1[  ] "h mlx4_0" ( )
0x0008f105001086a2 "                    it's # one"     11    5[  ] ==(                Down/ Polling)==>             [  ] "" ( )
0x0000000000000021 "                      h mlx4_0"      3    1[  ] ==( 4X          10.0 Gbps Active/  LinkUp)==>  0x0008f105001086a2     11    2[  ] "it's # one" ( )
0x0000000000000022 "                      h mlx4_0"      4    2[  ] ==( 4X           5.0 Gbps Active/  LinkUp)==>  0x0008f105001086a2     11    3[  ] "it's # one" ( )
0x0000000000000031 "                      h mlx4_0"      5    1[  ] ==( 4X 10.0 Gbps (FDR10) Active/  LinkUp)==>  0x0008f105001086a2     11    4[  ] "it's # one" ( )
0x0008f10500108530 "                           two"      8    5[  ] ==(                Down/ Polling)==>             [  ] "" ( )
0x0008f10500108530 "                           two"      8    6[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>  0x0008f105001086a2     11    1[  ] "it's # one" ( )
"#;

#[test]
fn lists_of_ports_hold_all_cabling() {
    for text in [PORTS, LINKS] {
        let fabric = read(text);
        let mut found = cables(&fabric);
        found.sort();
        let switch = "S-0008f105001086a2";
        assert_eq!(
            found,
            [
                format!("H-0000000000000021[1] {switch}[2] 4xQDR"),
                format!("H-0000000000000021[2] {switch}[3] 4xDDR"),
                format!("H-0000000000000031[1] {switch}[4] 4xFDR10"),
                format!("S-0008f10500108530[6] {switch}[1] 4xEDR"),
            ]
        );
        let node = |id: &str| fabric.node(fabric.by_id(id).unwrap());
        let one = node(switch);
        assert_eq!((one.kind, one.port_count(), one.ports[0].lid), (NodeType::Switch, 5, Lid(11)));
        assert_eq!((one.description.as_str(), one.guid), ("it's # one", Guid(0x8f105001086a2)));
        let pair = node("H-0000000000000021");
        assert_eq!((pair.kind, pair.description.as_str()), (NodeType::Hca, "h mlx4_0"));
        let ports: Vec<(Guid, Lid)> = pair.ports[1..].iter().map(|port| (port.guid, port.lid)).collect();
        assert_eq!(ports, [(Guid(0x21), Lid(3)), (Guid(0x22), Lid(4))]);
        let second = PortRef::new(fabric.by_id("H-0000000000000021").unwrap(), PortNum(2));
        assert!(fabric.peer(second).is_some());
        assert_eq!(read(&fabric.write_ibnetdiscover()), fabric);
    }
}

#[test]
fn errors_in_port_lists_name_their_place() {
    let mut wrong = String::new();
    for (text, expected) in [
        ("SW 1 1 0x5 4x QDR\n", "net:1:18: expected the description in single quotes"),
        ("SW 1 0 0x5 4x QDR 'a'\n", "net:1:6: a port number must be 1 to 254: `0`"),
        ("SW 1 1 0x5 4x ODR 'a'\n", "net:1:12: no such link rate: `4x ODR`"),
        ("CA 1 1 0x5 4x SDR 'a'\nXX 1 1 0x5 4x SDR 'a'\n", "net:2:1: expected SW, CA or RT: `XX`"),
        (
            "SW 1 1 0x5 4x SDR 'a'\nSW 1 1 0x5 4x SDR 'a'\n",
            "net:2:8: port 1 of `S-0000000000000005` already has",
        ),
        (
            "SW 1 1 0x5 4x SDR - CA 2 1 0x6 ( 'a' - 'b' )\n",
            "net:1:28: node `0x0000000000000006` is referenced but never defined: `0x6` (the list must have all nodes",
        ),
        (
            "SW 1 1 0x5 4x SDR - SW 2 1 0x6 ( 'a' - 'b' )\nSW 2 1 0x6 4x SDR - SW 1 2 0x5 ( 'b' - 'a' )\n",
            "net:2:26: port 2 is out of range for `S-0000000000000005`",
        ),
        ("0x5 \"a\" 1 1\n", "net:1:5: expected `==(` with the state of the link"),
        (
            "0x5 \"a\" 1 1[  ] ==( 4X 9.9 Gbps Active/ LinkUp)==> [  ] \"\" ( )\n",
            "net:1:20: no such link rate (`4x9.9`",
        ),
        // Lists of which the cabling cannot be had.
        (
            "CA: host mlx4_0:\n      0x1 4 1[  ] ==( 4X\n",
            "net:1:1: unknown keyword: `CA` (this list does not say",
        ),
        (
            "Switch: 0x5 a:\n   1 1[  ] ==( 4X\n",
            "net:1:7: expected the number of ports: `:` (this list does not",
        ),
        (
            "Ca\t : 0x5 ports 1 devid 0x6 vendid 0x7 \"a\"\n",
            "net:1:5: expected the number of ports: `:` (this",
        ),
    ] {
        let error = refused(text);
        if !error.starts_with(expected) || error.contains('\n') {
            wrong.push_str(&format!("for {text:?}\n     got {error}\nexpected {expected}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let error = refused("Ca\t : 0x5 ports 1 devid 0x6 vendid 0x7 \"a\"\n");
    assert!(error.contains("`ibnetdiscover -p` and `iblinkinfo -l` print what weft reads"), "{error}");
}

/// The files of sites that are kept in this repository, each with its switches, hosts and cables.
const INPUTS: [(&str, &str, [usize; 3]); 9] = [
    ("no-sm-yet", include_str!("../../../../tests/inputs/no-sm-yet.topo"), [1, 2, 2]),
    ("tool-warnings", include_str!("../../../../tests/inputs/tool-warnings.topo"), [1, 3, 3]),
    ("ports-list-incomplete", include_str!("../../../../tests/inputs/ports-list-incomplete.txt"), [3, 2, 2]),
    ("odd-descriptions", include_str!("../../../../tests/inputs/odd-descriptions.topo"), [1, 5, 5]),
    ("hash-in-description", include_str!("../../../../tests/inputs/hash-in-description.topo"), [1, 4, 4]),
    ("ndr-split", include_str!("../../../../tests/inputs/ndr-split.topo"), [1, 5, 5]),
    ("manpage-like", include_str!("../../../../tests/inputs/manpage-like.topo"), [2, 4, 7]),
    ("dual-port-one-switch", include_str!("../../../../tests/inputs/dual-port-one-switch.topo"), [1, 2, 4]),
    ("tree-4ary-3", include_str!("../../../../tests/inputs/tree-4ary-3.topo"), [80, 128, 384]),
];

#[test]
fn files_of_sites_have_all_their_nodes_and_cables() {
    for (name, text, expected) in INPUTS {
        let counts = read(text).counts();
        assert_eq!([counts.switches, counts.hosts, counts.cables], expected, "{name}");
    }
    let pair = read(include_str!("../../../../tests/inputs/back-to-back.topo"));
    assert_eq!(cables(&pair), ["H-0002c90000d00010[1] H-0002c90000d00020[1] 4xHDR"]);
    let zero = refused(include_str!("../../../../tests/inputs/zero-port-guid.topo"));
    assert_eq!(zero, "net:10:4: a GUID must be 1 to 18446744073709551615: `(0)`");
}

#[test]
fn the_descriptions_of_sites_stay_as_they_are() {
    let text = |name| INPUTS.iter().find(|input| input.0 == name).expect("it is there").1;
    let fabric = read(text("odd-descriptions"));
    let switch = fabric.find("S-0002c90000c00001").expect("the switch");
    assert_eq!(fabric.node(switch).description, "he said \"hi\" # 100% é✓ \\n ';$(x)");
    let last = fabric.find("H-0002c90000d00050").expect("the last host");
    assert_eq!(fabric.node(last).description, "(none) lid 9 lmc 1");
    assert_eq!(fabric.node(last).ports[1].lid, Lid(6), "the LID is not the description's");
    let fabric = read(text("hash-in-description"));
    assert_eq!(fabric.switches().next().expect("a switch").1.description, "Voltaire 4036 # sw36");
    let fabric = read(text("ndr-split"));
    assert_eq!(cables(&fabric).iter().filter(|cable| cable.ends_with(" 2xNDR")).count(), 4);
}

#[test]
fn lid_65535_is_no_lid() {
    let fabric = read(INPUTS[0].1);
    assert!(fabric.nodes().iter().flat_map(|node| &node.ports).all(|port| port.lid == Lid(0)));
    // One that is too high for a unicast LID is wrong as before.
    assert!(refused(&INPUTS[0].1.replace("lid 65535", "lid 65534")).contains("a LID must be 0 to 49151"));
}

#[test]
fn messages_of_tools_are_no_data() {
    let plain = read(include_str!("../../../../tests/inputs/three-hosts.topo"));
    assert_eq!(read(INPUTS[1].1), plain);
    let text = include_str!("../../../../tests/inputs/three-hosts.topo");
    for message in [
        "ibwarn: [6931] sim_connect: attached as client 1 at node \"Switch1\"",
        "ibpanic: [12] main: discovery failed",
        "src/query_smp.c:196; umad (DR path slid 0; dlid 0; 0,1 Attr 0x11:0) bad status 110; Connection timed out",
        "./libibnetdisc/src/ibnetdisc.c:712; Failed to query local node",
        "-W- Topology is not symmetric",
    ] {
        // In the middle of a node too.
        for place in [0, text.find("[2]").expect("a port")] {
            let (before, after) = text.split_at(place);
            assert_eq!(read(&format!("{before}{message}\n{after}")), plain, "{message}");
        }
    }
}

#[test]
fn a_list_without_node_guids_is_the_same_cabling() {
    let full = read(include_str!("../../../../tests/inputs/three-hosts.topo"));
    let rows = |near: &str, far: &str| {
        ["11", "21", "31"]
            .iter()
            .zip(1..)
            .map(|(host, port)| {
                let switch = format!("SW 1 {port} 0x0002c90000c00001");
                let host = format!("CA {} 1 0x0002c90000d000{host}", port + 1);
                let (a, b) = if near == "SW" { (switch, host) } else { (host, switch) };
                format!("{a} 4x HDR - {b} ( '{near}' - '{far}' )\n")
            })
            .collect::<String>()
    };
    // The list has all ports of a switch, and those of adapters that have a cable.
    let free = "SW 1 8 0x0002c90000c00001 4x SDR 'SW'\n";
    let list = read(&(rows("SW", "CA") + free + &rows("CA", "SW")));
    assert_eq!(weft_topology::diff(&full, &list), []);
    assert_eq!(weft_topology::diff(&list, &full), []);
    // A cable that is gone is still reported, and a host with other ports is another one.
    let without = read(&(rows("SW", "CA") + free + &rows("CA", "SW")).replace("d00031", "d00041"));
    let told: Vec<String> = weft_topology::diff(&full, &without).iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told[0].starts_with("- node 0x0002c90000d00030"), "{told:?}");
}
