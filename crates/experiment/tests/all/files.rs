//! Every file of `experiments/` is read, and every name in it looked up in its cabling.

use std::path::{Path, PathBuf};

use weft_device::{Crossbar, LaneShare};
use weft_experiment::{Action, ExperimentFile, Plan};
use weft_fault::Word;
use weft_topology::LoadError;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

fn load(path: &str, from: &str) -> Result<String, LoadError> {
    let beside = Path::new(from).parent().unwrap_or(Path::new("")).join(path);
    std::fs::read_to_string(&beside).map_err(|error| LoadError::new(format!("{}: {error}", beside.display())))
}

fn open(name: &str) -> ExperimentFile {
    let path = folder().join(name);
    let text = std::fs::read_to_string(&path).expect("the file is there");
    ExperimentFile::parse(&path.display().to_string(), &text).unwrap_or_else(|error| panic!("{error}"))
}

fn plan(file: &ExperimentFile, nth: usize) -> Plan {
    file.plan(&file.runs()[nth], &mut load).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_file_is_right() {
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let file = open(path.file_name().and_then(|name| name.to_str()).expect("a name"));
            file.check(&mut load).unwrap_or_else(|error| panic!("{error}"));
            assert!(!file.runs().is_empty(), "{}", path.display());
            // What nothing bounds says why, or what the paper has for it.
            let unbounded = file.plain().expects.iter().filter(|expect| expect.bound.is_none());
            for expect in unbounded {
                let is_explained = expect.basis.is_some() || expect.paper.is_some();
                assert!(is_explained, "{}: {} has no bound and no reason", path.display(), expect.name);
            }
            count += 1;
        }
    }
    assert!(count >= 1, "{count}");
}

#[test]
fn experiment_one_resolves() {
    let file = open("dftree-1.toml");
    assert_eq!(file.runs().len(), 2);
    let (off, on) = (plan(&file, 0), plan(&file, 1));
    assert_eq!(off.pm, None);
    let pm = on.pm.clone().expect("it is on");
    assert_eq!((pm.threshold, pm.further_threshold), (24_200_000, 43_560_000));
    assert_eq!((pm.dilation, pm.repath), (1000, true));
    assert_eq!(on.flows.len(), 4);
    assert_eq!(on.setup.len(), 4);
    let starts: Vec<u64> = on.steps.iter().map(|step| step.at.as_millis()).collect();
    assert_eq!(starts, [0, 13_000, 13_000, 13_000, 36_000, 36_000]);
    assert!(matches!(on.steps[0].action, Action::Host(..)));
    // Two lanes for traffic and one for management make an OperationalVLs of four.
    assert_eq!(on.management.map(|own| (own.sl, own.lane)), Some((15, 3)));
    assert_eq!(on.sm.lanes.max_op_vls.lanes(), 4);
}

/// A profile of the command line is as if the file named it: it replaces the file's own, and yields to the file's numbers.
#[test]
fn a_profile_is_the_files_or_the_command_lines() {
    let text = "title = 'x'\nduration = 1\n[fabric]\ngenerate = 'ring'\nswitches = 3\nhosts_per_switch = 1\n";
    let ndr = weft_device::Profile::find("ndr-2024").expect("a profile");
    let with = |rates: &str| {
        let text = format!("{text}{rates}");
        ExperimentFile::parse_with_profile("x.toml", &text, ndr).expect("a file").plain().rates.clone()
    };
    let plain = ExperimentFile::parse("x.toml", text).expect("a file").plain().rates.clone();
    assert_eq!((plain.profile, plain.cut_through, plain.cable_m), (None, false, 0));
    for rates in ["", "[rates]\n", "[rates]\nprofile = 'qdr-2012'\n"] {
        let rates = with(rates);
        assert_eq!(rates.profile.as_deref(), Some("ndr-2024"));
        assert_eq!((rates.cut_through, rates.cable_m, rates.message_overhead_ns), (true, 5, 285));
        assert_eq!((rates.crossbar, rates.host_limit_mbps), (ndr.crossbar, 0));
    }
    let own = with("[rates]\ncut_through = false\nswitch_latency_ns = 7\nhost_limit_gbps = 50\n");
    assert_eq!((own.cut_through, own.crossbar.latency_ns, own.host_limit_mbps), (false, 7, 50_000));
}

