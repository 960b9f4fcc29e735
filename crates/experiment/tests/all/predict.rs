//! The verifier's predictions for plans, before anything runs.

use std::path::Path;

use weft_experiment::{ExperimentFile, PredictedState, Prediction, RunId, predict};
use weft_machine::Time;
use weft_routing::Cycle;
use weft_topology::LoadError;

fn load(path: &str, from: &str) -> Result<String, LoadError> {
    let beside = Path::new(from).parent().unwrap_or(Path::new("")).join(path);
    std::fs::read_to_string(&beside).map_err(|error| LoadError::new(format!("{}: {error}", beside.display())))
}

/// What is predicted of every run of an experiment, changed here and there.
fn predicted(name: &str, changes: &[(&str, &str)]) -> Vec<(RunId, Prediction)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(name);
    let mut text = std::fs::read_to_string(&path).expect("the file is there");
    for (from, to) in changes {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        text = text.replace(from, to);
    }
    let file =
        ExperimentFile::parse(&path.display().to_string(), &text).unwrap_or_else(|error| panic!("{error}"));
    let of = |run: RunId| {
        let plan = file.plan(&run, &mut load).unwrap_or_else(|error| panic!("{error}"));
        (run, predict(&plan))
    };
    file.runs().into_iter().map(of).collect()
}

/// Moments, engines, and the shortest circles of the flows.
fn brief(prediction: &Prediction) -> Vec<(f64, &str, Option<usize>)> {
    let state = |of: &'_ PredictedState| (of.at.as_secs_f64(), of.deadlock());
    let states = prediction.states.iter();
    states.map(|of| (state(of).0, of.routed_by.as_str(), state(of).1)).collect()
}

/// Those who did not hear of more lanes, and those who did.
const LOST: [(f64, &str, Option<usize>); 2] =
    [(0.0, "file, 1 lane", Some(0)), (13.0, "file, 3 lanes", Some(6))];
const CURED: [(f64, &str, Option<usize>); 2] =
    [(0.0, "file, 1 lane", Some(0)), (13.0, "file, 3 lanes", Some(0))];

#[test]
fn a_lost_cable_closes_a_circle_for_those_who_are_not_told() {
    let runs = predicted("lash.toml", &[]);
    let (untold, told) = (&runs[0].1, &runs[1].1);
    assert_eq!(brief(untold), LOST);
    assert_eq!(brief(told), CURED);
    for prediction in [untold, told] {
        assert!(prediction.states.iter().all(|state| state.routing.is_empty()), "{prediction:?}");
        assert_eq!(prediction.states[1].changes, ["cable S2/2 - S5/2 is cut"]);
    }
    assert_eq!(untold.states[1].untold, None);
    // Until they have heard, they are no better off than the others.
    assert_eq!(told.states[1].untold.as_ref(), Some(&untold.states[1].cycles));
    let circle = untold.states[1].cycles[0].to_string();
    assert!(circle.starts_with("on lane 0 6 channels may wait for each other in a circle:"), "{circle}");
    // Clockwise, from S1 on: the flows go this way, and only their acknowledgements the other.
    assert!(circle.contains("S-0200535700000001[2] -> [4]S-0200535700000002"), "{circle}");
    assert_eq!(circle.matches("which want the next").count(), 6, "{circle}");
}

#[test]
fn a_deaf_host_is_one_that_is_not_told() {
    let runs = predicted("lash.toml", &[("ack_timeout = 1", "heed_repath = false\nack_timeout = 1")]);
    for (run, prediction) in &runs {
        assert_eq!(brief(prediction), LOST, "{run}");
        assert_eq!(prediction.states[1].untold, None, "{run}");
    }
}

#[test]
fn a_flow_that_starts_later_uses_the_tables_of_that_time() {
    let later = predicted("lash.toml", &[("[flow.6-3]", "[traffic]\nstart = 20\n\n[flow.6-3]")]);
    for (run, prediction) in &later {
        assert_eq!(brief(prediction), CURED, "{run}");
        assert_eq!(prediction.states[0].streams, 0, "{run}");
    }
}

#[test]
fn a_killed_manager_routes_nothing_until_a_fresh_one_starts() {
    let dead = "[[fault]]\nat = 10\nkill = \"sm\"\n\n[[fault]]\nat = 15\nstart = \"sm\"\n\n[window]";
    for (run, prediction) in &predicted("lash.toml", &[("[window]", dead)]) {
        assert_eq!(brief(prediction), [LOST[0], (15.0, LOST[1].1, Some(6))], "{run}");
        let told =
            ["the subnet manager is killed", "cable S2/2 - S5/2 is cut", "the subnet manager is started"];
        assert_eq!(prediction.states[1].changes, told, "{run}");
    }
}

