//! Virtual machines in files: what a plan makes of them, and what is said of wrong ones.

use weft_experiment::{
    Action, Counted, Driver, ExperimentFile, FlowSample, Migrated, MigrationOutcome, MigrationRecord,
    Outcome, Plan, Recording, RunResult, Sample,
};
use weft_host::stack::Guids;
use weft_host::traffic::{Command, Destination};
use weft_machine::Time;
use weft_topology::{LoadError, NodeIndex};
use weft_vm::{Method, MoveCounts, UpdateOrder};
use weft_wire::{Guid, SmKey};

const TOPOLOGY: &str = include_str!("../../../../topologies/live-migration.topo");

const GOOD: &str = r#"title = "machines"
duration = 40

[fabric]
topology = "three.topo"

[vms]
vfs = 2
lids = "dynamic"
method = "itrc"
update = "drop-first"

[vm.a]
host = "A"
rate_gbps = 8
pre_copy = 2.8
stop_copy = 1.9

[vm.b]
host = "A"

[vm.c]
host = "B"

[flow.one]
from = "vm:a"
to = "vm:c"

[flow.two]
from = "vm:a"
to = "C"

[flow.three]
from = "B"
to = "vm:a"

[[migrate]]
at = 20
vm = "a"
to = "B"

[[migrate]]
at = 10
vm = "a"
to = "C"
late_detach = false

[[expect]]
what = "downtime"
vm = "a"
after = 15
"#;

fn load(path: &str, _from: &str) -> Result<String, LoadError> {
    if path == "three.topo" { Ok(TOPOLOGY.to_owned()) } else { Err(LoadError::new("no such file")) }
}

fn plan(text: &str) -> Result<Plan, String> {
    let file = ExperimentFile::parse("x.toml", text).map_err(|error| error.to_string())?;
    file.plan(&file.runs()[0], &mut load).map_err(|error| error.to_string())
}

/// The error of the good file with one thing changed.
fn said(from: &str, to: &str) -> String {
    assert_eq!(GOOD.matches(from).count(), 1, "{from}");
    match plan(&GOOD.replace(from, to)) {
        Ok(_) => "it is taken".to_owned(),
        Err(error) => error,
    }
}

#[test]
fn machines_begin_on_their_hosts_and_flows_go_where_they_are() {
    let plan = plan(GOOD).unwrap_or_else(|error| panic!("{error}"));
    let vms = plan.vms.as_ref().expect("it has machines");
    let places: Vec<(String, String, u8)> =
        vms.vms.iter().map(|vm| (vm.name.to_string(), vm.host.to_string(), vm.vf)).collect();
    let place = |vm: &str, host: &str, vf| (vm.to_owned(), host.to_owned(), vf);
    assert_eq!(places, [place("a", "A", 1), place("b", "A", 2), place("c", "B", 1)]);
    let guids: Vec<Guid> = vms.vms.iter().map(|vm| vm.port_guid).collect();
    assert!(guids.iter().all(|guid| guid.0 >> 48 == 0x0276), "local GUIDs: {guids:?}");
    let described = |node: NodeIndex| plan.fabric.node(node).description.as_str();
    assert_eq!(vms.vms.iter().map(|vm| described(vm.born)).collect::<Vec<_>>(), ["A vf1", "A vf2", "B vf1"]);
    assert!(vms.is_dynamic && vms.vmm_at.node != plan.sm_at.node);
    assert!(plan.sm.keys.sa_key != SmKey(1), "everybody knows that one");

    let opened: Vec<_> = plan
        .steps
        .iter()
        .filter_map(|step| match &step.action {
            Action::Host(node, Command::Open(spec)) => Some((described(*node), spec)),
            _ => None,
        })
        .collect();
    assert_eq!(opened.iter().map(|(at, _)| *at).collect::<Vec<_>>(), ["A vf1", "A vf1", "B"]);
    assert_eq!(opened[0].1.to, Destination::One(guids[2]));
    assert_eq!(opened[2].1.to, Destination::One(guids[0]));
    // 8 Gb/s for two flows, 1/1000 of which in wall-clock time, of which 2048 of 2074 bytes are body.
    let half = (4e6 / 8.0 * 2048.0 / 2074.0_f64).round() as u64;
    assert_eq!(
        opened.iter().map(|(_, spec)| spec.bytes_per_second).collect::<Vec<_>>(),
        [Some(half), Some(half), None]
    );
}

