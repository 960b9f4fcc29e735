//! Partitions, policies and weights of experiments: what plans get of them, and what is wrong in words.

use weft_experiment::{ExperimentFile, Plan};
use weft_routing::{Isolation, Partitions, PftreeOrder, Strictness};
use weft_topology::LoadError;

const HEAD: &str = r#"title = "a test"
duration = 10

[fabric]
generate = "xgft"
children = [3, 3]
parents = [1, 2]

[sm]
at = "host-7"

[engine]
chain = "pftree-combined"
"#;

const TABLES: &str = r#"policies = "strict"

[partition.one]
members = ["host-[0-1]", "host-4"]
policy = "phy"

[partition.two]
p_key = 0x102
members = ["host-5"]
limited = ["host-0"]
"#;

const FILE: &str = "Default=0x7fff : ALL=limited, SELF=full ;\nweb=0x8 : 0x77=full ;\nbest-effort ;\n";

fn load(path: &str, _from: &str) -> Result<String, LoadError> {
    match path {
        "tenants.conf" => Ok(FILE.to_owned()),
        "bad.conf" => Ok("web=0x10000 : ;\n".to_owned()),
        _ => Err(LoadError::new("no such file")),
    }
}

fn plan(engine: &str) -> Result<Plan, String> {
    let text = format!("{HEAD}{engine}");
    let file = ExperimentFile::parse("x.toml", &text).map_err(|error| error.to_string())?;
    file.plan(&file.runs()[0], &mut load).map_err(|error| error.to_string())
}

fn partitions(plan: &Plan) -> &Partitions {
    plan.sm.routing.engine.partitions.as_ref().expect("it has some")
}

/// By partition: its key, policy and members, by the numbers of hosts, with an `l` where they are limited.
fn described(plan: &Plan) -> Vec<(u16, Isolation, String)> {
    let number =
        |guid| plan.fabric.by_port_guid(guid).map(|node| plan.fabric.name(node)["host-".len()..].to_owned());
    let member = |member: &weft_routing::Member| {
        number(member.guid).map(|number| number + if member.full { "" } else { "l" }).unwrap_or_default()
    };
    let all = partitions(plan).list.iter();
    all.filter(|partition| partition.pkey != 0x7fff)
        .map(|partition| {
            let mut members: Vec<String> = partition.members.iter().map(member).collect();
            members.sort_unstable();
            (partition.pkey, partition.isolation, members.join(" "))
        })
        .collect()
}

#[test]
fn tables_become_the_partitions_of_the_manager() {
    let plan = plan(TABLES).expect("it is right");
    let expected = [(1, Isolation::Phy, "0 1 4".to_owned()), (0x102, Isolation::Def, "0l 5".to_owned())];
    assert_eq!(described(&plan), expected);
    assert_eq!(partitions(&plan).strictness, Strictness::Strict);
    // Everyone is in the default partition, and the manager's host in full.
    let default =
        partitions(&plan).list.iter().find(|partition| partition.pkey == 0x7fff).expect("it is there");
    let full: Vec<_> = default.members.iter().filter(|member| member.full).collect();
    let manager = plan.fabric.port(plan.sm_at).expect("a port").guid;
    assert!(default.members.len() >= 9 && full.len() == 1 && full[0].guid == manager);
}

#[test]
fn a_file_is_read_beside_the_experiment() {
    let plan = plan("partitions = \"tenants.conf\"\n").expect("it is right");
    let web = partitions(&plan).list.iter().find(|partition| partition.pkey == 8).expect("it is there");
    assert_eq!((web.name.as_str(), web.members[0].guid.0, web.members.len()), ("web", 0x77, 1));
}

#[test]
fn weights_and_options_of_pftree_reach_the_engine() {
    let more = "pftree_order = \"partition\"\nisolation_share = 0.25\n[engine.weights]\n\"host-[1-2]\" = 100\nhost-4 = 7\n";
    let plan = plan(&format!("{more}{}", &TABLES["policies = \"strict\"\n".len()..])).expect("it is right");
    let engine = &plan.sm.routing.engine;
    assert_eq!((engine.pftree_order, engine.isolation_share), (PftreeOrder::Partition, 250));
    let mut weights: Vec<u32> = engine.weights.values().copied().collect();
    weights.sort_unstable();
    assert_eq!(weights, [7, 100, 100]);
}

#[test]
fn what_is_wrong_is_told_in_words() {
    let said = |engine: &str| plan(engine).err().unwrap_or_else(|| "nothing".to_owned());
    let table = |lines: &str| format!("[partition.web]\n{lines}\n");
    let many: String = (0..64).map(|nth| format!("[partition.p{nth}]\nmembers = [\"host-1\"]\n")).collect();
    for (text, message) in [
        (table("members = [\"host-1\"]\npolicy = \"solid\""), "`policy` cannot be `solid`"),
        (table("policy = \"phy\""), "[partition.web] has no members"),
        (table("limited = [\"host-1\"]"), "[partition.web] has limited members alone, who can talk to no one"),
        (table("members = [\"host-9\"]"), "host-9"),
        (table("members = [\"vm:a\"]"), "no virtual machine is called `a`"),
        (table("members = [\"host-1\"]\np_key = 0x7fff"), "`p_key` of [partition.web] cannot be that"),
        (table("members = [\"host-1\"]\np_key = 0"), "`p_key` takes a whole number from 1 to 32767"),
        (table("members = [\"host-1\"]\nowner = 3"), "unknown key `owner` in [partition.web]"),
        (
            "[partition.a]\nmembers = [\"host-1\"]\np_key = 8\n[partition.b]\nmembers = [\"host-2\"]\np_key = 8\n".into(),
            "[partition.b] has the P_Key 0x0008 of [partition.a]; leave `p_key` out",
        ),
        (many, "host-1 is in 65 partitions; a port has room for 64 P_Keys"),
        (format!("partitions = \"tenants.conf\"\n{}", table("members = [\"host-1\"]")), "names a file, and here is a partition beside it"),
        ("partitions = \"gone.conf\"\n".into(), "`gone.conf` cannot be read"),
        ("partitions = \"bad.conf\"\n".into(), "bad.conf:1:5: a P_Key must be"),
        ("policies = \"strict\"\n".into(), "`policies` of [engine] is about [partition.NAME]"),
        ("policies = \"lax\"\n".into(), "`policies` cannot be `lax`"),
        ("[engine.weights]\nhost-1 = 0\n".into(), "`host-1` takes a weight from 1 to 100"),
        ("[engine.weights]\nhost-77 = 3\n".into(), "host-77"),
    ] {
        let said = said(&text);
        assert!(said.contains(message) && said.starts_with("x.toml:"), "{message}\n{said}");
    }
    let other = HEAD.replace("pftree-combined", "ftree");
    let text = format!("{other}[engine.weights]\nhost-1 = 3\n");
    let refused = ExperimentFile::parse("x.toml", &text).expect_err("ftree reads none").to_string();
    assert!(refused.contains("weights"), "{refused}");
}
