//! infiniband-diags over a living laboratory, by weft's own layer and by ibsim's protocol: what the tools print of counters, ports and services is what happened.

use std::process::Output;
use std::time::{Duration, Instant};

use weft_judges::Lab;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, NodeIndex};

/// Where the tools are.
const AT: &str = "host-1";

/// A laboratory, and the switch next to the host that the tools are at.
struct Tools {
    lab: Lab,
    fabric: Fabric,
    /// How the tools attach.
    way: &'static [&'static str],
    /// The LID of the switch next to [`AT`].
    switch: String,
    /// The switch's port towards [`AT`].
    port: String,
}

/// The value behind a name and its dots, as the tools print it.
fn field(printed: &str, name: &str) -> String {
    let lines = printed.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let values: Vec<&str> = lines.map(|rest| rest.trim_start_matches('.').trim()).collect();
    let first = values.first().unwrap_or_else(|| panic!("no {name} in\n{printed}"));
    (*first).to_owned()
}

/// Waits for a condition, for half a minute at most.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}: not within half a minute");
    }
}

fn number(printed: &str, name: &str) -> u64 {
    field(printed, name).parse().unwrap_or_else(|_| panic!("{name} is no number in\n{printed}"))
}

/// By weft's own layer, and by ibsim's protocol.
fn both_ways(test: fn(&Tools)) {
    for way in [&[][..], &["--ibsim"]] {
        let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
        let lab = Lab::start(&fabric, &["--sm-at", "host-3"]);
        let mut tools = Tools { lab, fabric, way, switch: String::new(), port: String::new() };
        tools.port = field(&tools.says("smpquery -D nodeinfo 0,1"), "LocalPort");
        tools.switch = field(&tools.says("smpquery -D portinfo 0,1 0"), "Lid");
        test(&tools);
    }
}

impl Tools {
    fn node(&self) -> NodeIndex {
        self.fabric.iter().find(|(_, node)| node.description == AT).unwrap().0
    }

    fn tool(&self, line: &str) -> Output {
        let (program, arguments) = line.split_once(' ').unwrap_or((line, ""));
        let mut command = self.lab.command(program, self.fabric.node(self.node()), self.way);
        command.args(arguments.split_whitespace()).output().unwrap()
    }

