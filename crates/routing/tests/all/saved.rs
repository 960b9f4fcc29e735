//! The engine `file`: what was saved comes back, follows ports whose LIDs have changed, and is proved.

use weft_routing::files::{Dump, SavedRouting};
use weft_routing::{Chain, EngineOptions, Lids, Routing};
use weft_topology::generate::{GenerateOptions, ring};
use weft_topology::{Fabric, PortRef};
use weft_wire::{Lid, ServiceLevel};

fn text(write: impl FnOnce(&mut dyn std::fmt::Write) -> std::fmt::Result) -> String {
    let mut text = String::new();
    write(&mut text).unwrap();
    text
}

/// A ring that LASH routes on two lanes, and its files.
fn saved(fabric: &Fabric, lids: &Lids) -> (Routing, SavedRouting) {
    let lash: Chain = "lash,no_fallback".parse().unwrap();
    let routing = lash.route(fabric, lids, &EngineOptions::default()).unwrap();
    let dump = Dump::new(fabric, lids, &routing);
    let saved = SavedRouting::parse_lfts("lfts", &text(|out| dump.lfts(out)))
        .and_then(|saved| saved.with_lid_matrix("matrix", &text(|out| dump.lid_matrix(out))))
        .and_then(|saved| saved.with_sl2vl("sl2vl", &text(|out| dump.sl2vl(out))))
        .and_then(|saved| saved.with_psl("psl", &text(|out| dump.psl(out))));
    (routing, saved.unwrap())
}

fn by_file(fabric: &Fabric, lids: &Lids, saved: SavedRouting) -> Routing {
    let options = EngineOptions { saved: vec![saved], ..EngineOptions::default() };
    "file,no_fallback".parse::<Chain>().unwrap().route(fabric, lids, &options).unwrap()
}

#[test]
fn a_saved_routing_is_restored() {
    let fabric = ring(6, 2, &GenerateOptions::default()).unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let (routing, saved) = saved(&fabric, &lids);
    assert_eq!(routing.report.lanes, 2);
    // The manager keeps its options in a file.
    let kept = serde_json::to_string(&saved).unwrap();
    let saved: SavedRouting = serde_json::from_str(&kept).unwrap();
    let again = by_file(&fabric, &lids, saved);
    assert_eq!((&again.routes, &again.lanes), (&routing.routes, &routing.lanes));
    assert_eq!(
        (again.report.lanes, &again.report.notes[..], &again.report.unsatisfied[..]),
        (2, &[][..], &[][..])
    );
    for (a, b) in lids.iter().flat_map(|a| lids.iter().map(move |b| (a.base, b.base))) {
        assert_eq!(again.levels.of(a, b), routing.levels.of(a, b), "{a} to {b}");
    }
}

#[test]
fn routes_follow_ports_to_their_new_lids() {
    let fabric = ring(6, 2, &GenerateOptions::default()).unwrap();
    let before = Lids::in_guid_order(&fabric, 0).unwrap();
    let (routing, saved) = saved(&fabric, &before);
    let mut after = Lids::new();
    for entry in before.iter() {
        after.insert(entry.port, Lid(100 - entry.base.0), 0).unwrap();
    }
    let again = by_file(&fabric, &after, saved);
    assert!(again.report.unsatisfied.is_empty(), "{:?}", again.report);
    assert!(
        again.report.notes[0].starts_with("18 LIDs were others when the tables were saved"),
        "{:?}",
        again.report
    );
    for (switch, _) in fabric.switches() {
        for entry in before.iter() {
            let (old, new) = (entry.base, Lid(100 - entry.base.0));
            assert_eq!(again.routes.port(switch, new), routing.routes.port(switch, old));
        }
    }
    let level = |a: u16, b: u16| again.levels.of(Lid(100 - a), Lid(100 - b));
    assert!((1..=18).any(|a| (1..=18).any(|b| level(a, b) != ServiceLevel(0))));
    assert!((1..=18).all(|a| (1..=18).all(|b| level(a, b) == routing.levels.of(Lid(a), Lid(b)))));
}

#[test]
fn a_saved_routing_that_no_longer_works_is_skipped() {
    let fabric = ring(6, 1, &GenerateOptions::default()).unwrap();
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let (_, saved) = saved(&fabric, &lids);
    let cut = PortRef::new(fabric.find("switch-0").unwrap(), weft_wire::PortNum(2));
    let cables = fabric.cables().filter(|cable| cable.a != cut && cable.b != cut).collect::<Vec<_>>();
    let broken = fabric.part(|_| true, cables).unwrap();
    let options = EngineOptions { saved: vec![saved], ..EngineOptions::default() };
    let routing = "file".parse::<Chain>().unwrap().route(&broken, &lids, &options).unwrap();
    assert_ne!(routing.report.engine, "file");
    assert!(routing.report.fallbacks[0].starts_with("file: its tables do not bring every packet home: "));
    let none = "file,no_fallback".parse::<Chain>().unwrap();
    let refusals = none.route(&fabric, &lids, &EngineOptions::default()).unwrap_err();
    assert_eq!(refusals[0].to_string(), "file: no saved tables are given");
}

#[test]
fn of_several_the_first_that_fits_is_taken() {
    let whole = ring(6, 1, &GenerateOptions::default()).unwrap();
    let lids = Lids::in_guid_order(&whole, 0).unwrap();
    let cut = PortRef::new(whole.find("switch-0").unwrap(), weft_wire::PortNum(2));
    let without = |gone: &dyn Fn(PortRef) -> bool| {
        let cables = whole.cables().filter(|cable| !gone(cable.a) && !gone(cable.b)).collect::<Vec<_>>();
        whole.part(|_| true, cables).unwrap()
    };
    let broken = without(&|port| port == cut);
    let both = [saved(&whole, &lids).1, saved(&broken, &lids).1];
    let options = EngineOptions { saved: both.to_vec(), ..EngineOptions::default() };
    let file: Chain = "file,no_fallback".parse().unwrap();
    for (fabric, note) in [(&whole, "saved routing 1 of 2"), (&broken, "saved routing 2 of 2")] {
        let routing = file.route(fabric, &lids, &options).unwrap();
        assert_eq!(routing.report.notes, [format!("{note} fits the fabric")]);
    }
    let apart = without(&|port| port.node == cut.node && port.port.0 < 4);
    let refusals = file.route(&apart, &lids, &options).unwrap_err();
    assert_eq!(refusals[0].to_string(), "file: none of 2 saved routings fits the fabric");
}

#[test]
fn files_that_make_no_sense_are_refused_by_line() {
    let lfts = |text: &str| SavedRouting::parse_lfts("lfts", text).unwrap_err().to_string();
    assert_eq!(lfts(""), "lfts:1:1: expected the table of a switch");
    assert_eq!(lfts("0x0001 001\n"), "lfts:1:1: no heading says whose entry this is: `0x0001`");
    let head = "Unicast lids [0-2] of switch Lid 2 guid 0x2 ('a'):\n";
    assert_eq!(lfts(&format!("{head}0x0001 300\n")), "lfts:2:8: a port must be 0 to 255: `300`");
    assert!(lfts(&format!("{head}{head}")).contains("for the second time"));
    let whole = SavedRouting::parse_lfts("lfts", &format!("{head}0x0001 001\n")).unwrap();
    let error = whole.with_sl2vl("sl2vl", "1 2 : 0\n").unwrap_err();
    assert_eq!(error.to_string(), "sl2vl:1:1: no heading says whose entry this is: `1`");
}