/// The file says which crossbar switches have, the command line overrides it, and explicit depths and limits override the
/// profile's own.
#[test]
fn a_crossbar_is_the_files_or_the_command_lines() {
    let data = |file: &ExperimentFile| plan(file, 0).device.data;
    let plain = open("dftree-1.toml");
    assert_eq!((data(&plain).crossbar, data(&plain).buffer_packets), (Crossbar::IS4, 0));
    assert_eq!(data(&plain.with_crossbar(Crossbar::FIFO)).crossbar, Crossbar::FIFO);
    // Hosts without a limit have none of the profile's bus either.
    let deadlock = open("deadlock.toml");
    assert_eq!(data(&deadlock).crossbar, Crossbar::UNLIMITED);
    let lifted = Crossbar { host_bus_percent: 0, ..Crossbar::IS4 };
    assert_eq!(data(&deadlock.with_crossbar(Crossbar::IS4)).crossbar, lifted);
    let text = "title = 'x'\nduration = 1\n[fabric]\ngenerate = 'ring'\nswitches = 3\nhosts_per_switch = 1\n[rates]\n";
    let parse = |line: &str| ExperimentFile::parse("x.toml", &format!("{text}{line}\n"));
    assert_eq!(data(&parse("buffer_packets = 4").expect("a file")).buffer_packets, 4);
    let rates = "profile = 'qdr-2012'\ncable_m = 3\ncut_through = false";
    let named = parse(rates).expect("a file").plain().rates.clone();
    assert_eq!((named.cable_m, named.message_overhead_ns, named.cut_through), (3, 625, false));
    let error = parse("crossbar = 'spectrum'").expect_err("no such crossbar").to_string();
    assert!(error.contains("unknown crossbar: is4, fifo or unlimited"), "{error}");
}

#[test]
fn a_mix_leaves_out_whom_it_excepts() {
    let ring = "title = 'x'\nduration = 1\n[fabric]\ngenerate = 'ring'\nswitches = 4\nhosts_per_switch = 1\n";
    let outcome = |mix: &str| {
        let file =
            ExperimentFile::parse("x.toml", &format!("{ring}[mix.all]\nhot_spots = ['host-2']\n{mix}"))?;
        file.plan(&file.runs()[0], &mut load)
    };
    let hosts = |mix: &str| {
        let flow = &outcome(mix).expect("a plan").flows[0];
        assert_eq!(flow.senders, flow.receivers);
        flow.senders.len()
    };
    assert_eq!((hosts(""), hosts("except = ['host-0']"), hosts("except = ['host-1', 'host-0']")), (4, 3, 2));
    let refused = |mix: &str| outcome(mix).expect_err("it is refused").to_string();
    assert!(refused("except = ['host-9']").contains("host-9"));
    assert!(
        refused("except = ['host-2']")
            .contains("the hot spot `host-2` is not among the hosts of the mix `all`")
    );
    assert!(refused("except = ['host-0', 'host-1', 'host-3']").contains("fewer than 2 hosts"));
}

#[test]
fn hosts_of_several_planes_talk_in_the_managers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topologies");
    // One host is on the second plane alone.
    let text = std::fs::read_to_string(folder.join("two-planes.topo")).expect("the file is there");
    let alone = "[2]\t\"H-0002c90000b00010\"[1](2c90000b00011)";
    let text: String =
        text.lines().filter(|line| !line.starts_with(alone)).map(|line| format!("{line}\n")).collect();
    let alone = "[1](2c90000b00011)";
    let text: String =
        text.lines().filter(|line| !line.starts_with(alone)).map(|line| format!("{line}\n")).collect();
    let plan = |sm: &str| {
        let experiment = format!(
            "title = 'x'\nduration = 1\n[fabric]\ntopology = 'x.topo'\n{sm}[mix.all]\nhot_spots = ['node03 mlx5_0']\n"
        );
        let file = ExperimentFile::parse("x.toml", &experiment).unwrap_or_else(|error| panic!("{error}"));
        let mut load = |_: &str, _: &str| Ok(text.clone());
        file.plan(&file.runs()[0], &mut load).unwrap_or_else(|error| panic!("{error}"))
    };
    for (sm, plane, hosts, port) in [("", "plane-1", 3, 1), ("[sm]\nat = 'node02 mlx5_0'\n", "plane-2", 4, 2)]
    {
        let plan = plan(sm);
        assert!(plan.fabric.find(plane).is_ok(), "{plane}");
        assert_eq!((plan.fabric.switches().count(), plan.flows[0].senders.len()), (1, hosts), "{plane}");
        let ports = plan.fabric.hosts().filter_map(|(_, host)| host.attach_port());
        assert!(ports.into_iter().all(|used| used.0 == port), "{plane}");
    }
}

