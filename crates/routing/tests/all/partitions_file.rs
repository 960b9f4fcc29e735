//! Partitions files are read as OpenSM reads them, with policies; what is wrong with one is said with its place.

use proptest::prelude::*;
use weft_routing::files::partitions::{
    Group, GroupFlags, Membership, PartitionRule, PartitionsFile, PortRule, Who,
};
use weft_routing::{DEFAULT_PKEY, Isolation, Member, Partitions, Strictness};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, FabricBuilder, LinkRate, Node, NodeType, PortRef};
use weft_wire::{Gid, GidPrefix, Guid, PortNum};

fn parsed(text: &str) -> PartitionsFile {
    PartitionsFile::parse("partitions.conf", text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn error(text: &str) -> String {
    PartitionsFile::parse("p.conf", text).expect_err(text).to_string()
}

/// Two leaves with two hosts each under one root, and a router on the first leaf.
fn fabric() -> Fabric {
    let tree =
        xgft(&[2, 2], &[1, 1], &GenerateOptions { radix: Some(8), ..Default::default() }).expect("fits");
    let mut builder = FabricBuilder::new();
    for (_, node) in tree.iter() {
        builder.add_node(node.clone()).expect("fits");
    }
    for cable in tree.cables() {
        builder.connect(cable.a, cable.b).expect("fits");
    }
    let mut router = Node::new(NodeType::Router, Guid(0x7000), 2, LinkRate::default());
    router.id = "router".to_owned();
    let router = builder.add_node(router).expect("fits");
    let leaf = tree
        .hosts()
        .next()
        .and_then(|(host, _)| tree.peer(PortRef::new(host, PortNum(1))))
        .expect("fits")
        .node;
    builder.connect(PortRef::new(router, PortNum(1)), PortRef::new(leaf, PortNum(8))).expect("fits");
    builder.build()
}

fn members(partitions: &Partitions, pkey: u16) -> Vec<Member> {
    partitions
        .list
        .iter()
        .find(|partition| partition.pkey == pkey)
        .expect("the partition is there")
        .members
        .clone()
}

#[test]
fn every_part_of_the_grammar_is_read() {
    let file = parsed(
        "# all of it\n\
         Default=0x7fff,ipoib,mtu=5 : ALL, SELF=full ; tenant = 0x8002 , indx0 , defmember=full, isolation=phy :\n\
         \t0x10=limi,\n 16\n,020=both, ALL_CAS, # 0x99\n\
         \x20ALL_SWITCHES=f, NONE ; strict ;\n\
         sharing=0x3, rate=3, sl=2, scope=2, scope=5, Q_Key=0x80010000, TClass=7, FlowLabel=0xfffff, isolation=vlane:\n\
         mgid=ff12:401b::707, sl=1 # a group\n\
         mgid=ff05::1\n\
         ALL_ROUTERS ;\n\
         4 : SELF;\n\
         free : ;\n",
    );
    assert_eq!(file.strictness, Some(Strictness::Strict));
    let ports = |ports: &[(Who, Option<Membership>)]| -> Vec<PortRule> {
        ports.iter().map(|(who, membership)| PortRule { who: *who, membership: *membership }).collect()
    };
    let (full, limited, both) = (Some(Membership::Full), Some(Membership::Limited), Some(Membership::Both));
    let mgid = |high, low| Gid { prefix: GidPrefix(high), guid: Guid(low) };
    let rules = vec![
        PartitionRule {
            name: "Default".to_owned(),
            pkey: Some(0x7fff),
            ipoib: true,
            flags: GroupFlags { mtu: Some(5), ..Default::default() },
            ports: ports(&[(Who::All, None), (Who::SubnetManager, full)]),
            ..Default::default()
        },
        PartitionRule {
            name: "tenant".to_owned(),
            pkey: Some(2),
            index0: true,
            defmember: full,
            isolation: Some(Isolation::Phy),
            ports: ports(&[
                (Who::Port(Guid(0x10)), limited),
                (Who::Port(Guid(0x10)), None),
                (Who::Port(Guid(0x10)), both),
                (Who::AllCas, None),
                (Who::AllSwitches, full),
            ]),
            ..Default::default()
        },
        PartitionRule {
            name: "sharing".to_owned(),
            pkey: Some(3),
            flags: GroupFlags {
                rate: Some(3),
                mtu: None,
                sl: Some(2),
                scopes: [2, 5].into(),
                q_key: Some(0x8001_0000),
                traffic_class: Some(7),
                flow_label: Some(0xf_ffff),
            },
            isolation: Some(Isolation::Vlane),
            ports: ports(&[(Who::AllRouters, None)]),
            groups: vec![
                Group {
                    mgid: mgid(0xff12_401b_0000_0000, 0x707),
                    flags: GroupFlags { sl: Some(1), ..Default::default() },
                },
                Group { mgid: mgid(0xff05_0000_0000_0000, 1), flags: GroupFlags::default() },
            ],
            ..Default::default()
        },
        PartitionRule { pkey: Some(4), ports: ports(&[(Who::SubnetManager, None)]), ..Default::default() },
        PartitionRule { name: "free".to_owned(), ..Default::default() },
    ];
    assert_eq!(file.rules, rules);
    assert_eq!(parsed(&file.to_string()), file, "{file}");
}

#[test]
fn keywords_become_the_ports_of_the_fabric() {
    let fabric = fabric();
    let file = parsed(
        "a=1 : ALL=full; b=2 : ALL_CAS; c=3 : ALL_SWITCHES=both; d=4 : ALL_ROUTERS; e=5 : SELF=full, 0x123;",
    );
    let manager = fabric.hosts().next().map(|(_, node)| node.ports[1].guid);
    let partitions = file.resolve(&fabric, manager);
    assert_eq!(partitions.strictness, Strictness::BestEffort);
    let all = members(&partitions, 1);
    assert_eq!((all.len(), all.iter().all(|member| member.full)), (8, true), "4 hosts, 3 switches, a router");
    let hosts: Vec<Guid> = fabric.hosts().map(|(_, node)| node.ports[1].guid).collect();
    let of =
        |pkey| members(&partitions, pkey).iter().map(|member| (member.guid, member.full)).collect::<Vec<_>>();
    assert_eq!(of(2), hosts.iter().map(|guid| (*guid, false)).collect::<Vec<_>>());
    let switches: Vec<Guid> = fabric.switches().map(|(_, node)| node.guid).collect();
    assert_eq!(of(3), switches.iter().map(|guid| (*guid, true)).collect::<Vec<_>>());
    assert_eq!(of(4), [(Guid(0x7001), false)], "its second port has no cable");
    assert_eq!(
        of(5),
        [(Guid(0x123), true), (manager.unwrap(), true)].map(|(guid, _)| (guid, guid != Guid(0x123)))
    );
    // No rule for the default partition: all are limited members, the subnet manager is a full one.
    let default = members(&partitions, DEFAULT_PKEY);
    assert_eq!(default.len(), 8);
    let full: Vec<Guid> = default.iter().filter(|member| member.full).map(|member| member.guid).collect();
    assert_eq!(full, [manager.unwrap()]);
    // No file at all: all are full members.
    let without = PartitionsFile::absent().resolve(&fabric, manager);
    assert_eq!(without.list.len(), 1);
    assert!(members(&without, DEFAULT_PKEY).iter().all(|member| member.full));
    assert_eq!(members(&without, DEFAULT_PKEY).len(), 8);
}

#[test]
fn rules_for_one_p_key_are_one_partition_by_the_first_name() {
    let file = parsed(
        "one=0x300 : 0x1=full, 0x2; other=0x8300, isolation=vlane : 0x2=full, 0x3, 0x1; one : 0x4; two : 0x5;\n\
         Default : 0x6=full; three=1 : 0x7;",
    );
    let partitions = file.resolve(&fabric(), None);
    let names: Vec<(&str, u16)> =
        partitions.list.iter().map(|partition| (partition.name.as_str(), partition.pkey)).collect();
    // `two` gets the lowest P_Key that no rule names; 1 is named.
    assert_eq!(names, [("one", 0x300), ("two", 2), ("Default", DEFAULT_PKEY), ("three", 1)]);
    let member = |guid, full| Member { guid: Guid(guid), full };
    let one = [member(1, false), member(2, true), member(3, false), member(4, false)];
    assert_eq!(members(&partitions, 0x300), one, "of two memberships the last holds");
    assert_eq!(partitions.list[0].isolation, Isolation::Vlane);
    assert_eq!(partitions.list[1].isolation, Isolation::Def);
}

#[test]
fn errors_name_the_place_and_what_is_allowed() {
    let cases = [
        ("a=1 : ALL ;\n  b=0x10000 : ;", "p.conf:2:5: a P_Key must be 0x0 to 0xffff: `0x10000`"),
        ("é=zwei : ;", "p.conf:1:3: a P_Key must be 0x0 to 0xffff: `zwei`"),
        ("a=1 : 0x1,\n 0x2\n", "p.conf:1:1: this partition's rule is not closed by `;`: `a=1 : 0x1,`"),
        (
            "\na=1 ;",
            "p.conf:2:1: a partition is defined on one line as `name=P_Key, flags :`; there is no `:` here: `a=1`",
        ),
        (";", "p.conf:1:1: expected a partition before `;`"),
        ("strict", "p.conf:1:1: expected `;` after this word: `strict`"),
        (
            "strict;\nbest-effort;",
            "p.conf:2:1: strict or best-effort was said otherwise on line 1: `best-effort`",
        ),
        ("a=1 : ALL=none;", "p.conf:1:11: expected full, limited or both: `none`"),
        ("a=1 : ALL=;", "p.conf:1:11: expected full, limited or both"),
        ("a=1, defmember : ;", "p.conf:1:6: this flag wants a value: full, limited or both: `defmember`"),
        ("a=1, defmember=all : ;", "p.conf:1:16: expected full, limited or both: `all`"),
        ("a=1, isolation=virtual : ;", "p.conf:1:16: expected phy, vlane or def: `virtual`"),
        (
            "a=1, isolation=phy : ;\nb=2, isolation=def : ;\nc=0x8001, isolation=def : ;",
            "p.conf:3:21: the isolation of this partition was said otherwise on line 1: `def`",
        ),
        (
            "a=1, isolation=phy : ;\na, isolation=vlane : ;",
            "p.conf:2:14: the isolation of this partition was said otherwise on line 1: `vlane`",
        ),
        ("a=1, ipoib=yes : ;", "p.conf:1:12: this flag takes no value: `yes`"),
        ("a=1, mtu=6 : ;", "p.conf:1:10: an MTU's code must be 0x1 to 0x5: `6`"),
        ("a=1, sl=-1 : ;", "p.conf:1:9: a service level must be 0x0 to 0xf: `-1`"),
        (
            "a=1, colour=red : ;",
            "p.conf:1:6: no such flag; there are indx0, ipoib, rate, mtu, sl, scope, Q_Key, TClass, FlowLabel, defmember \
             and isolation: `colour`",
        ),
        (
            "a=1 :\n ALL, EVERYONE;",
            "p.conf:2:7: expected a PortGUID, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF or NONE: `EVERYONE`",
        ),
        ("a=1 : 0;", "p.conf:1:7: a PortGUID must be 0x1 to 0xffffffffffffffff: `0`"),
        ("a=1 : 0x12g4;", "p.conf:1:7: a PortGUID must be 0x1 to 0xffffffffffffffff: `0x12g4`"),
        ("a=1 : mgid=fe80::1;", "p.conf:1:12: expected a multicast GID such as ff12:401b::1: `fe80::1`"),
        ("a=1 : mgid;", "p.conf:1:7: this flag wants a value: a multicast GID such as ff12:401b::1: `mgid`"),
        (
            "a=1 : mgid=ff12::1, ipoib;",
            "p.conf:1:21: no such flag; there are rate, mtu, sl, scope, Q_Key, TClass and FlowLabel: `ipoib`",
        ),
    ];
    for (text, wanted) in cases {
        assert_eq!(error(text), wanted, "{text}");
    }
}

#[test]
fn more_partitions_than_p_keys_are_an_error() {
    let text: String = (0..0x7fff).map(|n| format!("name{n} : ;\n")).collect();
    assert_eq!(error(&text), "p.conf:32767:1: no P_Key is left for this partition: `name32766 :`");
    let enough: String = text.lines().take(0x7ffe).map(|line| format!("{line}\n")).collect();
    assert_eq!(parsed(&enough).resolve(&fabric(), None).list.len(), 0x7fff);
}

fn membership() -> impl Strategy<Value = Membership> {
    prop_oneof![Just(Membership::Full), Just(Membership::Limited), Just(Membership::Both)]
}

fn flags() -> impl Strategy<Value = GroupFlags> {
    let first = (
        proptest::option::of(1u8..64),
        proptest::option::of(1u8..6),
        proptest::option::of(0u8..16),
        proptest::collection::btree_set(1u8..16, 0..3),
    );
    let second = (
        proptest::option::of(any::<u32>()),
        proptest::option::of(any::<u8>()),
        proptest::option::of(0u32..0x10_0000),
    );
    (first, second).prop_map(|((rate, mtu, sl, scopes), (q_key, traffic_class, flow_label))| GroupFlags {
        rate,
        mtu,
        sl,
        scopes,
        q_key,
        traffic_class,
        flow_label,
    })
}

fn port() -> impl Strategy<Value = PortRule> {
    let who = prop_oneof![
        Just(Who::All),
        Just(Who::AllCas),
        Just(Who::AllSwitches),
        Just(Who::AllRouters),
        Just(Who::SubnetManager),
        (1..=u64::MAX).prop_map(|guid| Who::Port(Guid(guid))),
    ];
    (who, proptest::option::of(membership())).prop_map(|(who, membership)| PortRule { who, membership })
}

fn rule() -> impl Strategy<Value = PartitionRule> {
    let isolation = prop_oneof![
        Just(None),
        Just(Some(Isolation::Phy)),
        Just(Some(Isolation::Vlane)),
        Just(Some(Isolation::Def))
    ];
    let group = (any::<u64>(), any::<u64>(), flags()).prop_map(|(high, low, flags)| Group {
        mgid: Gid { prefix: GidPrefix(high | 0xff << 56), guid: Guid(low) },
        flags,
    });
    let definition = (
        "[A-Za-z_][A-Za-z0-9_ ]{0,8}[A-Za-z0-9_]",
        1u16..0x8000,
        any::<bool>(),
        any::<bool>(),
        flags(),
        proptest::option::of(membership()),
        isolation,
    );
    let body =
        (proptest::collection::vec(port(), 0..5), proptest::collection::vec(group, 0..3), any::<bool>());
    (definition, body).prop_map(
        |((name, pkey, index0, ipoib, flags, defmember, isolation), (ports, groups, named))| PartitionRule {
            name: if named { name } else { String::new() },
            pkey: Some(pkey),
            index0,
            ipoib,
            flags,
            defmember,
            isolation,
            ports,
            groups,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_partitions_file_round_trips(rules in proptest::collection::vec(rule(), 0..4), strict in any::<Option<bool>>()) {
        let mut file = PartitionsFile { rules, strictness: None };
        file.strictness = strict.map(|strict| if strict { Strictness::Strict } else { Strictness::BestEffort });
        // Rules for one P_Key agree on its isolation.
        let mut seen = std::collections::BTreeSet::new();
        file.rules.retain(|rule| seen.insert(rule.pkey));
        let text = file.to_string();
        prop_assert_eq!(PartitionsFile::parse("again", &text), Ok(file));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[ a-z0-9=:;,#\n\"é-]{0,60}") {
        if let Ok(file) = PartitionsFile::parse("any", &text) {
            prop_assert_eq!(PartitionsFile::parse("again", &file.to_string()), Ok(file));
        }
    }
}

#[test]
fn flags_without_effect_are_named() {
    let idle = |text: &str| PartitionsFile::parse("part", text).unwrap().flags_without_effect().join(" ");
    assert_eq!(idle(include_str!("../../../../tests/inputs/part-mail.conf")), "ipoib rate mtu scope mgid");
    assert_eq!(idle(include_str!("../../../../tests/inputs/part-storage.conf")), "ipoib");
    assert_eq!(idle(include_str!("../../../../tests/inputs/part-126-vlans.conf")), "ipoib sl");
    assert_eq!(idle("a=1, defmember=full, isolation=phy : ALL ;\n"), "");
    assert_eq!(idle("a=1, indx0, Q_Key=1, TClass=1, FlowLabel=1 : ALL ;\n"), "indx0 Q_Key TClass FlowLabel");
}

#[test]
fn the_files_of_sites_give_the_keys_that_opensm_gives() {
    let parse = |text: &str| PartitionsFile::parse("part", text);
    let fabric =
        weft_topology::parse("three", include_str!("../../../../tests/inputs/three-hosts.topo")).unwrap();
    let keys = |text: &str| -> Vec<(u16, usize, bool)> {
        let resolved = parse(text).unwrap().resolve(&fabric, None);
        let all_full = |members: &[Member]| members.iter().all(|member| member.full);
        resolved.list.iter().map(|one| (one.pkey, one.members.len(), all_full(&one.members))).collect()
    };
    assert_eq!(
        keys(include_str!("../../../../tests/inputs/part-storage.conf")),
        [(0x7fff, 4, true), (1, 4, true)]
    );
    assert_eq!(
        keys(include_str!("../../../../tests/inputs/part-cas-glued.conf")),
        [(0x7fff, 4, false), (1, 3, true), (2, 3, true)]
    );
    assert_eq!(keys(include_str!("../../../../tests/inputs/part-126-vlans.conf")).len(), 127);
    let error = parse(include_str!("../../../../tests/inputs/part-nocolon.conf")).unwrap_err().to_string();
    assert!(error.starts_with("part:1:1: a partition is defined on one line"), "{error}");
}
