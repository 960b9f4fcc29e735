//! The verifier's prediction, beside the result.

use weft_routing::Cycle;

use super::table::{Table, escaped};
use crate::number::number;
use crate::{PredictedState, Prediction};

/// A table of states, and every circle as the verifier writes it.
pub(super) fn section(prediction: &Prediction) -> String {
    if prediction.states.is_empty() {
        return String::new();
    }
    let mut table = Table::headed(
        "from | state | routed by | all pairs, by path records | the flows, before hosts are told | \
         the flows, on the lanes that hosts use",
    );
    let mut circles = String::new();
    for state in &prediction.states {
        let from = number(state.at.as_secs_f64(), "s");
        let changes = state.changes.join(", ");
        let changes = if changes.is_empty() { "the whole fabric".to_owned() } else { changes };
        table.row(&row(state, from.clone(), changes));
        if let Some(why) = &state.refused {
            circles += &format!("From {from} on, nothing is routed: {}\n\n", escaped(why));
        }
        circles += &shown(&format!("From {from} on, all pairs"), &state.routing);
        circles += &shown(
            &format!("From {from} on, the flows before hosts are told"),
            state.untold.as_deref().unwrap_or_default(),
        );
        circles += &shown(&format!("From {from} on, the flows"), &state.cycles);
    }
    format!("### What the verifier predicts\n\n{}{circles}", table.finish())
}

fn row(state: &PredictedState, from: String, changes: String) -> [String; 6] {
    let refused = state.refused.is_some();
    let said = |cycles: &[Cycle]| if refused { "–".to_owned() } else { verdict(cycles) };
    let flows = match state.streams {
        0 if !refused => "no flows".to_owned(),
        _ => said(&state.cycles),
    };
    let untold = state.untold.as_deref().map(verdict).unwrap_or_default();
    [from, changes, state.routed_by.clone(), said(&state.routing), untold, flows]
}

/// `DEADLOCK POSSIBLE: 6 channels on lane 0`
fn verdict(cycles: &[Cycle]) -> String {
    let circle = |cycle: &Cycle| {
        let lane = cycle.lane().map_or("several lanes".to_owned(), |lane| format!("lane {lane}"));
        format!("{} channels on {lane}", cycle.len())
    };
    match cycles {
        [] => "free of deadlock".to_owned(),
        _ => format!("DEADLOCK POSSIBLE: {}", cycles.iter().map(circle).collect::<Vec<_>>().join(", ")),
    }
}

/// Circles in the verifier's own text, indented so that Markdown leaves it alone.
fn shown(who: &str, cycles: &[Cycle]) -> String {
    let block = |cycle: &Cycle| {
        let text = cycle.to_string();
        let lines = text.lines().map(|line| format!("    {line}\n")).collect::<String>();
        format!("{who}:\n\n{lines}\n")
    };
    cycles.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use weft_machine::Time;
    use weft_routing::{Channel, Pair};
    use weft_wire::{Lid, PortNum};

    use super::*;

    fn circle() -> Cycle {
        let channel = |from: &str, to: &str, source, destination| Channel {
            from: from.to_owned(),
            exit: PortNum(2),
            to: to.to_owned(),
            entry: PortNum(3),
            lane: 1,
            pair: Some(Pair { source: Lid(source), destination: Lid(destination) }),
        };
        Cycle { channels: vec![channel("S-a", "S-b", 4, 5), channel("S-b", "S-a", 6, 7)] }
    }

    #[test]
    fn states_are_rows_and_circles_are_written_as_the_verifier_does() {
        let whole = PredictedState { routed_by: "lash, 1 lane".to_owned(), ..PredictedState::default() };
        let cut = PredictedState {
            at: Time::from_millis(12_500),
            changes: vec!["cable A/4 - R/2 is cut".to_owned()],
            routed_by: "lash, 2 lanes".to_owned(),
            streams: 4,
            untold: Some(Vec::new()),
            cycles: vec![circle()],
            ..PredictedState::default()
        };
        let refused = PredictedState {
            at: Time::from_secs(20),
            changes: vec!["R is killed".to_owned()],
            refused: Some("lash: too few lanes".to_owned()),
            ..PredictedState::default()
        };
        assert_eq!([cut.deadlock(), refused.deadlock()], [Some(2), None]);
        let text = section(&Prediction { states: vec![whole, cut, refused] });
        for part in [
            "| 0 s | the whole fabric | lash, 1 lane | free of deadlock |  | no flows |\n",
            "| 12.5 s | cable A/4 - R/2 is cut | lash, 2 lanes | free of deadlock | free of deadlock | DEADLOCK POSSIBLE: 2 channels on lane 1 |\n",
            "| 20 s | R is killed |  | – |  | – |\n",
            "\nFrom 12.5 s on, the flows:\n\n    on lane 1 2 channels may wait for each other in a circle:\n        S-a[2] -> [3]S-b, held by packets from LID 4 to LID 5, which want the next\n",
            "\nFrom 20 s on, nothing is routed: lash: too few lanes\n",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert_eq!(text.matches("may wait for each other").count(), 1);
        assert_eq!(section(&Prediction::default()), "");
    }
}
