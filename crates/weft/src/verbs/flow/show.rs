//! `weft flow show`: a flow, its times, and its path cable by cable.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_control::flow::FlowLine;
use weft_control::traffic::{Latency, Work};
use weft_lab::flows::{self, FlowHop, FlowPath, Units};
use weft_lab::view::Lab;

use super::{size, span};
use crate::output::{Table, or_dash, print, print_json};

/// How long a cable is looked at.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// Flows that share a cable, by name; further ones are a number.
const NAMED_MAX: usize = 5;

#[derive(Serialize)]
struct Shown {
    flow: FlowLine,
    path: FlowPath,
}

pub(super) fn run(folder: &LabFolder, name: &str, json: bool) -> anyhow::Result<()> {
    let (flows, units) = flows::list_in_units(folder)?;
    let Some(flow) = flows.iter().find(|flow| flow.name == name) else {
        let failure = Failure::bad_input(format!("no flow is called `{}`", name.escape_debug()));
        return Err(failure.hint("`weft flow ls` lists them"));
    };
    let lab = Lab::load_live(folder)?;
    let path = flows::paths(&lab, &flows, |flow| flow.name == name, LOOK)?.pop();
    let flow = flow.clone();
    let path = path.unwrap_or_else(|| FlowPath { flow: flow.name.clone(), ..FlowPath::default() });
    let shown = Shown { flow, path };
    if json { print_json(&shown) } else { print(&shown.to_text(units)) }
}

impl Shown {
    fn to_text(&self, units: Units) -> String {
        let Self { flow, path } = self;
        let (sender, receiver) = (flow.sender.as_ref(), flow.receiver.as_ref());
        let mut text = format!(
            "flow {}: {} -> {}, {}{}\n",
            flow.name,
            flow.from.name,
            flow.to.name,
            flow.state.name(),
            flow.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}")),
        );
        let level = or_dash(sender.and_then(|sender| sender.service_level));
        let _ = writeln!(
            text,
            "{:.3} {}, {} delivered, {} packets repeated, SL {level}, LID {}",
            units.throughput(flow),
            units.of_rates(),
            size(receiver.map_or(0, |report| report.bytes)),
            sender.map_or(0, |report| report.repeated),
            or_dash(path.lid),
        );
        let what = if flow.shape.work == Work::PingPong { "round trips" } else { "messages" };
        if let Some(times) = times(flow) {
            let of = |ns| span(units.micros(ns));
            let Latency { count, min_ns, p50_ns, p99_ns, max_ns, .. } = times;
            let _ = writeln!(
                text,
                "{count} {what}: shortest {}, half within {}, 99 of 100 within {}, longest {}",
                of(min_ns),
                of(p50_ns),
                of(p99_ns),
                of(max_ns)
            );
        }
        if let Some(pause_ns) = receiver.map(|report| report.pause_ns).filter(|pause_ns| *pause_ns > 0) {
            let _ = writeln!(text, "longest time without delivery: {}", span(units.micros(pause_ns)));
        }
        match &path.problem {
            Some(problem) => {
                let _ = writeln!(text, "no path: {problem}");
            }
            None => text += &table(&path.hops, units).to_string(),
        }
        text + &units.explained() + "\n"
    }
}

/// Of round trips, or of messages; none where there were none.
pub(super) fn times(flow: &FlowLine) -> Option<Latency> {
    let sender = flow.sender.as_ref()?;
    let times = if flow.shape.work == Work::PingPong { sender.latency } else { sender.messages };
    Some(times).filter(|times| times.count > 0)
}

fn table(hops: &[FlowHop], units: Units) -> Table {
    let mut table = Table::new(&[
        "hop",
        "node",
        "out",
        "lane",
        "in",
        "next",
        units.of_rates(),
        "waiting %",
        "shared with",
    ]);
    for (number, FlowHop { hop, lane, rate, wait, shared_with }) in (1..).zip(hops) {
        table.row(&[
            &number,
            &hop.node,
            &hop.out_port,
            &or_dash(*lane),
            &hop.in_port,
            &hop.peer,
            &format!("{rate:.3}"),
            &or_dash(wait.map(|share| format!("{:.1}", share * 100.0))),
            &shared(shared_with),
        ]);
    }
    table
}

fn shared(names: &[String]) -> String {
    match names.split_at_checked(NAMED_MAX) {
        Some((named, others)) if !others.is_empty() => {
            format!("{}, and {} more", named.join(", "), others.len())
        }
        _ => or_dash(Some(names.join(", ")).filter(|names| !names.is_empty())),
    }
}

/// A path in a line: the nodes, with the lane of each cable between them.
pub(super) fn in_a_line(path: &FlowPath) -> String {
    if let Some(problem) = &path.problem {
        return format!("none: {problem}");
    }
    let mut line = path.hops.first().map(|hop| hop.hop.node.clone()).unwrap_or_default();
    for FlowHop { hop, lane, .. } in &path.hops {
        let lane = lane.map_or_else(String::new, |lane| format!("VL{lane}"));
        let _ = write!(line, " -{lane}> {}", hop.peer);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_sharers_few_are_named() {
        let names: Vec<String> = (1..=7).map(|number| format!("f{number}")).collect();
        assert_eq!(shared(&names), "f1, f2, f3, f4, f5, and 2 more");
        assert_eq!((shared(&names[..2]).as_str(), shared(&[]).as_str()), ("f1, f2", "-"));
    }
}
