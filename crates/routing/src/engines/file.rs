//! Tables that somebody saved, as OpenSM's engine of this name takes them.

use weft_vocabulary::routing::SAVED_TABLES;

use super::{Engine, Input};
use crate::files::Restored;
use crate::lanes::{LaneMap, ServiceLevels};
use crate::routing::Routing;

pub(crate) const ENGINE: Engine = Engine {
    name: SAVED_TABLES,
    about: "saved tables, as OpenSM writes them; they are proved like all others",
    options: &["lfts", "lid_matrix", "sl2vl", "psl"],
    deadlock_free: false,
    run: |input| file(input),
};

fn file(input: &Input<'_>) -> Result<Routing, String> {
    let (all, mut nth) = (input.options.saved.len(), 0);
    let restored = match input.options.saved.as_slice() {
        [] => return Err("no saved tables are given".to_owned()),
        // What does not fit here is said in notes, and the proof refuses what hosts would miss.
        [saved] => saved.restore(input.fabric, input.lids),
        several => {
            let mut restored = several.iter().map(|saved| saved.restore(input.fabric, input.lids));
            let found = restored.find(|restored| {
                nth += 1;
                restored.unusable == 0
            });
            found.ok_or_else(|| format!("none of {all} saved routings fits the fabric"))?
        }
    };
    let id = |at: usize| input.fabric.node(restored.without_table[at]).id.as_str();
    let mut notes = Vec::new();
    if all > 1 {
        notes.push(format!("saved routing {nth} of {all} fits the fabric"));
    }
    if !restored.without_table.is_empty() {
        notes.push(format!("{} switches have no saved table, {} first", restored.without_table.len(), id(0)));
    }
    if restored.moved > 0 {
        notes.push(format!(
            "{} LIDs were others when the tables were saved; their ports are the same",
            restored.moved
        ));
    }
    if restored.longer > 0 {
        notes.push(format!("{} entries lead by more hops than the least that were saved", restored.longer));
    }
    let Restored { routes, levels, lanes, .. } = restored;
    let mut routing = Routing::on_one_lane(ENGINE.name, routes);
    routing.report.lanes = lane_count(&levels, &lanes);
    routing.report.notes = notes;
    (routing.levels, routing.lanes) = (levels, lanes);
    Ok(routing)
}

/// How many lanes, counted from 0, the levels in use take anywhere.
fn lane_count(levels: &ServiceLevels, lanes: &LaneMap) -> u8 {
    let rows = lanes.exceptions.values().chain([&lanes.everywhere]);
    let used = levels.used();
    let lanes = rows.flat_map(|row| row.iter().enumerate()).filter(|(level, _)| used >> level & 1 == 1);
    let data = lanes.map(|(_, lane)| lane.0).filter(|lane| *lane < 15);
    data.max().map_or(1, |highest| highest + 1)
}
