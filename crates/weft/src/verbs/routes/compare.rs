//! `weft routes compare`

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::folder::with_suffix;
use weft_lab::loads;
use weft_routing::quality::{
    Comparison, Participants, PatternError, SimulateOptions, Traffic, compare, hosts, members,
};
use weft_routing::{EngineReport, ManagementNodes, Routing};
use weft_wire::Lid;

use super::compute::refused;
use super::inputs::Inputs;
use super::{in_pool, while_saying};
use crate::cli::routes::CompareArgs;
use crate::drawing;
use crate::output::{print, print_json, say};

/// What was found, for programs.
#[derive(Serialize)]
struct Found {
    /// A node of the piece of the fabric, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    piece: Option<String>,
    #[serde(flatten)]
    comparison: Comparison,
    /// How long each engine computed and the verifier looked at its routing.
    took_seconds: BTreeMap<String, f64>,
    /// What each engine did, and what its routing does not keep.
    reports: BTreeMap<String, EngineReport>,
    /// What engines said that do not serve the fabric.
    refusals: Vec<String>,
}

/// Words of a list that are no engines.
const STANDINS: [&str; 3] = ["", "auto", "no_fallback"];

pub(super) fn run(args: &CompareArgs) -> anyhow::Result<()> {
    args.picture.as_deref().map(drawing::format_of).transpose()?;
    let mut found = Vec::new();
    for inputs in Inputs::load(&args.file, &args.routing)? {
        let one = compare_in(inputs, args)?;
        // For people each table comes as soon as it is there.
        if args.json { found.push(one) } else { tell(&one, &args.engines)? }
    }
    match &found[..] {
        [] => Ok(()),
        [one] => print_json(one),
        all => print_json(&all),
    }
}

/// Compares engines in one piece of the fabric.
fn compare_in(mut inputs: Inputs, args: &CompareArgs) -> anyhow::Result<Found> {
    if args.partition.is_some() {
        inputs.told.serves_otherwise("partitions");
    }
    // Each engine stands alone, without the last resort.
    inputs.told.chain(&format!("{},no_fallback", args.engines.join(",")))?;
    let traffic: Traffic = args.pattern.parse().map_err(|error: PatternError| {
        Failure::bad_input(error.to_string()).hint("`weft routes compare --help` lists the patterns")
    })?;
    let participants = participants(args, &inputs, traffic)?;
    let (mut routed, mut refusals) = (Vec::new(), Vec::new());
    let mut took_seconds = BTreeMap::new();
    for name in args.engines.iter().map(|name| name.trim()).filter(|name| !STANDINS.contains(name)) {
        let begin = Instant::now();
        let alone = inputs.told.alone(name)?;
        let made = while_saying(&format!("{name} computes"), || {
            alone.route(&inputs.fabric, &inputs.lids, &inputs.told.options)
        });
        took_seconds.insert(name.to_owned(), begin.elapsed().as_secs_f64());
        match made {
            Ok(routing) => routed.push((name, routing)),
            Err(reasons) => refusals.extend(reasons),
        }
    }
    if routed.is_empty() {
        return Err(refused(&refusals).into());
    }
    let routings: Vec<(&str, &Routing)> = routed.iter().map(|(name, routing)| (*name, routing)).collect();
    let options = SimulateOptions { runs: args.runs, seed: args.seed, ..SimulateOptions::default() };
    let comparison = while_saying("running traffic", || {
        in_pool(args.routing.engine.threads, || {
            compare(&inputs.fabric, &inputs.lids, &routings, &participants, traffic, &options)
        })
    })??;
    if let Some(path) = &args.picture {
        draw(path, &inputs, &routed)?;
    }
    let refusals = refusals.iter().map(ToString::to_string).collect();
    let reports = routed.into_iter().map(|(name, routing)| (name.to_owned(), routing.report)).collect();
    Ok(Found { piece: inputs.piece, comparison, took_seconds, reports, refusals })
}

/// A picture of each routing's load, all on one scale.
fn draw(path: &Path, inputs: &Inputs, routed: &[(&str, Routing)]) -> anyhow::Result<()> {
    let (fabric, lids) = (&inputs.fabric, &inputs.lids);
    let all: Vec<_> =
        routed.iter().map(|(name, routing)| (name, loads::loads(fabric, lids, &routing.routes))).collect();
    let end = all.iter().map(|(_, loads)| loads::most(fabric, loads)).max().unwrap_or(0);
    let piece = inputs.piece.as_ref().map(|piece| format!(", piece of {piece}")).unwrap_or_default();
    for (name, loads) in &all {
        let most = loads::most(fabric, loads);
        let title = format!("{name}: {most} pairs of hosts on the busiest cable{piece}");
        let word = |text: &str| text.replace(|letter: char| !letter.is_alphanumeric(), "-");
        let suffix = [Some(word(name)), inputs.piece.as_deref().map(word)].into_iter().flatten();
        let suffix = suffix.map(|word| format!("-{}", word.trim_matches('-'))).collect::<String>();
        drawing::write(
            &with_suffix(path, &suffix),
            fabric,
            &drawing::of_tables(title, fabric, loads, end, None),
        )?;
    }
    Ok(())
}

/// The table for people, and what the routings do not keep, in the order of `engines`.
fn tell(found: &Found, engines: &[String]) -> anyhow::Result<()> {
    let mut text = found.piece.iter().map(|piece| format!("piece of `{piece}`:\n")).collect::<String>();
    text.push_str(&format!("{}\n", found.comparison));
    let reports = engines.iter().filter_map(|name| found.reports.get_key_value(name.trim()));
    for (name, report) in reports {
        for sentence in report.unsatisfied.iter().chain(&report.notes) {
            text.push_str(&format!("{name}: {sentence}\n"));
        }
    }
    print(&text)?;
    found.refusals.iter().for_each(|refusal| say(refusal));
    Ok(())
}

/// Who sends and receives: all hosts or a partition's, in two groups where two patterns run against each other.
fn participants(args: &CompareArgs, inputs: &Inputs, traffic: Traffic) -> anyhow::Result<Participants> {
    let mut lids: Vec<Lid> = match &args.partition {
        None => hosts(&inputs.fabric, &inputs.lids),
        Some(name) => {
            let list = inputs.told.options.partitions.iter().flat_map(|partitions| &partitions.list);
            let Some(partition) = list.clone().find(|partition| partition.name == *name) else {
                let names: Vec<&str> = list.map(|partition| partition.name.as_str()).collect();
                return Err(Failure::bad_input(format!("no partition is called `{name}`"))
                    .hint(format!("there are {}", names.join(", "))));
            };
            members(&inputs.fabric, &inputs.lids, partition)
        }
    };
    let management = ManagementNodes::new(&inputs.fabric, &inputs.told.options.management_nodes);
    lids.retain(|lid| inputs.lids.owner(*lid).is_none_or(|port| !management.contains(port.node)));
    if lids.len() < 2 {
        return Err(Failure::bad_input("traffic takes two hosts at least").into());
    }
    match traffic {
        Traffic::Alone(_) if args.victims.is_some() => {
            Err(Failure::bad_input("--victims means nothing to one pattern alone").into())
        }
        Traffic::Alone(_) => Ok(Participants::all(lids)),
        Traffic::Versus(..) => {
            let count = args.victims.unwrap_or(lids.len() / 2);
            if !(1..lids.len()).contains(&count) {
                let message = format!("--victims must be 1 to {}, not {count}", lids.len() - 1);
                return Err(Failure::bad_input(message).hint("the other hosts run the second pattern"));
            }
            Ok(Participants::drawn(lids, count, args.seed))
        }
    }
}
