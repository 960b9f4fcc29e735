//! Every fault survives its text, TOML and JSON, and every word of the vocabulary has a fault.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use weft_fault::{
    BadFault, BadIdentity, Damage, Fault, FaultId, Impaired, Impairment, Kind, Lag, Nodes, Presented,
    Process, Rate, Share, Signalling, Way, Width, Word,
};

type Named = Fault<String, String>;

/// A name of a node as descriptions are: anything, but the name of no other process.
fn node() -> impl Strategy<Value = String> {
    let text = prop_oneof![".{1,64}", "[ -~]{1,64}", "(sm|pm|vmm|opensm)-[0-9]{1,4}", "[\"'\\\\{}=\n ]{1,8}"];
    text.prop_filter("the name of another process", |name| {
        matches!(name.parse::<Process<String>>(), Ok(Process::Agent(_)))
    })
}

/// Names without a comma.
fn nodes() -> impl Strategy<Value = Nodes<String>> {
    proptest::collection::vec("[^,]{1,16}", 1..4).prop_map(Nodes)
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Pm), Just(Kind::Vmm), Just(Kind::Opensm)]
}

fn process() -> impl Strategy<Value = Process<String>> {
    prop_oneof![
        node().prop_map(Process::Agent),
        Just(Process::Sm),
        any::<u8>().prop_map(Process::Standby),
        Just(Process::Pm),
        Just(Process::Hub),
        Just(Process::Ibsim),
        (kind(), any::<u8>()).prop_map(|(kind, number)| Process::Further(kind, number)),
    ]
}

fn impairment() -> impl Strategy<Value = Impairment> {
    let share = || (1..=1_000_000_u32).prop_map(|ppm| Share::try_from(ppm).unwrap());
    let lag = || {
        let unit = prop_oneof![Just(1), Just(1_000), Just(1_000_000)];
        (1..=10_000_u64, unit).prop_map(|(count, unit)| Lag::try_from(count * unit).unwrap())
    };
    prop_oneof![
        share().prop_map(Impairment::Loss),
        lag().prop_map(Impairment::Delay),
        lag().prop_map(Impairment::Jitter),
        (share(), lag()).prop_map(|(share, by)| Impairment::Reorder { share, by }),
        share().prop_map(Impairment::Duplicate),
        (1..=1_000_000_000_000_u64).prop_map(|rate| Impairment::BitErrors(Rate::try_from(rate).unwrap())),
        (lag(), lag())
            .prop_filter("down for less than the whole time", |(every, down)| down < every)
            .prop_map(|(every, down)| Impairment::Flap { every, down }),
        prop::sample::select(Width::ALL.to_vec()).prop_map(Impairment::Width),
        prop::sample::select(Signalling::ALL.to_vec()).prop_map(Impairment::Speed),
        share().prop_map(Impairment::SlowDrain),
    ]
}

fn impaired() -> impl Strategy<Value = Impaired<String>> {
    let way = prop_oneof![Just(Way::Both), Just(Way::In), Just(Way::Out)];
    let port = prop_oneof![".{0,64}", "(in|both|seed 3|at| at x| ){0,4}"];
    (port, way, impairment(), any::<u32>()).prop_map(|(at, way, how, seed)| Impaired { at, way, how, seed })
}

fn fault() -> impl Strategy<Value = Named> {
    prop_oneof![
        process().prop_map(Fault::Kill),
        process().prop_map(Fault::Restart),
        ".{0,64}".prop_map(Fault::LinkDown),
        ".{0,64}".prop_map(Fault::LinkUp),
        process().prop_map(Fault::Freeze),
        process().prop_map(Fault::Thaw),
        nodes().prop_map(Fault::Partition),
        nodes().prop_map(Fault::Heal),
        (node(), prop::sample::select(BadIdentity::ALL.to_vec()))
            .prop_map(|(node, identity)| Fault::BadIdentity(Presented { node, identity })),
        node().prop_map(Fault::GoodIdentity),
        impaired().prop_map(Fault::Impair),
        impaired().prop_map(Fault::Clear),
    ]
}

