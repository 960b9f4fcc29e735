//! `ibccquery` and `ibccconfig` over a laboratory, by weft's own layer and by ibsim's protocol:
//! they read what the manager has set, and what they set is held until the manager sets it again.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use weft_judges::{Lab, output_of};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, Node};

const AT: &str = "host-1";

/// The manager's options. Two blocks of delays: index i has shift i modulo 4 and multiplier 100 i.
const TOLD: &str = "--sm-at host-3 --congestion-control true --cc-sw-cong-setting-threshold 7 \
    --cc-sw-cong-setting-packet-size 9 --cc-sw-cong-setting-marking-rate 300 \
    --cc-ca-cong-setting-port-control 1 --cc-ca-cong-setting-control-map 5 --cc-ca-cong-setting-ccti-timer 150 \
    --cc-ca-cong-setting-ccti-increase 3 --cc-ca-cong-setting-trigger-threshold 4 --cc-ca-cong-setting-ccti-min 1";
const DELAYS: u32 = 70;

struct Tools {
    lab: Lab,
    fabric: Fabric,
    way: &'static [&'static str],
    /// LIDs of the switch next to [`AT`], and of another host.
    switch: String,
    host: String,
}

/// The values of a field in the order in which they are printed.
fn fields<'a>(printed: &'a str, name: &str) -> Vec<&'a str> {
    let lines = printed.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    lines.map(|rest| rest.trim_start_matches('.')).collect()
}

/// Every field named has this one value.
fn same(printed: &str, wanted: &[(&str, &str)]) {
    for (name, value) in wanted {
        assert_eq!(fields(printed, name), [*value], "{name} in\n{printed}");
    }
}

fn both_ways(test: fn(&Tools)) {
    for way in [&[][..], &["--ibsim"]] {
        let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
        let delays: Vec<String> = (0..DELAYS).map(|index| format!("{}:{}", index % 4, 100 * index)).collect();
        let delays = delays.join(",");
        let mut options: Vec<&str> = TOLD.split_whitespace().collect();
        options.extend(["--cc-cct", &delays]);
        let lab = Lab::start(&fabric, &options);
        let mut tools = Tools { lab, fabric, way, switch: String::new(), host: String::new() };
        let lid =
            |path: &str| fields(&tools.says(&format!("smpquery -D portinfo {path}")), "Lid")[0].to_owned();
        (tools.switch, tools.host) = (lid("0,1 0"), lid("0 1"));
        test(&tools);
    }
}

impl Tools {
    fn node(&self, description: &str) -> &Node {
        self.fabric.iter().find(|(_, node)| node.description == description).unwrap().1
    }

    fn run(&self, line: &str) -> (bool, String) {
        let (program, arguments) = line.split_once(' ').unwrap();
        let mut command = self.lab.command(program, self.node(AT), self.way);
        let output = command.args(arguments.split_whitespace()).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }

    /// What a tool prints that must succeed.
    fn says(&self, line: &str) -> String {
        let (fine, said) = self.run(line);
        assert!(fine, "{line}: {said}");
        said
    }

    fn refused(&self, line: &str) {
        assert!(!self.run(line).0, "{line} is not to succeed");
    }

    fn switch(&self, operation: &str) -> String {
        self.says(&format!("ibccquery {operation} {}", self.switch))
    }

    fn host(&self, operation: &str) -> String {
        self.says(&format!("ibccquery {operation} {}", self.host))
    }

    /// The switch's ports towards hosts, as Victim_Mask has them.
    fn towards_hosts(&self) -> String {
        let peer = self.node(AT).cabled_ports().next().unwrap().1;
        let ports = self.fabric.node(peer.node).cabled_ports();
        let hosts = ports.filter(|(_, peer)| !self.fabric.node(peer.node).is_switch());
        format!("{:064x}", hosts.fold(0_u128, |mask, (port, _)| mask | 1 << port.0))
    }

    /// SIGHUP makes the manager sweep at once.
    fn sweep(&self) {
        let processes = output_of(&mut self.lab.weft(&["ps", "--json"]));
        let processes: Value = serde_json::from_str(&processes).unwrap();
        let manager = processes.as_array().unwrap().iter().find(|process| process["kind"] == "sm").unwrap();
        let pid = Pid::from_raw(manager["pid"].as_i64().unwrap().try_into().unwrap()).unwrap();
        kill_process(pid, Signal::HUP).unwrap();
    }
}