#[test]
fn migrations_are_steps_in_order_of_time() {
    let plan = plan(GOOD).unwrap_or_else(|error| panic!("{error}"));
    let moves: Vec<_> = plan
        .steps
        .iter()
        .filter_map(|step| match &step.action {
            Action::Migrate(migrate) => Some((step.at.as_millis(), migrate)),
            _ => None,
        })
        .collect();
    assert_eq!(
        moves.iter().map(|(at, one)| (*at, one.host.to_string())).collect::<Vec<_>>(),
        [(10_000, "C".to_owned()), (20_000, "B".to_owned())]
    );
    let (first, second) = (moves[0].1, moves[1].1);
    assert_eq!(first.route.method, Method::Itrc);
    assert_eq!(first.route.order, UpdateOrder::DropFirst);
    assert_eq!(first.hypervisor.pre_copy.as_millis(), 2800);
    assert_eq!((first.detach, second.detach), (weft_vm::Detach::Early, weft_vm::Detach::Late));
}

/// A list of hosts is one migration for each, over and over until there are as many as are asked for.
#[test]
fn a_machine_goes_from_host_to_host() {
    let tour = "at = 20\nevery = 2.5\ntimes = 3\nvm = \"a\"\nto = [\"B\", \"A\"]";
    let plan = plan(&GOOD.replace("at = 20\nvm = \"a\"\nto = \"B\"", tour))
        .unwrap_or_else(|error| panic!("{error}"));
    let moves = plan.steps.iter().filter_map(|step| match &step.action {
        Action::Migrate(migrate) => Some((step.at.as_millis(), migrate.host.to_string())),
        _ => None,
    });
    let at = |millis, host: &str| (millis, host.to_owned());
    let wanted = [at(10_000, "C"), at(20_000, "B"), at(22_500, "A"), at(25_000, "B")];
    assert_eq!(moves.collect::<Vec<_>>(), wanted);
}

#[test]
fn prepopulated_machines_take_the_guids_of_their_functions() {
    let plan =
        plan(&GOOD.replace("\"dynamic\"", "\"prepopulated\"")).unwrap_or_else(|error| panic!("{error}"));
    for vm in plan.machines() {
        let own = plan.fabric.node(vm.born).end_ports().next().map(|(_, port)| port.guid);
        assert_eq!((Some(vm.port_guid), vm.given), (own, None));
        assert_eq!(vm.create().guid, None);
    }
}

/// Each is said in one line, by what follows it.
fn are_said(all: &[(String, &str)]) {
    let other = all.iter().filter(|(said, wanted)| !said.contains(wanted) || said.contains('\n'));
    let other: Vec<String> = other.map(|(said, wanted)| format!("{said}\nand not\n{wanted}")).collect();
    assert!(other.is_empty(), "{}", other.join("\n\n"));
}

#[test]
fn wrong_tours_are_refused_with_line_and_remedy() {
    are_said(&[
        (
            said("vm = \"a\"\nto = \"B\"", "vm = \"a\"\nto = [\"B\", \"C\"]"),
            "x.toml:37:1: several migrations need the time from one to the next; write `every`, in seconds, more than 0",
        ),
        (said("vm = \"a\"\nto = \"B\"", "vm = \"a\"\nto = []"), "x.toml:40:6: `to` names no host"),
        (
            said("vm = \"a\"\nto = \"B\"", "vm = \"a\"\nto = \"B\"\nevery = 21\ntimes = 2"),
            "x.toml:37:1: the last of the migrations is after the run's end",
        ),
        (
            said("after = 15", "after = 15\nof = \"last\""),
            "x.toml:52:6: `of` cannot be `last`; did you mean `least`? There are `first`, `least` and `most`",
        ),
    ]);
}