proptest! {
    #[test]
    fn every_fault_survives_its_text(fault in fault()) {
        prop_assert_eq!(fault.to_string().parse::<Named>(), Ok(fault.clone()));
        let target = fault.to_string().split_once(' ').unwrap().1.to_owned();
        prop_assert_eq!(Fault::of(fault.word(), &target), Some(fault));
    }

    #[test]
    fn every_fault_survives_toml_and_json(fault in fault()) {
        prop_assert_eq!(&toml::from_str::<Named>(&toml::to_string(&fault).unwrap()).unwrap(), &fault);
        prop_assert_eq!(&serde_json::from_str::<Named>(&serde_json::to_string(&fault).unwrap()).unwrap(), &fault);
    }

    #[test]
    fn names_may_be_changed_and_changed_back(fault in fault()) {
        let longer = fault.clone().map(|node| (node, 1), |port| (port, 2));
        prop_assert_eq!(longer.word(), fault.word());
        prop_assert_eq!(longer.map(|(node, _)| node, |(port, _)| port), fault);
    }

    #[test]
    fn no_text_is_too_wrong(text in ".{0,64}") {
        if let Ok(fault) = text.parse::<Named>() {
            prop_assert_eq!(fault.to_string(), text);
        }
    }

    #[test]
    fn damage_and_ids_survive_json(port in any::<u32>(), how in impairment(), id in "[A-Za-z0-9_.-]{1,64}") {
        let impaired = Damage::Impaired { at: port, how, seed: port };
        let stranger = Damage::BadIdentity { at: port, identity: BadIdentity::Foreign };
        for damage in [Damage::Unplugged(port), Damage::Parted(port), Damage::Frozen(port), stranger, impaired] {
            prop_assert_eq!(serde_json::from_str::<Damage<u32>>(&serde_json::to_string(&damage).unwrap()).unwrap(), damage);
        }
        let id: FaultId = id.parse().unwrap();
        prop_assert_eq!(&serde_json::from_str::<FaultId>(&serde_json::to_string(&id).unwrap()).unwrap(), &id);
    }
}

#[test]
fn faults_look_like_this() {
    let kill = |process| Named::Kill(process);
    for (text, toml, fault) in [
        ("kill sm", "kill = \"sm\"\n", kill(Process::Sm)),
        ("kill sm-2", "kill = \"sm-2\"\n", kill(Process::Standby(0))),
        ("kill sm-257", "kill = \"sm-257\"\n", kill(Process::Standby(255))),
        ("kill sm-258", "kill = \"sm-258\"\n", kill(Process::Agent("sm-258".into()))),
        ("kill sm-02", "kill = \"sm-02\"\n", kill(Process::Agent("sm-02".into()))),
        ("kill sm-1", "kill = \"sm-1\"\n", kill(Process::Agent("sm-1".into()))),
        ("restart pm", "restart = \"pm\"\n", Fault::Restart(Process::Pm)),
        ("restart hub", "restart = \"hub\"\n", Fault::Restart(Process::Hub)),
        ("kill ibsim", "kill = \"ibsim\"\n", kill(Process::Ibsim)),
        ("kill the leaf", "kill = \"the leaf\"\n", kill(Process::Agent("the leaf".into()))),
        ("link-down S 1:4", "link-down = \"S 1:4\"\n", Fault::LinkDown("S 1:4".into())),
        ("link-up S/1", "link-up = \"S/1\"\n", Fault::LinkUp("S/1".into())),
        ("freeze S 1", "freeze = \"S 1\"\n", Fault::Freeze(Process::Agent("S 1".into()))),
        ("freeze hub", "freeze = \"hub\"\n", Fault::Freeze(Process::Hub)),
        ("thaw sm-2", "thaw = \"sm-2\"\n", Fault::Thaw(Process::Standby(0))),
        ("kill opensm", "kill = \"opensm\"\n", kill(Process::Opensm)),
        ("kill opensm-2", "kill = \"opensm-2\"\n", kill(Process::Further(Kind::Opensm, 0))),
        ("restart pm-3", "restart = \"pm-3\"\n", Fault::Restart(Process::Further(Kind::Pm, 1))),
        ("kill vmm-257", "kill = \"vmm-257\"\n", kill(Process::Further(Kind::Vmm, 255))),
        ("kill pm-1", "kill = \"pm-1\"\n", kill(Process::Agent("pm-1".into()))),
        (
            "partition S 1,S-2",
            "partition = [\"S 1\", \"S-2\"]\n",
            Fault::Partition(Nodes(vec!["S 1".into(), "S-2".into()])),
        ),
        (
            "bad-identity expired S 1",
            "[bad-identity]\nnode = \"S 1\"\nas = \"expired\"\n",
            Fault::BadIdentity(Presented { node: "S 1".into(), identity: BadIdentity::Expired }),
        ),
        (
            "bit-errors 1e-9 both seed 7 at S 1:4",
            "[impair]\nat = \"S 1:4\"\nway = \"both\"\nseed = 7\n\n[impair.how]\nbit-errors = 1000000\n",
            Fault::Impair(Impaired {
                at: "S 1:4".into(),
                way: Way::Both,
                how: Impairment::of(Word::BitErrors, "1e-9").unwrap(),
                seed: 7,
            }),
        ),
    ] {
        assert_eq!(fault.to_string(), text);
        assert_eq!(toml::to_string(&fault).unwrap(), toml);
    }
}

