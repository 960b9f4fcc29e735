//! Tables that somebody saved, as OpenSM's engine of this name takes them.

use super::{Engine, Input, Refusal};
use crate::files::Restored;
use crate::lanes::{LaneMap, ServiceLevels};
use crate::routing::Routing;

pub(crate) const ENGINE: Engine = Engine {
    name: "file",
    about: "saved tables, as OpenSM writes them; they are proved like all others",
    options: &["lfts", "lid_matrix", "sl2vl", "psl"],
    deadlock_free: false,
    run: |input| file(input),
};

fn file(input: &Input<'_>) -> Result<Routing, Refusal> {
    let Some(saved) = &input.options.saved else {
        return Err(Refusal { engine: ENGINE.name, reason: "no saved tables are given".to_owned() });
    };
    let restored = saved.restore(input.fabric, input.lids);
    let id = |at: usize| input.fabric.node(restored.without_table[at]).id.as_str();
    let mut notes = Vec::new();
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
