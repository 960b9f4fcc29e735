//! `weft flow` and `weft traffic`: traffic of a running laboratory, by way of its hub.

mod observe;
mod show;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_control::flow::{FlowChoice, FlowLine, FlowOrder, FlowRefused, FlowShape};
use weft_control::traffic::{Transport, Work};
use weft_lab::flows::{self, FlowPath, Pattern, Units, default_rate};
use weft_lab::view::Lab;
use weft_perform::file_flows::{self, FileFlow};

use crate::cli::flow::{
    FlowLsArgs, FlowShapeArgs, FlowStartArgs, FlowStopArgs, FlowVerb, TrafficStartArgs, TrafficVerb,
};
use crate::output::{Table, or_dash, print, print_json, say};

pub(super) fn run(folder: &LabFolder, verb: &FlowVerb) -> anyhow::Result<()> {
    match verb {
        FlowVerb::Start(args) => start(folder, args),
        FlowVerb::Ls(args) => list(folder, args),
        FlowVerb::Show(args) => show::run(folder, &args.name, args.json),
        FlowVerb::Observe(args) => observe::run(folder, args),
        FlowVerb::Stop(args) => stop(folder, args),
    }
}

pub(super) fn traffic(folder: &LabFolder, verb: &TrafficVerb) -> anyhow::Result<()> {
    match verb {
        TrafficVerb::Start(args) => match (&args.mix, args.pattern) {
            (Some(file), _) => start_mix(folder, file, args),
            (None, Some(pattern)) => start_pattern(folder, pattern, args),
            (None, None) => Err(Failure::bad_input("neither a pattern nor a file is named").into()),
        },
    }
}

/// What the arguments say of each of `new` flows, besides those that there are.
fn shape(lab: &Lab, args: &FlowShapeArgs, new: usize) -> anyhow::Result<FlowShape> {
    let mut shape = FlowShape {
        transport: if args.datagrams { Transport::UnreliableDatagram } else { Transport::ReliableConnection },
        work: if args.ping_pong { Work::PingPong } else { Work::Stream },
        message_bytes: args.size,
        packet_bytes: args.packet,
        bytes_per_second: None,
        bytes_max: args.bytes,
        for_ms: args.lasts.map(in_ms),
    };
    let units = Units { dilation: lab.record.dilation };
    shape.bytes_per_second = match args.rate {
        Some(rate) => Some(units.bytes_per_second(rate, &shape)),
        None => unasked_rate(lab, args, new)?,
    };
    Ok(shape)
}

/// Bytes per second of each of `new` flows where the arguments name none; `None` where nothing bounds them.
fn unasked_rate(lab: &Lab, args: &FlowShapeArgs, new: usize) -> anyhow::Result<Option<u64>> {
    // Cables that take time bound flows by themselves.
    let is_free = args.rate.is_some() || args.unlimited || lab.record.dilation.is_some();
    if is_free {
        return Ok(None);
    }
    Ok(Some(default_rate(flows::list(&lab.folder)?.len() + new)))
}

fn start(folder: &LabFolder, args: &FlowStartArgs) -> anyhow::Result<()> {
    let names = [args.from.as_str(), args.to.as_str()];
    let lab = Lab::load_for(folder, names.into_iter())?;
    let (from, to) = (flows::end(&lab, &args.from)?, flows::end(&lab, &args.to)?);
    let shape = shape(&lab, &args.shape, 1)?;
    let order = FlowOrder { name: args.name.clone(), set: None, from, to, shape };
    begin(folder, &[order], args.json)
}

/// The flows of an experiment's file, on the hosts of this laboratory that have their names.
fn start_mix(folder: &LabFolder, file: &Path, args: &TrafficStartArgs) -> anyhow::Result<()> {
    let (entries, has_others) = file_flows::read(file)?;
    let names = entries.iter().flat_map(|flow| [flow.from.as_str(), flow.to.as_str()]);
    let lab = Lab::load_for(folder, names)?;
    let units = Units { dilation: lab.record.dilation };
    let unasked = unasked_rate(&lab, &args.shape, entries.len())?;
    let for_ms = args.shape.lasts.map(in_ms);
    let order = |flow: &FileFlow| -> anyhow::Result<FlowOrder> {
        let own = flow.rate_gbps.filter(|_| units.dilation.is_some());
        let own = own.map(|gbps| units.bytes_per_second(gbps, &flow.shape));
        let wanted = args.shape.rate.map(|rate| units.bytes_per_second(rate, &flow.shape));
        let bytes_per_second = [own, wanted, unasked].into_iter().flatten().min();
        Ok(FlowOrder {
            name: Some(format!("{}-{}", args.set, flow.name)),
            set: Some(args.set.clone()),
            from: flows::end(&lab, &flow.from)?,
            to: flows::end(&lab, &flow.to)?,
            shape: FlowShape { bytes_per_second, for_ms, ..flow.shape.clone() },
        })
    };
    let orders = entries.iter().map(order).collect::<anyhow::Result<Vec<_>>>()?;
    if has_others {
        say("the file's patterns, mixes and tests are left out: they need `weft run`");
    }
    begin(folder, &orders, args.json)
}

fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn start_pattern(folder: &LabFolder, pattern: Pattern, args: &TrafficStartArgs) -> anyhow::Result<()> {
    let lab = Lab::load_for(folder, args.hosts.iter().map(String::as_str))?;
    let hosts = match args.hosts.is_empty() {
        true => flows::hosts(&lab)?,
        false => args.hosts.iter().map(|name| flows::end(&lab, name)).collect::<anyhow::Result<_>>()?,
    };
    let count = pattern.pairs(hosts.len(), args.seed).len();
    if count == 0 {
        return Err(Failure::bad_input("the pattern has no flow between so few hosts")
            .hint("name two hosts at least"));
    }
    let shape = shape(&lab, &args.shape, count)?;
    begin(folder, &flows::of_pattern(pattern, &hosts, args.seed, &args.set, &shape), args.json)
}

/// Begins flows and says how that went. One that did not begin is an error.
fn begin(folder: &LabFolder, orders: &[FlowOrder], json: bool) -> anyhow::Result<()> {
    let begun = flows::start(folder, orders)?;
    if json {
        print_json(&serde_json::json!({ "begun": begun.names, "refused": begun.refused }))?;
    } else {
        match (begun.names.as_slice(), orders.first().and_then(|order| order.set.as_deref())) {
            ([], _) => {}
            ([one], None) => say(&format!("flow `{one}` has begun; `weft flow ls` shows it")),
            (all, set) => {
                let set = set.unwrap_or_default();
                say(&format!("{} flows of set `{set}` have begun; `weft flow ls` shows them", all.len()));
            }
        }
    }
    match begun.refused.as_slice() {
        [] => Ok(()),
        refused => Err(not_begun(refused)),
    }
}

fn not_begun(refused: &[FlowRefused]) -> anyhow::Error {
    let [first, others @ ..] = refused else { return anyhow::anyhow!("nothing was refused") };
    let more = if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
    Failure::new(format!("flow `{}` has not begun: {}{more}", first.name, first.reason))
        .hint("`weft status` tells how the laboratory is; a flow that has not begun is undone at both ends")
}

fn stop(folder: &LabFolder, args: &FlowStopArgs) -> anyhow::Result<()> {
    let choice = FlowChoice { names: args.names.clone(), sets: args.set.clone(), all: args.all };
    let (stopped, unheard) = flows::stop(folder, choice)?;
    say(&match stopped {
        1 => "1 flow is stopped".to_owned(),
        count => format!("{count} flows are stopped"),
    });
    for FlowRefused { name, reason } in unheard {
        say(&format!("flow `{name}`: {reason}; that end forgets it when the agent answers again"));
    }
    Ok(())
}

#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    flow: &'a FlowLine,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a FlowPath>,
}

fn list(folder: &LabFolder, args: &FlowLsArgs) -> anyhow::Result<()> {
    let (flows, units) = flows::list_in_units(folder)?;
    let found = match args.paths {
        true => flows::paths(&Lab::load_live(folder)?, &flows, |_| true, show::LOOK)?,
        false => Vec::new(),
    };
    let paths: BTreeMap<&str, &FlowPath> = found.iter().map(|path| (path.flow.as_str(), path)).collect();
    if args.json {
        let listed = flows.iter().map(|flow| Listed { flow, path: paths.get(flow.name.as_str()).copied() });
        return print_json(&listed.collect::<Vec<_>>());
    }
    let mut head = vec!["flow", "from", "to", "state", units.of_rates()];
    head.extend(["delivered", "repeated", "SL", "p50", "p99", "max", "pause"]);
    head.extend(args.paths.then_some("path"));
    head.push("detail");
    let mut table = Table::new(&head);
    for flow in &flows {
        let path = paths.get(flow.name.as_str()).map(|path| show::in_a_line(path));
        let detail = flow.reason.clone().unwrap_or_default();
        table.cells(row(flow, units).into_iter().chain(path).chain([detail]));
    }
    print(&format!("{table}{}\n", units.explained()))
}

fn row(flow: &FlowLine, units: Units) -> [String; 12] {
    let (sender, receiver) = (flow.sender.as_ref(), flow.receiver.as_ref());
    let level = or_dash(sender.and_then(|report| report.service_level));
    let of = |ns: u64| span(units.micros(ns));
    let times = show::times(flow);
    let pause = receiver.map(|report| report.pause_ns).filter(|pause| *pause > 0);
    [
        flow.name.clone(),
        flow.from.name.clone(),
        flow.to.name.clone(),
        flow.state.name().to_owned(),
        format!("{:.2}", units.throughput(flow)),
        size(receiver.map_or(0, |report| report.bytes)),
        sender.map_or(0, |report| report.repeated).to_string(),
        level,
        or_dash(times.map(|times| of(times.p50_ns))),
        or_dash(times.map(|times| of(times.p99_ns))),
        or_dash(times.map(|times| of(times.max_ns))),
        or_dash(pause.map(of)),
    ]
}

/// A time for people.
fn span(micros: f64) -> String {
    match micros {
        ..1_000.0 => format!("{micros:.1} µs"),
        ..1_000_000.0 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.1} s", micros / 1e6),
    }
}

/// Bytes for people, in powers of ten as rates are.
fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        10_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_two_digits_at_least_and_five_at_most() {
        let shown = [0, 9_999, 10_000, 9_999_999, 10_000_000, 25_000_000_000].map(size);
        assert_eq!(shown, ["0 B", "9999 B", "10 kB", "9999 kB", "10 MB", "25 GB"]);
        assert_eq!([0.0, 999.94, 1_000.0, 2_500_000.0].map(span), ["0.0 µs", "999.9 µs", "1.0 ms", "2.5 s"]);
    }
}