#[test]
fn each_way_impairs_its_ends_by_chances_of_their_own() {
    let ends = |way| {
        let how = Impairment::of(Word::Loss, "5%").unwrap();
        let damage = Impaired { at: 1, way, how, seed: u32::MAX }.damage(2);
        damage.map(move |damage| match damage {
            Damage::Impaired { at, how: same, seed } if same == how => (at, seed),
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(ends(Way::Both).collect::<Vec<_>>(), [(1, u32::MAX), (2, 0)]);
    assert_eq!(ends(Way::In).collect::<Vec<_>>(), [(1, u32::MAX)]);
    assert_eq!(ends(Way::Out).collect::<Vec<_>>(), [(2, 0)]);
    for way in Way::ALL {
        let how = Impairment::of(Word::Width, "1x").unwrap();
        let damage: Vec<_> = Impaired { at: 1, way, how, seed: 7 }.damage(2).collect();
        assert_eq!(damage, [Damage::Impaired { at: 1, how, seed: 7 }], "a port's own fault has no direction");
    }
}

#[test]
fn only_lasting_faults_have_an_end() {
    let ends = |text: &str| text.parse::<Named>().unwrap().end().map(|end| end.to_string());
    for (text, end) in [
        ("link-down S:1", Some("link-up S:1")),
        ("freeze S", Some("thaw S")),
        ("partition A,B", Some("heal A,B")),
        ("loss 5% in seed 7 at S:1", Some("clear loss 5% in seed 7 at S:1")),
        ("kill S", Some("restart S")),
        ("restart S", None),
        ("thaw S", None),
    ] {
        assert_eq!(ends(text).as_deref(), end, "{text}");
    }
}

#[test]
fn each_word_but_clear_has_its_fault() {
    let target = |word| if word == Word::BadIdentity { "foreign x" } else { "x" };
    let words = Word::OF_FAULTS.map(|word| Named::of(word, target(word)).map(|fault| fault.word()));
    assert_eq!(words, Word::OF_FAULTS.map(Some));
    assert_eq!(Word::OF_FAULTS.into_iter().collect::<BTreeSet<_>>().len(), Word::OF_FAULTS.len());
    assert_eq!(Named::of(Word::Clear, "f1"), None);
    for word in Word::OF_IMPAIRMENTS {
        let made = ["5%", "2ms", "5% 2ms", "1e-9", "2s 10ms", "1x", "sdr"]
            .iter()
            .filter_map(|amounts| Impairment::of(word, amounts));
        assert_eq!(made.map(|how| how.word()).collect::<Vec<_>>(), [word], "one way to say it");
    }
    for word in Word::OF_FAULTS.into_iter().chain(Word::OF_IMPAIRMENTS).chain([Word::Clear]) {
        assert_eq!(serde_json::to_value(word).unwrap(), word.name());
    }
}

#[test]
fn invalid_faults_are_refused() {
    let number = |text: &str| text.parse::<Fault<u32, u32>>();
    assert_eq!(number("kill 7"), Ok(Fault::Kill(Process::Agent(7))));
    let invalid = |word, target: &str| Err(BadFault::Target { word, target: target.to_owned() });
    assert_eq!(number("kill seven"), invalid(Word::Kill, "seven"));
    assert_eq!(number("link-down"), invalid(Word::LinkDown, ""));
    assert_eq!(number("clear f1"), invalid(Word::Clear, "f1"));
    assert_eq!(number("loss 5% sideways seed 1 at 7"), invalid(Word::Loss, "5% sideways seed 1 at 7"));
    assert_eq!(number("loss 5% in seed 01 at 7"), invalid(Word::Loss, "5% in seed 01 at 7"));
    assert_eq!(number("flap 1s 1s both seed 1 at 7"), invalid(Word::Flap, "1s 1s both seed 1 at 7"));
    assert_eq!(number("width 3x both seed 1 at 7"), invalid(Word::Width, "3x both seed 1 at 7"));
    assert_eq!(number("bad-identity 7"), invalid(Word::BadIdentity, "7"));
    assert_eq!(number("bad-identity old 7"), invalid(Word::BadIdentity, "old 7"));
    assert_eq!(number("partition 7,,8"), invalid(Word::Partition, "7,,8"));
    assert_eq!(number("break 7"), Err(BadFault::Word("break".to_owned())));
    assert_eq!(number(""), Err(BadFault::Word(String::new())));
    assert!(serde_json::from_str::<Fault<u32, u32>>("{\"kill\":\"seven\"}").is_err());
}
