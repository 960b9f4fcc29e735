//! Every fault survives its text, TOML and JSON, and every word of the vocabulary has a fault.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use weft_fault::{BadFault, Damage, Fault, FaultId, Process, Word};

type Named = Fault<String, String>;

/// A name of a node as descriptions are: anything, but the name of no other process.
fn node() -> impl Strategy<Value = String> {
    let text = prop_oneof![".{1,64}", "[ -~]{1,64}", "sm-[0-9]{1,4}", "[\"'\\\\{}=\n ]{1,8}"];
    text.prop_filter("the name of another process", |name| {
        matches!(name.parse::<Process<String>>(), Ok(Process::Agent(_)))
    })
}

fn process() -> impl Strategy<Value = Process<String>> {
    prop_oneof![
        node().prop_map(Process::Agent),
        Just(Process::Sm),
        any::<u8>().prop_map(Process::Standby),
        Just(Process::Pm),
        Just(Process::Hub),
        Just(Process::Ibsim),
    ]
}

fn fault() -> impl Strategy<Value = Named> {
    prop_oneof![
        process().prop_map(Fault::Kill),
        process().prop_map(Fault::Restart),
        ".{0,64}".prop_map(Fault::LinkDown),
        ".{0,64}".prop_map(Fault::LinkUp),
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
    fn damage_and_ids_survive_json(port in any::<u32>(), id in "[A-Za-z0-9_.-]{1,64}") {
        let damage = Damage::Unplugged(port);
        prop_assert_eq!(serde_json::from_str::<Damage<u32>>(&serde_json::to_string(&damage).unwrap()).unwrap(), damage);
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
    ] {
        assert_eq!(fault.to_string(), text);
        assert_eq!(toml::to_string(&fault).unwrap(), toml);
    }
}

#[test]
fn each_word_but_clear_has_its_fault() {
    let words = Word::OF_FAULTS.map(|word| Named::of(word, "x").map(|fault| fault.word()));
    assert_eq!(words, Word::OF_FAULTS.map(Some));
    assert_eq!(Word::OF_FAULTS.into_iter().collect::<BTreeSet<_>>().len(), Word::OF_FAULTS.len());
    assert_eq!(Named::of(Word::Clear, "f1"), None);
    for word in Word::OF_FAULTS {
        assert_eq!(serde_json::to_value(word).unwrap(), word.name());
    }
}

#[test]
fn what_is_no_fault_is_refused() {
    let number = |text: &str| text.parse::<Fault<u32, u32>>();
    assert_eq!(number("kill 7"), Ok(Fault::Kill(Process::Agent(7))));
    let invalid = |word, target: &str| Err(BadFault::Target { word, target: target.to_owned() });
    assert_eq!(number("kill seven"), invalid(Word::Kill, "seven"));
    assert_eq!(number("link-down"), invalid(Word::LinkDown, ""));
    assert_eq!(number("clear f1"), Err(BadFault::Word("clear".to_owned())));
    assert_eq!(number(""), Err(BadFault::Word(String::new())));
    assert!(serde_json::from_str::<Fault<u32, u32>>("{\"kill\":\"seven\"}").is_err());
}
