//! The reader of topology files: what it takes, and what it says of what it does not.

use proptest::prelude::*;
use weft_topology::generate::{GenerateOptions, RandomFabric, random};
use weft_topology::{Fabric, LinkMasks, LoadError, ParseError, PortRef, parse, parse_bytes};
use weft_wire::{Guid, Lid, NodeType, PortNum};

fn read(text: &str) -> Fabric {
    parse("net", text).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    parse("net", text).expect_err("the file is wrong").to_string()
}

/// A port by its node's id.
fn port(fabric: &Fabric, id: &str, number: u8) -> weft_topology::Port {
    *fabric.port(end(fabric, id, number)).expect("the port is there")
}

fn end(fabric: &Fabric, id: &str, number: u8) -> PortRef {
    PortRef::new(fabric.by_id(id).expect("the node is there"), PortNum(number))
}

/// A row: a file, and the error that it gives.
const REFUSED: &[(&str, &str)] = &[
    // Malformed.
    ("Switch \"a\"\n", "net:1:8: expected the number of ports: `\"a\"`"),
    ("Switch 8 a\n", "net:1:10: expected the node's id in quotes: `a`"),
    ("Switch 8 \"a\" b\n", "net:1:14: expected the end of the line or a comment: `b`"),
    ("Switch 8 \"\"\n", "net:1:10: expected a name that is not empty: `\"\"`"),
    ("Switch 8 \"a\"\n[1 \"b\"\n", "net:2:3: expected `]` after the port number"),
    ("Switch 8 \"a\"\n[1]\n", "net:2:4: expected the id of the node at the other end, in quotes"),
    ("Switch 8 \"a\"\n[1] b\n", "net:2:5: expected the id of the node at the other end, in quotes: `b`"),
    ("Switch 8 \"a\"\n[1](xyz) \"b\"\n", "net:2:4: expected a GUID in parentheses: `(xyz)`"),
    (
        "Switch 8 \"a\"\n[1] \"b\" q=1\n",
        "net:2:9: expected an option `w=`, `s=` or `e=`, a comment or the end of the line: `q=1`",
    ),
    ("vendid 5\n", "net:1:8: expected `=`: `5`"),
    ("devid=\n", "net:1:7: expected a device id"),
    ("devid=0x12 x\n", "net:1:12: expected the end of the line or a comment: `x`"),
    // Keywords.
    ("Swich 8 \"a\"\n", "net:1:1: unknown keyword: `Swich` (keywords are Switch Ca Hca Rt, "),
    ("% what\n", "net:1:1: unknown keyword: `%` (keywords are"),
    ("\n\nSWITCH 8 \"a\"\n", "net:3:1: unknown keyword: `SWITCH`"),
    // Numbers.
    ("Switch 0 \"a\"\n", "net:1:8: the number of ports must be 1 to 254: `0`"),
    ("Switch 255 \"a\"\n", "net:1:8: the number of ports must be 1 to 254: `255`"),
    (
        "Switch 99999999999999999999999 \"a\"\n",
        "net:1:8: the number of ports must be 1 to 254: `99999999999999999999999`",
    ),
    ("vendid=0x1000000\n", "net:1:8: a vendor id must be 0 to 16777215: `0x1000000`"),
    ("switchguid=0x10000000000000000\n", "net:1:12: a GUID must be 0 to 18446744073709551615"),
    ("switchguid=5(0)\n", "net:1:13: a GUID must be 1 to 18446744073709551615: `(0)`"),
    ("width=32\n", "net:1:7: a link width mask must be 1 to 31: `32`"),
    ("speed=0\n", "net:1:7: a link speed mask must be 1 to 7: `0`"),
    ("extspeed=32\n", "net:1:10: an extended link speed mask must be 0 to 31: `32`"),
    ("Switch 8 \"a\"\n[1] \"b\" w=0\n", "net:2:11: the mask must be 1 to 31: `0`"),
    ("Switch 8 \"a\" # \"a\" base port 0 lid 49152 lmc 0\n", "net:1:36: a LID must be 0 to 49151: `49152`"),
    ("Switch 8 \"a\" # \"a\" base port 0 lid 1 lmc 8\n", "net:1:42: an LMC must be 0 to 7: `8`"),
    (
        "Switch 8 \"a\"\n[1] \"a\"[2] # \"a\" lid 1 4xGDR\n",
        "net:2:24: no such link rate: `4xGDR` (`4xGDR` is no link rate; ",
    ),
    // Ports.
    ("[1] \"b\"\n", "net:1:1: this port line belongs to no node: `[1]` (port lines follow their node's line"),
    ("Switch 8 \"a\"\n\n[1] \"b\"\n", "net:3:1: this port line belongs to no node: `[1]`"),
    ("Switch 8 \"a\"\n[0] \"b\"\n", "net:2:1: port 0 is out of range for `a`, whose ports are 1 to 8: `[0]`"),
    ("Switch 8 \"a\"\n[9] \"b\"\n", "net:2:1: port 9 is out of range for `a`, whose ports are 1 to 8: `[9]`"),
    (
        "Switch 8 \"a\"\n[1] \"b\"[2]\n\nCa 1 \"b\"\n",
        "net:2:8: port 2 is out of range for `b`, whose ports are 1 to 1: `[2]`",
    ),
    ("Switch 8 \"a\"\n[1] \"b\"\n[1] \"c\"\n", "net:3:1: port 1 of `a` already has a line at net:2:1: `[1]`"),
    ("Switch 8 \"a\"\n[1] \"a\"[1]\n", "net:2:5: port 1 of `a` is cabled to itself: `\"a\"[1]`"),
    // Names.
    (
        "Switch 8 \"a\"\n\nCa 1 \"a\"\n",
        "net:3:6: the id `a` is already that of the node at net:1:10: `\"a\"`",
    ),
    ("Switch 8 \"a#b\"\n", "net:1:10: `#` and `@` are reserved and cannot be part of a name: `\"a#b\"`"),
    (
        "switchguid=5\nSwitch 8 \"a\"\ncaguid=5\nCa 1 \"b\"\n",
        "net:4:6: the GUID 0x0000000000000005 is already that of `a` at net:2:10: `\"b\"`",
    ),
    (
        "Switch 8 \"s\"\n[1] \"a\"(7)\n[2] \"b\"(7)\n\nCa 1 \"a\"\n\nCa 1 \"b\"\n",
        "net:3:8: the GUID 0x0000000000000007 is already that of port 1 of `a` at net:2:8: `(7)`",
    ),
    ("caguid=0\nCa 1 \"a\"\n", "net:2:6: `a` has the GUID 0: `\"a\"`"),
    ("module=\"a@b\"\n", "net:1:8: `#` and `@` are reserved and cannot be part of a name: `\"a@b\"`"),
    ("module=\"123456789012345678901\"\n", "net:1:8: too large: more than 20 bytes in a module name"),
    // Ends that disagree.
    (
        "Switch 8 \"a\"\n[1] \"b\"[1]\n\nSwitch 8 \"b\"\n[1] \"a\"[2]\n",
        "net:2:5: the two ends of a cable disagree: here `a`[1] leads to `b`[1], but `b`[1] leads to `a`[2] at \
         net:5:5: `\"b\"[1]`",
    ),
    (
        "Switch 8 \"a\"\n[1] \"c\"[1]\n[2] \"c\"[1]\n\nCa 1 \"c\"\n",
        "net:3:5: the two ends of a cable disagree: here `a`[2] leads to `c`[1], but `a`[1] leads to `c`[1] at \
         net:2:5: `\"c\"[1]`",
    ),
    (
        "Switch 8 \"a\"\n[1] \"c\"[1](5)\n\nCa 1 \"c\"\n[1](6) \"a\"[1]\n",
        "net:2:11: the two ends of a cable disagree: here its GUID is 0x0000000000000005, but \
         0x0000000000000006 at net:5:1: `(5)`",
    ),
    (
        "Switch 8 \"a\"\n[1] \"c\"[1] s=1\n\nCa 1 \"c\"\n[1] \"a\"[1] s=2\n",
        "net:2:5: the two ends of this cable allow no width and speed in common: `\"c\"[1]`",
    ),
    // Truncated.
    ("", "net:1:1: the file describes no node"),
    ("# only a comment\n\n", "net:2:1: the file describes no node"),
    ("Swi", "net:1:1: unknown keyword: `Swi` (keywords are"),
    ("Switch 8 \"a", "net:1:10: a quoted text is not closed: `\"a` (the file may be truncated)"),
    (
        "Switch 8 \"a\" # \"descr",
        "net:1:16: a quoted text is not closed: `\"descr` (the file may be truncated)",
    ),
    (
        "Switch 8 \"a\"\n[1] \"b\"[1] # \"b\" lid",
        "net:2:14: the file ends in the middle of a line: `\"b\" lid` (the file may be truncated)",
    ),
    (
        "Switch 8 \"a\" # \"descr\"",
        "net:1:16: the file ends in the middle of a line: `\"descr\"` (the file may be truncated)",
    ),
    (
        "Switch 8 \"a\" # \"descr\" enha",
        "net:1:16: the file ends in the middle of a line: `\"descr\" enha` (the file may be truncated)",
    ),
    (
        "Switch 8 \"a\" # descr base port 0 lid 7 lm",
        "net:1:16: the file ends in the middle of a line: `descr base port 0 lid 7 lm` (the file may be",
    ),
    (
        "Switch 8 \"a\" # \"a\" base port 0 lid 7 lmc 0\n\nSwitch 8 \"b\"",
        "net:3:1: the file ends in the middle of a line: `Switch 8 \"b\"` (the file may be truncated)",
    ),
    (
        "Switch 8 \"a\"\n[1] \"a\"[2] # \"a\" lid 7 4xQDR\n[3] \"a\"[4]",
        "net:3:1: the file ends in the middle of a line: `[3] \"a\"[4]` (the file may be truncated)",
    ),
    (
        "Switch 8 \"a\"\n[1] \"b\"[1]\n",
        "net:2:5: node `b` is referenced but never defined: `\"b\"[1]` (the file may be",
    ),
    ("Switch 8 \"a\"\n[", "net:2:2: expected a port number (the file may be truncated)"),
    // Aliases.
    ("Switch 8 \"a\"\n@[1] \"x\"\n@[2] \"x\"\n", "net:3:6: the alias `x` is already given at net:2:6: `x`"),
    ("Switch 8 \"a\"\n[1] \"@x\"\n", "net:2:5: the alias `@x` is nowhere given: `\"@x\"`"),
    ("include \"x\"\n", "net:1:9: cannot include this file: other files cannot be read from here: `\"x\"`"),
];

