//! `weft topo`

mod add;
#[cfg(test)]
mod by_chance;
mod diff;
mod recable;

use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::folder::{self, LabFolder};
use weft_bundle::topology_file;
use weft_topology::generate::{
    self, AGGREGATION_NODE, Damage, Directors, GenerateOptions, RandomFabric, degraded, described_as_linux,
    with_node_at_every_switch,
};
use weft_topology::{Counts, Fabric, PortRef};
use weft_wire::count_of;

use crate::cli::topo::{Describe, GenArgs, GenKind, TopoVerb};
use crate::output::{Table, print, print_json};

/// `lab`: the running laboratory, where a verb is about one.
pub(super) fn run(lab: impl Fn() -> anyhow::Result<LabFolder>, verb: &TopoVerb) -> anyhow::Result<ExitCode> {
    let bench = || recable::Bench::begin(&lab()?);
    match verb {
        TopoVerb::Gen(args) => make(args)?,
        TopoVerb::Check { file, json } => check(file, *json)?,
        TopoVerb::Show { file, json } => show(file, *json)?,
        TopoVerb::Diff(args) => return diff::run(lab, args),
        TopoVerb::Connect(args) => bench()?.change(&args.change, |bench| bench.connect(args))?,
        TopoVerb::Disconnect(args) => bench()?.change(&args.change, |bench| bench.disconnect(args))?,
        TopoVerb::Move(args) => bench()?.change(&args.change, |bench| bench.relocate(args))?,
        TopoVerb::AddHost(args) => add::node(&lab()?, &args.name, &args.change, |bench, newcomer| {
            add::draft_host(bench, args, newcomer)
        })?,
        TopoVerb::AddSwitch(args) => add::node(&lab()?, &args.name, &args.change, |bench, newcomer| {
            add::draft_switch(bench, args, newcomer)
        })?,
        TopoVerb::Remove(args) => bench()?.change(&args.change, |bench| add::draft_removal(bench, args))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn make(args: &GenArgs) -> anyhow::Result<()> {
    let mut fabric = generate(args)?;
    if args.aggregation_nodes {
        fabric = with_node_at_every_switch(&fabric, AGGREGATION_NODE).map_err(|error| {
            Failure::bad_input(error.to_string())
                .hint("leave ports free for the aggregation nodes with --radix")
        })?;
    }
    if args.drop_cables > 0 {
        let switch = |end: PortRef| fabric.node(end.node).is_switch();
        let between = fabric.cables().filter(|cable| switch(cable.a) && switch(cable.b)).count();
        if args.drop_cables > between {
            let message =
                format!("--drop-cables {}: there are {between} cables between switches", args.drop_cables);
            return Err(Failure::bad_input(message).into());
        }
        let damage = Damage { cables: args.drop_cables, switches: 0 };
        fabric =
            degraded(&fabric, damage, args.seed).map_err(|error| Failure::bad_input(error.to_string()))?;
    }
    if args.describe == Describe::Linux {
        fabric = described_as_linux(&fabric).map_err(|error| Failure::bad_input(error.to_string()))?;
    }
    let text = fabric.write_ibnetdiscover();
    match &args.output {
        None => print(&text),
        Some(path) if path.as_os_str() == "-" => print(&text),
        Some(path) => {
            folder::write_shared(path, text.as_bytes())?;
            let Counts { switches, hosts, cables, .. } = fabric.counts();
            crate::output::say(&format!(
                "wrote {}: {}, {}, {}",
                path.display(),
                count_of(switches, "switch"),
                count_of(hosts, "host"),
                count_of(cables, "cable")
            ));
            Ok(())
        }
    }
}

fn generate(args: &GenArgs) -> anyhow::Result<Fabric> {
    let options = GenerateOptions { radix: args.radix, tree_hosts: args.hosts, ..GenerateOptions::default() };
    let needed = |value: Option<u32>, option: &str| {
        value.ok_or_else(|| {
            let kind = format!("{:?}", args.kind).to_lowercase();
            Failure::bad_input(format!("a fabric of kind {kind} needs --{option}"))
                .hint("`weft topo gen --help` says which options belong to which kind")
        })
    };
    let listed = |list: &[u32], option: &str| needed((!list.is_empty()).then_some(0), option);
    let hosts = args.hosts.unwrap_or(1);
    let made = match args.kind {
        GenKind::Xgft | GenKind::Pgft => {
            listed(&args.children, "children")?;
            listed(&args.parents, "parents")?;
            if args.kind == GenKind::Xgft {
                generate::xgft(&args.children, &args.parents, &options)
            } else {
                listed(&args.parallel, "parallel")?;
                generate::pgft(&args.children, &args.parents, &args.parallel, &options)
            }
        }
        GenKind::Rlft => {
            let radix = needed(args.radix.map(u32::from), "radix")?;
            let radix = u8::try_from(radix).expect("it was one a line ago");
            generate::rlft(radix, needed(args.levels, "levels")?, &options)
        }
        GenKind::Kary => {
            generate::kary_ntree(needed(args.arity, "arity")?, needed(args.levels, "levels")?, &options)
        }
        GenKind::Mesh | GenKind::Torus => {
            listed(&args.dims, "dims")?;
            let make = if args.kind == GenKind::Mesh { generate::mesh } else { generate::torus };
            make(&args.dims, hosts, &options)
        }
        GenKind::Ring => generate::ring(needed(args.switches, "switches")?, hosts, &options),
        GenKind::Hypercube => generate::hypercube(needed(args.dimension, "dimension")?, hosts, &options),
        GenKind::Dragonfly => {
            let (routers, global) = (needed(args.routers, "routers")?, needed(args.global, "global")?);
            generate::dragonfly(routers, hosts, global, args.groups, &options)
        }
        GenKind::Director => {
            listed(&args.lines, "lines")?;
            generate::director(&directors(args, needed(args.spines, "spines")?), &options)
        }
        GenKind::Random => {
            let parameters = RandomFabric {
                switches: needed(args.switches, "switches")?,
                hosts: needed(args.hosts, "hosts")?,
                extra_cables: args.cables.unwrap_or(0),
                parallel_cables: args.parallel.first().copied().unwrap_or(0),
            };
            generate::random(&parameters, args.seed, &options)
        }
    };
    made.map_err(|error| Failure::bad_input(error.to_string()).into())
}

fn directors(args: &GenArgs, spines: u32) -> Directors {
    let default = Directors::default();
    Directors {
        lines: args.lines.clone(),
        spines,
        inside: args.inside.unwrap_or(default.inside),
        line_hosts: args.hosts.unwrap_or(1),
        edges: args.edges.unwrap_or(default.edges),
        edge_hosts: args.edge_hosts.unwrap_or(default.edge_hosts),
        uplinks: args.uplinks.unwrap_or(default.uplinks),
        trunks: args.trunks.unwrap_or(default.trunks),
    }
}

fn check(file: &Path, json: bool) -> anyhow::Result<()> {
    let fabric = topology_file::load(file)?;
    let counts = fabric.counts();
    if json {
        return print_json(&counts);
    }
    let mut table = Table::headed("switches | hosts | others | cables | pieces");
    let cells = [counts.switches, counts.hosts, counts.others, counts.cables, counts.components];
    table.cells(cells.map(|count| count.to_string()));
    print(&table.to_string())
}

#[derive(Serialize)]
struct Shown {
    a: String,
    a_port: u8,
    b: String,
    b_port: u8,
    rate: String,
}

fn show(file: &Path, json: bool) -> anyhow::Result<()> {
    let fabric = topology_file::load(file)?;
    if json {
        let cables: Vec<Shown> = fabric
            .cables()
            .map(|cable| Shown {
                a: fabric.node(cable.a.node).id.clone(),
                a_port: cable.a.port.0,
                b: fabric.node(cable.b.node).id.clone(),
                b_port: cable.b.port.0,
                rate: cable.rate.to_string(),
            })
            .collect();
        return print_json(&serde_json::json!({ "nodes": fabric.nodes(), "cables": cables }));
    }
    let mut nodes = Table::headed("id | kind | guid | ports | cabled | description");
    for node in fabric.nodes() {
        nodes.row(&[
            &node.id,
            &node.kind,
            &node.guid,
            &node.port_count(),
            &node.cabled_ports().count(),
            &node.description,
        ]);
    }
    let mut cables = Table::headed("a | b | rate");
    for cable in fabric.cables() {
        let (a, b) = (fabric.port_name(cable.a), fabric.port_name(cable.b));
        cables.row(&[&a, &b, &cable.rate]);
    }
    print(&format!("{nodes}\n{cables}"))
}
