//! Experiments whose victims must not be taken for contributors.

use std::collections::BTreeSet;

use crate::run::{Run, repository};

/// The managers' host is the victim's receiver, which takes no more than the victim brings, so that it is found to be a hot spot as well.
/// After the cut the victim is silent for its acknowledgement timeout. It gets no notice, and keeps to the fast lane.
#[test]
fn a_victim_is_not_captured_by_its_own_receiver() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(repository().join("experiments/dftree-2.toml")).unwrap();
    let topology = repository().join("topologies/dftree-1.topo");
    let text = text.replace("../topologies/dftree-1.topo", topology.to_str().unwrap());
    let text = text.replace("at = \"host-6\"", "at = \"host-4\"");
    for dilation in [100, 150] {
        let file = folder.path().join("dftree.toml");
        std::fs::write(&file, text.replace("[rates]\n", &format!("[rates]\ndilation = {dilation}\n")))
            .unwrap();
        let run = Run::of(&file, &["--virtual", "--only", "pm.mode=on"]);
        let report = run.json("dftree");
        let (windows, run) = (&report["runs"][0]["windows"], &report["runs"][0]);
        let cut = windows.as_array().unwrap().iter().position(|window| window["name"] == "cut").unwrap();
        let flow = |name: &str| {
            let flows = run["flows"].as_array().unwrap();
            flows.iter().find(|flow| flow["name"] == name).unwrap().clone()
        };
        let marks = run["marks"].as_array().unwrap();
        assert!(
            marks.iter().any(|mark| mark["text"] == "hot spot: host-4"),
            "else it shows nothing: {marks:?}"
        );
        assert_eq!(
            (&flow("2-4")["moves_total"], &flow("1-5")["moves_total"]),
            (&0.into(), &2.into()),
            "{dilation}"
        );
        let gbps = flow("2-4")["gbps"][cut].as_f64().unwrap();
        // 16 - 12.9 / 4, what the contributor leaves of link 1.
        assert!((gbps / 12.775 - 1.0).abs() < 0.1, "{gbps} Gb/s at {dilation}");
    }
}

/// Algorithm 1 exactly as the paper prints it: its threshold of 0.04 % of the time takes the victim's receiver for a hot spot where the
/// victim is as fast as its host, and every flow has the rate that it has with weft's rules.
#[test]
fn the_printed_detector_declares_a_victims_receiver_too() {
    let folder = tempfile::tempdir().unwrap();
    let topologies = repository().join("topologies");
    for (name, hot) in [
        ("dftree-1", &["host-3", "host-5"][..]),
        ("dftree-2", &["host-5"]),
        ("dftree-3", &["host-7", "host-9"]),
        ("dftree-4", &["host-11", "host-9"]),
    ] {
        let text = std::fs::read_to_string(repository().join(format!("experiments/{name}.toml"))).unwrap();
        let text = text.replace("../topologies", topologies.to_str().unwrap());
        assert!(text.contains("\n[pm]\n"));
        let file = folder.path().join(format!("{name}.toml"));
        std::fs::write(&file, text.replace("\n[pm]\n", "\n[pm]\ndetector = \"printed\"\n")).unwrap();
        let run = Run::of(&file, &["--virtual", "--only", "pm.mode=on"]);
        let report = run.json(name);
        let marks = report["runs"][0]["marks"].as_array().unwrap().iter();
        let found: BTreeSet<&str> =
            marks.filter_map(|mark| mark["text"].as_str()?.strip_prefix("hot spot: ")).collect();
        assert_eq!(found, hot.iter().copied().collect(), "{name}");
        let wrong: Vec<String> =
            run.said().lines().filter(|line| line.starts_with("not as")).map(str::to_owned).collect();
        assert!(wrong.iter().all(|line| line.contains("hot spots beside")), "{name}: {wrong:?}");
    }
}