    /// What a tool prints before it fails.
    fn refused(&self, line: &str) -> String {
        let output = self.tool(line);
        assert!(!output.status.success(), "{line} is not to succeed");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What a tool prints that must succeed.
    fn says(&self, line: &str) -> String {
        let output = self.tool(line);
        let (said, complained) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{line}: {}\n{said}{complained}", output.status);
        said.into_owned()
    }

    /// What `perfquery` prints of the switch's port.
    fn perf(&self, options: &str) -> String {
        self.says(&format!("perfquery {options} {} {}", self.switch, self.port))
    }
}

#[test]
fn counters_rise_because_something_happened() {
    both_ways(|lab| {
        // Each asks for ClassPortInfo and then for its attribute: two datagrams on lane 0, of 72 words each. The
        // subnet manager's are on lane 15.
        let packets =
            ["--vloppackets", "--vloppackets"].map(|form| number(&lab.perf(form), "PortVLOpPackets0"));
        assert_eq!(packets[1] - packets[0], 2);
        let data = ["--vlopdata", "--vlopdata"].map(|form| number(&lab.perf(form), "PortVLOpData0"));
        assert_eq!(data[1] - data[0], 2 * 72);
        let lanes = lab.perf("--vloppackets");
        assert!(
            number(&lanes, "PortVLOpPackets15") > 0 && number(&lanes, "PortVLOpPackets1") == 0,
            "{lanes}"
        );

        let all = lab.perf("-x");
        assert!(number(&all, "PortRcvPkts") >= number(&lanes, "PortVLOpPackets0"), "{all}");
        for name in ["PortRcvErrors", "PortXmitDiscards", "SymbolErrorCounter", "VL15Dropped"] {
            assert_eq!(number(&all, name), 0, "{all}");
        }
        let errors = lab.perf("-E");
        for name in ["PortLocalPhysicalErrors", "PortMalformedPktErrors", "PortBufferOverrunErrors"] {
            assert_eq!(number(&errors, name), 0, "{errors}");
        }
        for name in ["PortDLIDMappingErrors", "PortVLMappingErrors", "PortLoopingErrors"] {
            assert_eq!(number(&errors, name), 0, "{errors}");
        }
        let discards = lab.perf("-D");
        assert_eq!(number(&discards, "PortInactiveDiscards"), 0, "{discards}");
        // No one has LID 1000: the switch has no route for it.
        lab.refused("perfquery -t 100 1000 1");
        assert!(number(&lab.perf("-E"), "PortDLIDMappingErrors") > 0);
        lab.perf("-E -R");
        assert_eq!(number(&lab.perf("-E"), "PortDLIDMappingErrors"), 0);
        assert!(number(&lab.perf("-x"), "PortRcvSwitchRelayErrors") > 0, "the total is another attribute's");
    });
}

#[test]
fn counters_are_cleared_and_added_up() {
    both_ways(|lab| {
        lab.perf("--vloppackets -R");
        // The ClassPortInfo and the question itself.
        assert_eq!(number(&lab.perf("--vloppackets"), "PortVLOpPackets0"), 2);
        lab.perf("-R");
        assert!(number(&lab.perf(""), "PortRcvPkts") < number(&lab.perf("-x"), "PortRcvPkts"));
        lab.says(&format!("perfquery -a -R {}", lab.switch));
        let sum = number(&lab.says(&format!("perfquery -a {}", lab.switch)), "PortRcvPkts");
        assert!(sum >= 2 && sum < number(&lab.perf("-x"), "PortRcvPkts"), "{sum}");
        assert_eq!(number(&lab.perf("--oprcvcounters"), "PortSelect").to_string(), lab.port);
        // Of each of the 8 data lanes a flow control packet when the link began, and an answer to the peer's if both ends
        // were up by then. What few packets there were took too little of a buffer for more.
        let told = lab.perf("--flowctlcounters");
        for name in ["PortXmitFlowPkts", "PortRcvFlowPkts"] {
            assert!((8..=16).contains(&number(&told, name)), "{told}");
        }
        lab.perf("--flowctlcounters -R");
        for form in ["--flowctlcounters", "--vlxmitflowctlerrors", "--vlxmitcounters"] {
            let printed = lab.perf(form);
            let counters = printed.lines().filter(|line| line.starts_with("PortVL") || line.contains("Flow"));
            assert!(
                counters.filter(|line| !line.starts_with('#')).all(|line| line.ends_with(".0")),
                "{printed}"
            );
        }
        let control = lab.perf("-c");
        assert_eq!(
            (field(&control, "OptionMask"), number(&control, "CounterWidth")),
            ("0x0000000000ffffc0".into(), 4)
        );
        for form in ["-X", "-S", "-T", "--swportvlcong", "--rcvcc", "--slrcvfecn", "--slrcvbecn", "--xmitcc"]
        {
            let said = lab.refused(&format!("perfquery {form} {} {}", lab.switch, lab.port));
            assert!(said.contains("cannot query"), "{form}: {said}");
        }
    });
}

#[test]
fn a_port_is_driven_by_ibportstate() {
    both_ways(|lab| {
        // Towards host-0, whose way to the manager no one else needs.
        let of = |op: &str| lab.says(&format!("ibportstate {} 1 {op}", lab.switch));
        let state = |printed: &str| (field(printed, "LinkState"), field(printed, "PhysLinkState"));
        let found = of("");
        assert_eq!(state(&found), ("Active".into(), "LinkUp".into()));
        let peer = found.split_once("Peer PortInfo:").expect("the peer answers").1;
        assert_eq!(state(peer), ("Active".into(), "LinkUp".into()));
        assert!(peer.contains(&format!("Lid {} DR path slid", lab.switch)), "{peer}");

        let after = |printed: &str| state(printed.split_once("After PortInfo set:").expect("a Set").1);
        assert_ne!(lab.port, "1", "not the port that the tools are behind");
        assert_eq!(after(&of("disable")), ("Down".into(), "Disabled".into()));
        assert_eq!(state(&of("")), ("Down".into(), "Disabled".into()));
        assert_eq!(after(&of("enable")), ("Down".into(), "Polling".into()));
        wait_until("the port is Active again", || state(&of("")) == ("Active".into(), "LinkUp".into()));
        let width = |printed: &str| (field(printed, "LinkWidthEnabled"), field(printed, "LinkWidthActive"));
        let wide = width(&of("")).1;
        let set = of("width 1");
        assert_eq!(
            width(set.split_once("After PortInfo set:").unwrap().1),
            ("1X".into(), wide),
            "until it is reset"
        );
        assert_eq!(after(&of("reset")), ("Down".into(), "Polling".into()));
        wait_until("the port is Active at another width", || {
            let found = of("");
            state(&found).0 == "Active" && width(&found) == ("1X".into(), "1X".into())
        });
        lab.refused(&format!("ibportstate {} 200", lab.switch));
    });
}

#[test]
fn services_of_a_host() {
    both_ways(|lab| {
        let own = field(&lab.says("smpquery -D portinfo 0 1"), "Lid");
        let manager = field(&lab.says("smpquery -D portinfo 0 1"), "SMLid");
        for (lid, name) in [(&own, AT), (&manager, "host-3")] {
            let pong = lab.says(&format!("ibping -c 2 -f {lid}"));
            assert!(pong.contains(&format!("--- {name} (Lid {lid}) ibping statistics ---")), "{pong}");
            assert!(pong.contains("2 packets transmitted, 2 received, 0% packet loss"), "{pong}");
            assert_eq!(lab.says(&format!("ibsysstat {lid}")).trim(), "sysstat ping succeeded");
            assert_eq!(lab.says(&format!("ibsysstat {lid} host")).trim(), name);
            assert!(lab.says(&format!("ibsysstat {lid} cpu")).contains("emulated host"));
        }
        let pong = lab.says(&format!("ibping -c 1 -f -t 100 {}", lab.switch));
        assert!(pong.contains("1 packets transmitted, 0 received"), "a switch is no host: {pong}");
        assert!(lab.says("sminfo").contains("SMINFO_MASTER"), "the manager was not disturbed");
    });
}

#[test]
fn every_operation_of_smpquery() {
    both_ways(|lab| {
        let of = |op: &str| lab.says(&format!("smpquery {op} {} 1", lab.switch));
        assert_eq!(field(&of("nodeinfo"), "NodeType"), "Switch");
        assert!(of("nodedesc").contains("switch-"));
        let info = of("portinfo");
        assert_eq!(
            (field(&info, "LinkState"), field(&info, "LinkWidthActive")),
            ("Active".into(), "4X".into())
        );
        assert_eq!(field(&of("PIE"), "CapMask"), "0x00000000");
        assert!(number(&of("switchinfo"), "LinearFdbTop") > 0);
        assert!(of("pkeys").contains("0: 0xffff"));
        assert!(of("sl2vl").contains("out  1:"));
        assert!(of("vlarb").contains("VLArbitration tables"));
        assert!(of("guidinfo").contains("guids capacity"));
        // No chip of Mellanox's.
        lab.refused(&format!("smpquery mepi {} 1", lab.switch));
        let combined = lab.says(&format!("smpquery -c nodeinfo {} 0,{}", lab.switch, lab.port));
        assert_eq!(
            (field(&combined, "NodeType"), field(&combined, "LocalPort")),
            ("Channel Adapter".into(), "1".into())
        );
        let dumped = lab.says("smpdump -D 0 0x11");
        assert!(dumped.starts_with("0101 01"), "{dumped}");
    });
}