/// Every word of the vocabulary, and every older spelling, means the same fault in a file.
#[test]
fn files_name_every_fault() {
    let path = folder().join("dftree-1.toml");
    let text = std::fs::read_to_string(&path).expect("the file is there");
    let fault = |key: &str, target: &str| {
        let text = format!("{text}\n[[fault]]\nat = 1\n{key} = \"{target}\"\n");
        let file = ExperimentFile::parse(&path.display().to_string(), &text);
        let plan = plan(&file.unwrap_or_else(|error| panic!("{error}")), 0);
        let faults = plan.steps.iter().filter_map(|step| match &step.action {
            Action::Fault(fault) => Some(fault.clone()),
            Action::Host(..) | Action::Migrate(_) => None,
        });
        let faults: Vec<_> = faults.collect();
        assert_eq!(faults.len(), 1, "{key} {target}");
        let name = |node| plan.fabric.label(node);
        let event = plan.event(&Action::Fault(faults[0].clone()));
        (faults[0].clone().map(name, |port| name(port.node)), event)
    };
    for (word, older) in [
        (Word::Kill, None),
        (Word::Restart, Some("start")),
        (Word::LinkDown, Some("cut")),
        (Word::LinkUp, Some("restore")),
        (Word::Freeze, None),
        (Word::Thaw, None),
        (Word::Partition, None),
        (Word::Heal, None),
        (Word::BadIdentity, None),
        (Word::GoodIdentity, None),
    ] {
        let is_of_cable = matches!(word, Word::LinkDown | Word::LinkUp);
        let is_of_process = matches!(word, Word::Kill | Word::Restart | Word::Freeze | Word::Thaw);
        let (targets, node) = match (is_of_cable, is_of_process) {
            (true, _) => (&["host-1/1"][..], "host-1"),
            (false, true) => (&["sm", "pm", "host-1"][..], "host-1"),
            (false, false) => (&["host-1"][..], "host-1"),
        };
        for target in targets {
            let (found, event) = fault(word.name(), target);
            let named = if is_of_cable { node } else { target };
            // Unless a file says otherwise.
            let expired = format!("expired {node}");
            let named = if word == Word::BadIdentity { expired.as_str() } else { named };
            assert_eq!(Some(found.clone()), weft_fault::Fault::of(word, named), "{word:?} {target}");
            assert!(event.is_some_and(|event| !event.is_empty()), "{word:?}");
            if let Some(older) = older {
                assert_eq!(fault(older, target).0, found, "{older} is {word:?}");
            }
        }
    }
}

/// A fault of a file, as the plan has it: what begins, what ends it, and what the report says.
fn impairments(lines: &str) -> Result<Vec<(f64, String)>, String> {
    let path = folder().join("dftree-1.toml");
    let text = std::fs::read_to_string(&path).expect("the file is there");
    let text = format!("{text}\n[[fault]]\nat = 1\n{lines}\n");
    let file =
        ExperimentFile::parse(&path.display().to_string(), &text).map_err(|error| error.to_string())?;
    let plan = plan(&file, 0);
    let faults = plan.steps.iter().filter_map(|step| match &step.action {
        Action::Fault(fault) => {
            let named =
                fault.clone().map(|node| plan.fabric.label(node), |port| plan.fabric.label(port.node));
            assert!(plan.event(&step.action).is_some_and(|event| event.contains("cable")));
            Some((step.at.as_secs_f64(), named.to_string()))
        }
        Action::Host(..) | Action::Migrate(_) => None,
    });
    Ok(faults.collect())
}

#[test]
fn files_name_every_impairment_with_its_end() {
    for (word, amounts, text) in [
        (Word::Loss, "percent = 2.5", "2.5%"),
        (Word::Delay, "by = \"2ms\"", "2ms"),
        (Word::Jitter, "by = \"150us\"", "150us"),
        (Word::Reorder, "percent = 5\nby = \"1ms\"", "5% 1ms"),
        (Word::Duplicate, "percent = \"100%\"", "100%"),
        (Word::BitErrors, "rate = \"1e-9\"", "1e-9"),
        (Word::Flap, "every = \"2s\"\ndown = \"200ms\"", "2s 200ms"),
        (Word::Width, "to = \"1x\"", "1x"),
        (Word::Speed, "to = \"sdr\"", "sdr"),
        (Word::SlowDrain, "percent = 5", "5%"),
    ] {
        let name = word.name();
        let lines = format!("{name} = \"host-1/1\"\n{amounts}\nway = \"in\"\nseed = 9\nfor = 0.5");
        let said = format!("{name} {text} in seed 9 at host-1");
        assert_eq!(impairments(&lines), Ok(vec![(1.0, said.clone()), (1.5, format!("clear {said}"))]));
        let lines = format!("{name} = \"host-1/1\"\n{amounts}");
        assert_eq!(impairments(&lines), Ok(vec![(1.0, format!("{name} {text} both seed 0 at host-1"))]));
    }
    let cut = impairments("link-down = \"host-1/1\"\nfor = 0.25");
    assert_eq!(cut, Ok(vec![(1.0, "link-down host-1".to_owned()), (1.25, "link-up host-1".to_owned())]));
    assert!(impairments("flap = \"host-1/1\"\nevery = \"2s\"").is_err_and(|error| error.contains("down")));
}