#[test]
fn wrong_files_are_refused_with_line_and_remedy() {
    let all = [
        (said("vfs = 2", "vfs = 0"), "x.toml:8:7: `vfs` takes a whole number from 1 to 252, not 0"),
        (
            said("vfs = 2", "vfs = 1"),
            "x.toml:19:5: `A` has 1 virtual functions, and `b` is one too many; write more `vfs` in [vms], or another `host`",
        ),
        (
            said("\"itrc\"", "\"itcr\""),
            "x.toml:10:10: `method` cannot be `itcr`; did you mean `itrc`? There are `ftreeminrc`, `itrc`, `skyline` and `full`",
        ),
        (
            said("[vm.b]", "[vm.'b c']"),
            "x.toml:19:5: `b c` cannot be a name; use 1 to 64 letters, digits, `-`, `_` and `.`",
        ),
        (said("[vm.b]\nhost = \"A\"", "[vm.b]\nhost = \"D\""), "x.toml:20:8: "),
        (
            said("to = \"vm:c\"", "to = \"vm:d\""),
            "x.toml:27:6: no virtual machine is called `d`; did you mean `a`? There are `a`, `b` and `c`",
        ),
        (
            said("from = \"B\"", "from = \"B vf1\""),
            "x.toml:34:8: `B vf1` is a virtual function, and a host is meant; a virtual machine is named `vm:NAME` as the end of a flow",
        ),
        (
            said("at = 20", "at = 10"),
            "x.toml:42:1: `a` has two migrations at 10 s; one machine goes to one host at a time",
        ),
        (said("at = 20", "at = 50"), "x.toml:37:1: the migration is after the run's end"),
        (
            said("vm = \"a\"\nto = \"B\"", "vm = \"d\"\nto = \"B\""),
            "x.toml:39:6: no virtual machine is called `d`",
        ),
        (
            said("vm = \"a\"\nto = \"B\"", "vm = \"a\"\nto = \"C\""),
            "x.toml:40:6: `a` is on `C` already at 20 s; name another host in `to`",
        ),
        (said("vm = \"a\"\nto = \"B\"", "vm = \"a\"\nto = \"D\""), "x.toml:40:6: "),
        (
            said("after = 15", "after = 25"),
            "x.toml:48:1: `a` has no migration at or after 25 s; add a [[migrate]], or change `after`",
        ),
        (
            said("what = \"downtime\"\nvm = \"a\"", "what = \"downtime\"\nvm = \"e\""),
            "x.toml:50:6: no virtual machine is called `e`",
        ),
        (
            said("[vms]", "[pm]\nmode = \"oracle\"\nslow_sl = 1\nhot_spots = [\"C\"]\n\n[vms]"),
            "an oracle fills path caches before the clock begins, and those do not follow a machine; write `mode = \"on\"` in [pm]",
        ),
        (
            said("lids = \"dynamic\"", "lids = \"dynamic\"\nguids = \"dynamic\""),
            "with `guids = \"dynamic\"` a machine takes neither GUID nor LID along; write `lids = \"fixed\"` in [vms]",
        ),
        (
            said("lids = \"dynamic\"", "lids = \"fixed\"\nguids = \"dynamic\"\nsignal_moves = true"),
            "no GUID comes back with another LID where GUIDs stay with functions; leave out `signal_moves` of [vms]",
        ),
        (
            said("to = \"vm:c\"", "to = \"vm:c\"\nsl = 2"),
            "the flow `one` has `sl`, which is not for virtual machines",
        ),
        (
            said("what = \"downtime\"\nvm = \"a\"\nafter = 15", "what = \"predicted_deadlock\""),
            "the verifier predicts nothing where there are virtual machines",
        ),
    ];
    are_said(&all);
    let none = GOOD.split("[vms]").next().unwrap_or_default().to_owned() + "[vm.a]\nhost = \"A\"\n";
    let said = plan(&none).expect_err("it has no functions");
    assert!(said.contains("[vm.a] needs virtual functions, and [vms] is not there"), "{said}");
}

/// Where GUIDs stay with functions, a flow goes to the machine's name, and the machine has the GUID of its first function.
#[test]
fn flows_go_to_names_of_machines_whose_guid_stays_behind() {
    let text = GOOD.replace("lids = \"dynamic\"", "lids = \"fixed\"\nguids = \"dynamic\"");
    let plan = plan(&text).unwrap();
    assert_eq!(plan.stack.guids, Guids::Dynamic);
    assert!(plan.sm.vm_lids.vm_lids_stay && !plan.sm.sa.signal_moves);
    assert!(plan.machines().iter().all(|vm| vm.given.is_none()), "{:?}", plan.machines());
    let to: Vec<&Destination> = plan
        .steps
        .iter()
        .filter_map(|step| match &step.action {
            Action::Host(_, Command::Open(spec)) => Some(&spec.to),
            _ => None,
        })
        .collect();
    let named = |name: &str| Destination::Named(name.to_owned());
    assert!(to.contains(&&named("c")) && to.contains(&&named("a")), "{to:?}");
    assert_eq!(
        to.iter().filter(|to| matches!(to, Destination::One(_))).count(),
        1,
        "host C has a GUID: {to:?}"
    );
}

/// No acknowledgement fails to come where there is none.
#[test]
fn datagrams_to_a_machine_found_by_name_are_refused() {
    let text = GOOD.replace("lids = \"dynamic\"", "lids = \"fixed\"\nguids = \"dynamic\"");
    let datagrams = |flow: &str| text.replace(flow, &format!("{flow}\ntransport = \"ud\""));
    let said = plan(&datagrams("to = \"vm:c\"")).unwrap_err();
    assert!(said.contains("the flow `one` sends datagrams to a machine"), "{said}");
    assert!(said.contains("write `transport = \"rc\"`, or `guids = \"static\"` in [vms]"), "{said}");
    plan(&datagrams("from = \"vm:a\"\nto = \"C\"")).unwrap();
}