#[test]
fn a_switch_reports_its_configured_congestion_settings() {
    both_ways(|lab| {
        same(&lab.switch("ClassPortInfo"), &[("BaseVersion", "1"), ("ClassVersion", "2")]);
        same(&lab.switch("CongestionInfo"), &[("CongestionInfo", "0x0000"), ("ControlTableCap", "0")]);
        same(
            &lab.switch("CongestionKeyInfo"),
            &[("CC_Key", "0x0000000000000000"), ("CC_KeyProtectBit", "0"), ("CC_KeyViolations", "0")],
        );
        same(
            &lab.switch("SwitchCongestionSetting"),
            &[
                ("Victim_Mask", &lab.towards_hosts()),
                ("Credit_Mask", &"0".repeat(64)),
                ("Threshold", "0x07"),
                ("Packet_Size", "9"),
                ("Marking_Rate", "300"),
                ("CS_Threshold", "0x00"),
            ],
        );
        let ports = lab.switch("SwitchPortCongestionSetting");
        let count = fields(&ports, "Port").len();
        assert_eq!(fields(&ports, "Valid"), vec!["0"; count], "no port has a setting of its own");
        let log = lab.switch("CongestionLog");
        same(&log, &[("LogType", "1"), ("LogEventsCounter", "0"), ("CongestionFlags", "0x00")]);
        let began = Instant::now();
        let [before, after] =
            [(); 2].map(|()| fields(&lab.switch("Timestamp"), "Timestamp")[0].parse::<u64>().unwrap());
        // In 1.024 µs.
        let passed = u128::from(after - before) * 1024;
        assert!(passed > 0 && passed <= began.elapsed().as_nanos(), "{before} to {after}");
        for operation in ["CACongestionSetting", "CongestionControlTable"] {
            lab.refused(&format!("ibccquery {operation} {}", lab.switch));
        }
    });
}

#[test]
fn a_host_reports_its_configured_congestion_settings() {
    both_ways(|lab| {
        same(&lab.host("ClassPortInfo"), &[("BaseVersion", "1"), ("ClassVersion", "2")]);
        same(&lab.host("CongestionInfo"), &[("CongestionInfo", "0x0000"), ("ControlTableCap", "64")]);
        let setting = lab.host("CACongestionSetting");
        same(&setting, &[("Port_Control", "0x0001"), ("Control_Map", "0x0005")]);
        // Service levels 0 and 2 alone.
        for (name, value) in
            [("CCTI_Timer", "150"), ("CCTI_Increase", "3"), ("Trigger_Threshold", "4"), ("CCTI_Min", "1")]
        {
            let wanted: Vec<&str> = (0..16).map(|sl| if sl == 0 || sl == 2 { value } else { "0" }).collect();
            assert_eq!(fields(&setting, name), wanted, "{name} in\n{setting}");
        }
        let table = lab.host("CongestionControlTable");
        same(&table, &[("CCTI_Limit", &(DELAYS - 1).to_string())]);
        let column = |of: fn(u32) -> u32| (0..DELAYS).map(|i| of(i).to_string()).collect::<Vec<_>>();
        assert_eq!(fields(&table, "Entry"), column(|index| index));
        assert_eq!(fields(&table, "CCT_Shift"), column(|index| index % 4));
        assert_eq!(fields(&table, "CCT_Multiplier"), column(|index| 100 * index));
        let log = lab.host("CongestionLog");
        same(&log, &[("LogType", "2"), ("ThresholdEventCounter", "0"), ("CongestionFlags", "0x00")]);
        same(&log, &[("ThresholdCongestionEventMap", "0x0000")]);
        for operation in ["SwitchCongestionSetting", "SwitchPortCongestionSetting"] {
            lab.refused(&format!("ibccquery {operation} {}", lab.host));
        }
    });
}