#[test]
fn reader_errors_name_file_line_column_and_text() {
    let mut wrong = String::new();
    for (text, expected) in REFUSED {
        let error = refused(text);
        if !error.starts_with(expected) || error.contains('\n') {
            wrong.push_str(&format!("for {text:?}\n     got {error}\nexpected {expected}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A file that ends without a line break need not be truncated: these are whole.
#[test]
fn a_last_line_without_its_line_break() {
    for (text, description) in [
        ("Switch 4 \"S1\"", "S1"),
        ("Switch 4 \"S1\" # a switch", "a switch"),
        ("Ca 2 \"H1\" # \"host\"", "host"),
        ("Ca 2 \"H1\" # \"\"", "H1"),
        ("Switch 4 \"S1\" # \"spine\" base port 0 lid 12 lmc 3", "spine"),
        ("Switch 4 \"S1\" # \"spine\" enhanced port 0 lid 12 lmc 3", "spine"),
        ("Switch 4 \"S1\"\n[1] \"S1\"[2]", "S1"),
        ("Switch 4 \"S1\" # \"one end\"\n[1] \"S1\"[2] # spare", "one end"),
        ("Switch 4 \"S1\"\n[1] \"S1\"[2] # \"S1\" lid 1 4xQDR\n[3] \"S1\"[4] # \"S1\" lid 1 4xQDR", "S1"),
    ] {
        assert_eq!(read(text).nodes()[0].description, description, "{text}");
    }
}

/// Wherever a file is cut within its last node, that is an error, or nothing is lost but the line that was cut.
#[test]
fn a_cut_anywhere_is_an_error_or_loses_whole_lines_only() {
    let mut checked = 0;
    for parameters in [
        RandomFabric { switches: 1, hosts: 1, extra_cables: 0, parallel_cables: 0 },
        RandomFabric { switches: 2, hosts: 3, extra_cables: 1, parallel_cables: 1 },
    ] {
        let fabric = random(&parameters, 3, &GenerateOptions::default()).expect("a fabric");
        let mut sections: Vec<String> =
            fabric.write_ibnetdiscover().split("\n\n").map(|section| format!("{section}\n\n")).collect();
        // Each node once at the end.
        for _ in 1..sections.len() {
            sections[1..].rotate_left(1);
            let text = sections.concat().trim_end().to_owned() + "\n";
            let last = text.rfind("\n\n").expect("there are several nodes");
            for cut in last..text.len() {
                let Ok(fabric) = parse("cut", &text[..cut]) else { continue };
                let before = text[..cut].rfind('\n').map_or(0, |end| end + 1);
                let after = cut + text[cut..].find('\n').map_or(0, |end| end + 1);
                let whole = [before, after].map(|end| parse("whole", &text[..end]));
                assert!(whole.contains(&Ok(fabric)), "cut to {:?}", &text[before..cut]);
                checked += 1;
            }
        }
    }
    assert!(checked > 30, "only {checked} cuts give a fabric at all");
}

#[test]
fn oversize_is_refused() {
    let long_line = format!("# {}\nSwitch 1 \"a\"\n", "x".repeat(5000));
    assert_eq!(refused(&long_line), "net:1:1: too large: more than 4096 bytes in a line");
    let long_name = format!("Switch 1 \"{}\"\n", "x".repeat(65));
    assert!(refused(&long_name).starts_with("net:1:10: too large: more than 64 bytes in a name: `\"xxx"));
    let mut many = String::new();
    for node in 0..5000 {
        many.push_str(&format!("Switch 254 \"s{node}\"\n"));
    }
    assert!(refused(&many).starts_with("net:4113:12: too large: more than 1048576 ports"));
    let mut many = String::new();
    for node in 0..65_537 {
        many.push_str(&format!("Ca 1 \"h{node}\"\n"));
    }
    assert_eq!(refused(&many), "net:65537:6: too large: more than 65536 nodes: `\"h65536\"`");
}

#[test]
fn ibsims_own_example_form() {
    let fabric = read(
        "Switch\t8 \"Switch1\"\n[1]\t\"Hca1\"[1]\n[2]\t\"Hca2\" [2]\tw=8\n[3]\t\"Switch2\"[3]\n\n\
         Switch 8 \"Switch2\"\n[3]\t\"Switch1\"[3]\n\nHca\t2 \"Hca1\"\n[1]\t\"Switch1\"[1]\n\n\
         Hca\t2 \"Hca2\"\n[2]\t\"Switch1\"[2] w=8 s=7\n",
    );
    let counts = fabric.counts();
    assert_eq!((counts.switches, counts.hosts, counts.cables), (2, 2, 3));
    // What nothing is said of is 4x and SDR.
    assert_eq!(port(&fabric, "Switch1", 1).link.to_string(), "4xSDR");
    assert_eq!(port(&fabric, "Switch1", 2).link.to_string(), "12xSDR");
    assert_eq!(
        port(&fabric, "Hca2", 2).enabled,
        LinkMasks { width: 8, speed: 7, speed_ext: 0, fdr10: false }
    );
    // Names and GUIDs are made up where the file gives none.
    let node = fabric.node(fabric.by_id("Hca2").unwrap());
    assert_eq!((node.guid, node.ports[2].guid), (Guid(0x10_0003), Guid(0x10_0005)));
    assert_eq!(fabric.node(fabric.by_id("Switch2").unwrap()).guid, Guid(0x20_0001));
    assert_eq!((node.description.as_str(), node.system_image_guid), ("Hca2", node.guid));
}

#[test]
fn settings_before_nodes() {
    let fabric = read(
        "vendid=0x2c9\ndevid=51000\nsysimgguid=0x77\nswitchguids=0x1000\nSwitch 4 \"a\"\n\nSwitch 4 \"b\"\n\
         switchguid+0x10\nSwitch 4 \"c\"\nrtguid=0x99\nRt 2 \"r\"\npdebug=1\ndo Link \"a\"[1] \"b\"[1]\n",
    );
    let node = |id: &str| fabric.node(fabric.by_id(id).unwrap());
    assert_eq!((node("a").vendor_id, node("b").vendor_id), (0x2c9, 0), "for the next node only");
    assert_eq!((node("a").device_id, node("b").device_id), (51000, 51000), "until changed");
    assert_eq!((node("a").system_image_guid, node("b").system_image_guid), (Guid(0x77), Guid(0x1001)));
    assert_eq!((node("a").guid, node("b").guid, node("c").guid), (Guid(0x1000), Guid(0x1001), Guid(0x1010)));
    assert_eq!((node("r").kind, node("r").guid), (NodeType::Router, Guid(0x99)));
    assert_eq!((fabric.counts().others, fabric.counts().cables), (1, 0));
}

#[test]
fn default_masks_and_their_exceptions() {
    let fabric = read(
        "width=3\nspeed=3\nextspeed=1\nSwitch 8 \"a\"\n[1] \"b\"[1]\n[2] \"b\"[2] s=0 e=0\n\
         [3] \"b\"[3] w=16\n[4] \"b\"[4] # \"b\" lid 4 4xEDR\n\nwidth=31\nspeed=7\nextspeed=15\nSwitch 8 \"b\"\n",
    );
    let rate = |number| port(&fabric, "a", number).link.to_string();
    assert_eq!([rate(1), rate(2), rate(3), rate(4)], ["4xFDR", "4xQDR", "2xFDR", "4xEDR"]);
}

#[test]
fn a_cable_of_which_one_end_speaks() {
    let fabric = read(
        "Switch 8 \"a\" # \"The first\" enhanced port 0 lid 3 lmc 1\n\
         [2] \"h\"[1](abc) # \"h h\" lid 17 4xHDR\n\nCa 1 \"h\"\n",
    );
    let host = port(&fabric, "h", 1);
    assert_eq!(host.peer, Some(end(&fabric, "a", 2)));
    assert_eq!((host.guid, host.lid, host.link.to_string().as_str()), (Guid(0xabc), Lid(17), "4xHDR"));
    let switch = fabric.node(fabric.by_id("a").unwrap());
    assert!(switch.enhanced_port0);
    assert_eq!(
        (switch.description.as_str(), switch.ports[0].lid, switch.ports[0].lmc),
        ("The first", Lid(3), 1)
    );
}

#[test]
fn the_chassis_form_of_ibnetdiscover() {
    let fabric = read(
        "\nChassis 1 (guid 0x8f1)\nHostname: x\n\n# Spine Nodes\nsysimgguid=0x8f1\t\t# Chassis 1\n\
         switchguid=0x5(6)\t# Spine 1 Chip 2\nSwitch\t24 \"S-5\"\t\t# \"it \"x\" is\" base port 0 lid 1 lmc 0\n\
         [1][ext 5]\t\"H-7\"[1][ext 3](8) \t\t# \"h\" lid 9 12xSDR s=1 w=8 v=4\n\nNon-Chassis Nodes\n\ncaguid=0x7\n\
         Ca\t1 \"H-7\"\t\t# \"h\" (scp)\n[1](8) \t\"S-5\"[1][ext 5]\t\t# lid 9 lmc 2 \"it \"x\" is\" lid 1 12xSDR\n",
    );
    let switch = fabric.node(fabric.by_id("S-5").unwrap());
    assert_eq!((switch.description.as_str(), switch.ports[0].guid), ("it \"x\" is", Guid(6)));
    let host = port(&fabric, "H-7", 1);
    assert_eq!((host.lid, host.lmc, host.guid), (Lid(9), 2, Guid(8)));
    assert_eq!(host.link.to_string(), "12xSDR");
    assert_eq!(read(&fabric.write_ibnetdiscover()), fabric);
}

#[test]
fn descriptions_without_quotes_and_comments_of_all_kinds() {
    let fabric = read(
        "# a comment\nSwitch 8 \"a\" # my switch base port 0 lid 5 lmc 0\n# between ports\n\
         [1] \"h\"[1] # the rack's 19\" cable 4xrate\n\nCa 1 \"h\" # \n[1] \"a\"[1] # lid 6 lmc 1\r\n",
    );
    let node = |id: &str| fabric.node(fabric.by_id(id).unwrap());
    assert_eq!((node("a").description.as_str(), node("a").ports[0].lid), ("my switch", Lid(5)));
    assert_eq!((node("h").description.as_str(), node("h").ports[1].lid), ("h", Lid(6)));
}

#[test]
fn modules_and_aliases() {
    let text = "module=\"m1\"\nSwitch 4 \"s\"\n[1] \"h\"\n@[4] \"up\" w=2\n\nCa 1 \"h\"\n[1] \"s\"[1]\n\n\
                module=\"m2\"\nSwitch 4 \"s\"\n[1] \"m1@up\"\n[2] \"m3#s\"[2]\n\nmodule=\"m3\"\nSwitch 4 \"s\"\n\
                [1] \"@here\"\n[2] \"m2#s\"[2]\n\nCa 1 \"h\"\n@[1] \"here\"\n";
    let fabric = read(text);
    let peer = |id: &str, number| fabric.port_name(port(&fabric, id, number).peer.unwrap()).to_string();
    assert_eq!(peer("m1#s", 1), "m1#h[1]");
    assert_eq!(peer("m2#s", 1), "m1#s[4]");
    assert_eq!(peer("m2#s", 2), "m3#s[2]");
    assert_eq!(peer("m3#s", 1), "m3#h[1]");
    assert_eq!(read(&fabric.write_ibnetdiscover()), fabric);
    // A name that means another module's node where it is written back.
    let fabric = read("Switch 4 \"x\"\n[1] \"m#y\"[1]\n\nmodule=\"m\"\nSwitch 4 \"x\"\n\nSwitch 4 \"y\"\n");
    assert_eq!(read(&fabric.write_ibnetdiscover()), fabric);
}

#[test]
fn a_switch_cabled_to_itself_between_two_ports() {
    let fabric = read("Switch 8 \"a\"\n[1] \"a\"[2]\n[2] \"a\"[1]\n[3] \"a\"[4]\n");
    assert_eq!((fabric.counts().cables, fabric.cables().count()), (2, 2));
    assert_eq!(port(&fabric, "a", 4).peer, Some(end(&fabric, "a", 3)));
    assert_eq!(read(&fabric.write_ibnetdiscover()), fabric);
}

#[test]
fn bytes_that_are_no_text() {
    let none = &mut |_: &str, _: &str| Err(LoadError::new(""));
    let error = parse_bytes("net", b"# \xc3\xa4\nSwitch \xff\xfe8", none).unwrap_err();
    assert_eq!(error.to_string(), "net:2:8: not UTF-8 text: `\\xff\\xfe\\x38`");
    assert!(parse_bytes("net", b"Switch 8 \"a\"\n", none).is_ok());
}

#[test]
fn an_error_escapes_and_cuts_what_it_shows() {
    let error = refused(&format!("Switch 8 \"a\" \x1b{}\n", "x".repeat(200)));
    assert!(error.contains("`\\u{1b}xxx") && error.ends_with("xxx…`"), "{error}");
}

/// Never panics, and what it takes survives being written and read.
fn survives(bytes: &[u8]) -> Result<(), TestCaseError> {
    let result: Result<Fabric, ParseError> = parse_bytes("net", bytes, &mut |_, _| Err(LoadError::new("")));
    match result {
        Ok(fabric) => {
            let written = fabric.write_ibnetdiscover();
            let again = parse("written", &written);
            let again = again.map_err(|error| TestCaseError::fail(format!("{error}\n{written}")))?;
            prop_assert_eq!(weft_topology::diff(&fabric, &again), []);
        }
        Err(error) => {
            prop_assert!(error.line > 0 && error.column > 0);
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        survives(&bytes)?;
    }

    #[test]
    fn any_words(words in proptest::collection::vec(proptest::sample::select(WORDS), 0..60)) {
        survives(words.concat().as_bytes())?;
    }

    #[test]
    fn a_damaged_file(seed: u64, damage in proptest::collection::vec((any::<usize>(), any::<u8>(), 0u8..4), 1..4)) {
        let parameters = RandomFabric { switches: 4, hosts: 5, extra_cables: 3, parallel_cables: 1 };
        let fabric = random(&parameters, seed, &GenerateOptions::default()).unwrap();
        let mut bytes = fabric.write_ibnetdiscover().into_bytes();
        for (place, byte, kind) in damage {
            if bytes.len() < 2 {
                break;
            }
            let at = place % bytes.len();
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => drop(bytes.remove(at)),
                _ => bytes.truncate(at.max(1)),
            }
        }
        survives(&bytes)?;
    }
}

/// Pieces of files, for making ones that are wrong in more interesting ways than noise is.
const WORDS: &[&str] = &[
    "Switch 8 \"a\"",
    "Ca 2 \"b\"",
    "Rt 1 \"c\"",
    "\n",
    "\n",
    "\n",
    "\n\n",
    "[1]",
    "[2] ",
    "[9]",
    " \"a\"",
    " \"b\"",
    "@[1] \"x\"",
    " \"@x\"",
    " \"m@x\"",
    " \"m#a\"",
    "module=\"m\"",
    "module=\"\"",
    "# \"d\" lid 3 4xQDR",
    " # lid 5 lmc 1",
    "(5)",
    "(0)",
    " w=2",
    " s=1",
    " e=3",
    "vendid=1",
    "devid=2",
    "sysimgguid=3",
    "switchguid=0xffffffffffffffff",
    "caguid=0xfffffffffffffffe",
    "caguid=7",
    "switchguid+1",
    "width=1",
    "speed=2",
    "extspeed=4",
    "include \"x\"",
    "\"",
    " # \"q\"\"",
    "\u{e4}",
    "\t",
    "\r",
    "0x",
    "99999999999999999999",
    "do it",
    "[ext 3]",
    "4xFDR10",
    " # \"d\" lid 1 2xFDR10",
];