#[test]
fn impairments_that_say_too_little_or_too_much_are_refused() {
    for (lines, part) in [
        ("loss = \"host-1/1\"", "percent"),
        ("loss = \"host-1/1\"\npercent = 0", "no amount"),
        ("loss = \"host-1/1\"\npercent = 5\nby = \"1ms\"", "by"),
        ("delay = \"host-1/1\"\nby = \"1h\"", "no amount"),
        ("loss = \"host-1/1\"\ndelay = \"host-1/1\"\npercent = 5", "one thing"),
        ("loss = \"host-1/1\"\nkill = \"host-1\"\npercent = 5", "one thing"),
        ("loss = \"host-1/1\"\npercent = 5\nway = \"up\"", "way"),
        ("restart = \"host-1\"\nfor = 1", "for"),
        ("flap = \"host-1/1\"\nevery = \"1s\"\ndown = \"1s\"", "no amount"),
        ("width = \"host-1/1\"\nto = \"3x\"", "no amount"),
        ("freeze = [\"host-1\", \"host-2\"]", "one name"),
        ("partition = []", "one name"),
        ("link-down = \"host-1/1\"\nfor = 0", "for"),
    ] {
        let error = impairments(lines).expect_err(lines);
        assert!(error.contains(part), "{lines}: {error}");
    }
}

/// Each condition changes one thing, in every variant and with three seeds, and the file's own runs come first.
#[test]
fn conditions_change_one_thing_each() {
    let file = open("dftree-1.toml").under_conditions().expect("no axis of its own");
    assert!(file.omitted().is_empty());
    let conditions =
        ["as it is", "4 packets", "16 packets", "40 packets", "MTU 1024", "MTU 4096", "scale 1/2000"];
    assert_eq!(file.conditions(), conditions);
    let runs = file.runs();
    assert_eq!(runs.len(), conditions.len() * 2 * 3);
    assert!(runs[..6].iter().all(weft_experiment::RunId::is_usual) && !runs[6].is_usual());
    let usual = plan(&open("dftree-1.toml"), 0);
    for (nth, run) in runs.iter().enumerate().step_by(6) {
        let made = plan(&file, nth).device;
        let (condition, data) = (run.condition().expect("there is one"), &made.data);
        let depth = if let Some((depth, _)) = condition.split_once(" packets") { depth } else { "0" };
        assert_eq!(data.buffer_packets.to_string(), depth, "{condition}");
        let size = condition.strip_prefix("MTU ").unwrap_or("2048");
        assert_eq!(format!("{:?}", made.mtu_cap), format!("Bytes{size}"), "{condition}");
        let dilation = if condition.starts_with("scale") { 2000 } else { usual.device.data.dilation };
        assert_eq!(data.dilation, dilation, "{condition}");
    }
}

/// A file whose variants choose buffers and packets runs under what is left.
#[test]
fn a_files_own_choice_is_left_alone() {
    let file = open("vftree-4b-depths.toml").under_conditions().expect("no axis of its own");
    assert_eq!(file.conditions(), ["as it is", "scale 1/2000"]);
    assert_eq!(file.omitted().len(), 5);
    assert!(file.omitted().iter().all(|of| of.why.contains("`depth`")), "{:?}", file.omitted());
}

/// Lanes lend what they do not use unless the file or the command line says otherwise.
#[test]
fn shares_of_lanes_are_the_files_or_the_command_lines() {
    let share = |file: &ExperimentFile| plan(file, 0).device.data.lane_share;
    assert_eq!(share(&open("dftree-1.toml")), LaneShare::Lent);
    assert_eq!(share(&open("dftree-1-shares.toml")), LaneShare::Waiting);
    assert_eq!(share(&open("dftree-1-shares.toml").with_lane_share(LaneShare::Fixed)), LaneShare::Fixed);
}