#[test]
fn a_cable_that_is_back_makes_it_as_it_was() {
    let back = "[[fault]]\nat = 25\nrestore = \"S5/2\"\n\n[window]";
    for (run, prediction) in &predicted("lash.toml", &[("[window]", back)]) {
        assert_eq!(prediction.states.len(), 3, "{run}");
        assert_eq!(brief(prediction)[2], (25.0, "file, 1 lane", Some(0)), "{run}");
        let lanes: Vec<_> = prediction.states.iter().map(|state| state.streams).collect();
        assert_eq!(lanes, [6, 6, 6], "acknowledgements go the opposite flows' ways");
    }
}

#[test]
fn a_host_that_is_dead_sends_nothing() {
    let dead = "[[fault]]\nat = 14\nkill = \"H3\"\n\n[[fault]]\nat = 15\nkill = \"H2\"\n\n[window]";
    let runs = predicted("lash.toml", &[("[window]", dead)]);
    let [.., third, last] = runs[0].1.states.as_slice() else { panic!("four states") };
    assert_eq!((third.streams, third.changes.as_slice()), (4, &["H3 is killed".to_owned()][..]));
    // 5-2, 4-1, 2-5 and 1-4 still close the circle; 4-1 and 1-4 alone do not.
    assert_eq!((third.deadlock(), last.streams, last.deadlock()), (Some(6), 2, Some(0)));
}

#[test]
fn the_textbook_circle_is_min_hops() {
    let runs = predicted("deadlock.toml", &[]);
    assert_eq!(brief(&runs[0].1), [(0.0, "minhop, 1 lane", Some(7))]);
    assert_eq!(runs[0].1.states[0].routing.iter().map(Cycle::len).collect::<Vec<_>>(), [7]);
    assert_eq!(brief(&runs[1].1)[0].2, Some(0));
}

#[test]
fn unasked_flows_stay_on_level_0_or_their_given_level() {
    let runs = predicted("unasked.toml", &[]);
    assert_eq!(brief(&runs[0].1), [(0.0, "lash, 1 lane", Some(0)), (0.5, "lash, 2 lanes", Some(0))]);
    assert_eq!(brief(&runs[1].1)[1].2, Some(6));
    // The routing is not to blame.
    assert!(runs[1].1.states[1].routing.is_empty());
    // All on level 1 by hand is no better.
    let given = ["H6", "H5", "H4", "H1", "H2", "H3"]
        .map(|host| (format!("from = \"{host}\""), format!("sl = 1\nfrom = \"{host}\"")));
    let given = given.iter().map(|(from, to)| (from.as_str(), to.as_str()));
    let all_ask = ("[\"asked\", \"unasked\"]", "[\"asked\"]");
    let only = ("when = { traffic.paths = \"unasked\" }\nvalue = 6", "value = 6");
    let other = ("when = { traffic.paths = \"unasked\" }\nat_most", "at_most");
    let changes: Vec<(&str, &str)> = given.chain([all_ask, only, other]).collect();
    let runs = predicted("unasked.toml", &changes);
    let lanes: Vec<_> = runs[0].1.states[1].cycles.iter().map(Cycle::lane).collect();
    assert_eq!(lanes, [Some(1)]);
}

#[test]
fn a_state_is_that_of_a_moment() {
    let runs = predicted("lash.toml", &[]);
    let at = |seconds: f64| runs[0].1.at(Time::from_nanos((seconds * 1e9) as u64)).map(|state| state.at);
    assert_eq!([at(0.0), at(12.9), at(13.0), at(99.0)], [0, 0, 13, 13].map(|at| Some(Time::from_secs(at))));
}

#[test]
fn a_state_that_no_engine_routes_gives_its_reason() {
    let chain = ("chain = \"lash,no_fallback\"", "lanes = 1\nchain = \"lash,no_fallback\"");
    let runs = predicted("unasked.toml", &[chain]);
    let states = &runs[0].1.states;
    assert_eq!((states[0].deadlock(), states[1].deadlock()), (Some(0), None));
    let why = states[1].refused.as_deref().expect("one lane is not enough");
    assert!(why.contains("close a cycle on every lane"), "{why}");
}