#[test]
fn a_full_host_is_refused_at_its_moment() {
    let third = "[[migrate]]\nat = 30\nvm = \"b\"\nto = \"B\"\n\n[[expect]]";
    let said = said("[[expect]]", third);
    assert!(said.contains("all 2 virtual functions of `B` are in use at 30 s"), "{said}");
}

/// The host's name stands in other lines too, and the error is about the migration's.
#[test]
fn a_migration_that_goes_nowhere_is_told_where_it_stands() {
    let said = said("at = 10\nvm = \"a\"\nto = \"C\"", "at = 10\nvm = \"a\"\nto = \"A\"");
    assert!(said.starts_with("x.toml:45:6: `a` is on `A` already at 10 s"), "{said}");
}

/// What became of a migration that took 0.1 s by its manager.
fn record(told: MoveCounts, counted: Counted) -> MigrationRecord {
    let ms = Time::from_millis;
    let stages = vec![("reserve".to_owned(), ms(5)), ("freeze".to_owned(), ms(1))];
    let migrated = Migrated { stages, downtime: Some(ms(100)), told: Some(told), ..Migrated::default() };
    MigrationRecord {
        vm: "a".to_owned(),
        to: "B".to_owned(),
        at: Time::from_secs(20),
        ended: Some(ms(20_200)),
        outcome: MigrationOutcome::Done(Box::new(migrated)),
        counted: Some(counted),
    }
}

/// Flow `three` goes to the machine, and nothing of it arrives from 20 to 26 s; all others flow on.
#[test]
fn a_downtime_lasts_until_the_last_peer_is_served() {
    let text =
        GOOD.replace("after = 15\n", "after = 15\nat_most = 0.2\nmodel = \"closed form: 0.1 + 0.1\"\n");
    let file = ExperimentFile::parse("x.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let plan = file.plan(&file.runs()[0], &mut load).unwrap_or_else(|error| panic!("{error}"));
    let judged = |silent: bool| {
        let packets = |name: &str, at: u64| match name {
            "three" if silent && at > 20_000 => at.min(20_000).max(at.saturating_sub(6000)),
            _ => at,
        };
        let sample = |at: u64| Sample {
            at: Time::from_millis(at),
            flows: plan
                .flows
                .iter()
                .map(|flow| {
                    let packets = packets(&flow.name, at);
                    FlowSample { flow: flow.flow, sent_bytes: 0, packets, bytes: packets * 2048 }
                })
                .collect(),
            ports: Vec::new(),
        };
        let recording = Recording {
            run: plan.run.clone(),
            driver: Driver::Virtual,
            ended: plan.duration,
            samples: (0..=160).map(|step| sample(step * 250)).collect(),
            migrations: vec![record(MoveCounts::default(), Counted::default())],
            ..Recording::default()
        };
        file.result(&plan, &recording).unwrap_or_else(|error| panic!("{error}"))
    };
    let downtime = |result: &RunResult| {
        let finding = result.verdict.findings.iter().find(|finding| finding.unit == "s").expect("an expect");
        (finding.outcome, finding.measured)
    };
    assert_eq!(downtime(&judged(false)), (Outcome::Kept, Some(0.1)));
    let result = judged(true);
    assert_eq!(downtime(&result), (Outcome::Failed, Some(5.75)), "samples are 0.25 s apart");
    let quiet = |name: &str| {
        let flow = result.flows.iter().find(|flow| flow.name == name).expect("a flow");
        flow.quiet
    };
    assert_eq!((quiet("three"), quiet("two")), (Some(Time::from_millis(6000)), Some(Time::ZERO)));
}

/// Rows that are written after the answer are no SMPs that are missing.
#[test]
fn late_rows_are_not_received_before_the_answer() {
    let told = MoveCounts {
        switches: 4,
        physical_smps: 11,
        vswitch_smps: 4,
        late_physical_smps: 4,
        late_vswitch_smps: 2,
        ..MoveCounts::default()
    };
    let counted = |physical_smps, vswitch_smps| Counted {
        switches: 4,
        physical_smps,
        vswitch_smps,
        ..Counted::default()
    };
    assert_eq!(record(told.clone(), counted(7, 2)).contradiction(), None);
    for (physical, vswitch) in [(11, 4), (6, 2), (7, 1)] {
        let text = record(told.clone(), counted(physical, vswitch)).contradiction();
        assert!(
            text.is_some_and(|text| text.contains("7 LFT SMPs to 4 switches and 2 to vSwitches are told"))
        );
    }
}