#[test]
fn settings_made_by_tools_last_until_the_next_sweep() {
    both_ways(|lab| {
        let (switch, host) = (lab.switch.as_str(), lab.host.as_str());
        lab.says(&format!("ibccconfig SS {switch} 0x1f 0x1FFFFFFFFE 0x2 0xE 7 3 1:77 5"));
        let (victim, credit) = (format!("{:064x}", 0x1f_ffff_fffe_u64), format!("{:064x}", 2));
        same(
            &lab.switch("SS"),
            &[
                ("Control_Map", "0x0000001f"),
                ("Victim_Mask", &victim),
                ("Credit_Mask", &credit),
                ("Threshold", "0x0e"),
                ("Packet_Size", "7"),
                ("CS_Threshold", "0x03"),
                ("CS_ReturnDelay", "0x404d"),
                ("Marking_Rate", "5"),
            ],
        );
        lab.says(&format!("ibccconfig SP {switch} 1 1 1 3 8 777"));
        let own = [("Valid", "1"), ("Control_Type", "1"), ("Threshold", "0x03"), ("Packet_Size", "8")];
        let port = |number: u8| lab.says(&format!("ibccquery SP {switch} {number}"));
        same(&port(1), &own);
        same(&port(1), &[("Cong_Parm_Marking_Rate", "777")]);
        same(&port(2), &[("Valid", "0")]);

        lab.says(&format!("ibccconfig CS {host} 0 0x8 200 2 3 6"));
        let setting = lab.host("CS");
        same(&setting, &[("Port_Control", "0x0000"), ("Control_Map", "0x000d")]);
        for (name, values) in [
            ("CCTI_Timer", ["150", "0", "150", "200"]),
            ("CCTI_Increase", ["3", "0", "3", "2"]),
            ("Trigger_Threshold", ["4", "0", "4", "3"]),
            ("CCTI_Min", ["1", "0", "1", "6"]),
        ] {
            assert_eq!(fields(&setting, name)[..4], values, "{name} in\n{setting}");
        }
        lab.says(&format!("ibccconfig CT {host} 65 1 1:5 2:6"));
        let table = lab.host("CT");
        same(&table, &[("CCTI_Limit", "65")]);
        assert_eq!(fields(&table, "CCT_Shift")[62..], ["2", "3", "1", "2"]);
        assert_eq!(fields(&table, "CCT_Multiplier")[62..], ["6200", "6300", "5", "6"]);

        lab.sweep();
        let start = Instant::now();
        let is_set = || {
            let (threshold, limit) = (lab.switch("SS"), lab.host("CT"));
            (fields(&threshold, "Threshold"), fields(&limit, "CCTI_Limit")) == (vec!["0x07"], vec!["69"])
                && fields(&lab.host("CS"), "Port_Control") == ["0x0001"]
        };
        while !is_set() {
            assert!(start.elapsed() < Duration::from_secs(30), "the manager has not set it again");
        }
        same(&port(1), &own);
    });
}

#[test]
fn a_key_keeps_others_out() {
    both_ways(|lab| {
        let host = lab.host.as_str();
        lab.says(&format!("ibccconfig CK {host} 0x1234 1 60 0"));
        let (hidden, shown) = (("CC_Key", "0x0000000000000000"), ("CC_Key", "0x0000000000001234"));
        same(&lab.host("CK"), &[hidden, ("CC_KeyProtectBit", "1"), ("CC_KeyLeasePeriod", "60")]);
        same(&lab.host("-c 0x1234 CK"), &[shown, ("CC_KeyViolations", "0")]);
        lab.refused(&format!("ibccconfig -t 100 CS {host} 0 0x8 200 2 3 6"));
        let (told, log) = (lab.host("CK"), lab.host("CL"));
        let violations = fields(&told, "CC_KeyViolations")[0].parse::<u32>().unwrap();
        assert!(violations > 0, "every attempt is counted");
        same(&log, &[("CongestionFlags", "0x01")]);
        assert_eq!(fields(&lab.host("CS"), "CCTI_Min")[3], "0");
        lab.says(&format!("ibccconfig -c 0x1234 CS {host} 0 0x8 200 2 3 6"));
        assert_eq!(fields(&lab.host("CS"), "CCTI_Min")[3], "6");
        same(&lab.host("CL"), &[("CongestionFlags", "0x00")]);
        lab.says(&format!("ibccconfig -c 0x1234 CK {host} 0 0 0 0"));
        same(&lab.host("CK"), &[hidden, ("CC_KeyProtectBit", "0"), ("CC_KeyViolations", "0")]);
    });
}
