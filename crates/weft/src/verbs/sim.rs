//! `weft sim`

use anyhow::Context;
use serde::Serialize;
use weft_device::DeviceOptions;
use weft_machine::Time;
use weft_sim::{BringUp, SimOptions, TraceMode, bring_up};
use weft_sm::LidScheme;
use weft_topology::{Fabric, PortRef};

use super::find;
use crate::cli::SimArgs;
use crate::failure::Failure;
use crate::output::{Table, print, print_json};
use crate::sm_options::sm_options;
use crate::sm_process::routing_report;
use crate::topology_file;

#[derive(Serialize)]
struct Report<'a> {
    /// The trace's hash in hexadecimal: JSON numbers of 64 bits are not safe with every reader.
    trace: String,
    #[serde(flatten)]
    up: &'a BringUp,
}

pub(super) fn run(args: &SimArgs) -> anyhow::Result<()> {
    let fabric = topology_file::load(&args.file)?;
    let options = SimOptions {
        device: DeviceOptions {
            smp_processing: Time::from_micros(args.smp_processing_us),
            partition_cap: args.p_key_capacity,
            ..DeviceOptions::default()
        },
        sm: sm_options(&args.sm, Some(&fabric), (true, LidScheme::Prepopulated))?,
        sm_port: args.sm.sm_at.as_deref().map(|name| sm_port(&fabric, name)).transpose()?,
        link_delay: Time::from_micros(args.link_delay_us),
        link_jitter: Time::from_micros(args.link_jitter_us),
        trace: TraceMode::Hash,
        ..SimOptions::default()
    };
    let up = bring_up(&fabric, options, args.seed, Time::from_secs(args.limit))
        .map_err(|error| Failure::new(format!("seed {}: {error}", args.seed)))?;
    if args.json {
        return print_json(&Report { trace: format!("{:016x}", up.trace_hash), up: &up });
    }
    print(&text(&up))
}

/// The port that the manager is attached to.
fn sm_port(fabric: &Fabric, name: &str) -> anyhow::Result<PortRef> {
    let index = find(fabric, name)?;
    let node = fabric.node(index);
    let port = node.attach_port().with_context(|| format!("`{}` has no cable", fabric.label(index)))?;
    Ok(PortRef::new(index, port))
}

fn text(up: &BringUp) -> String {
    let time = |time: Time| format!("{:.3}", time.as_secs_f64() * 1e3);
    let mut table = Table::new(&["phase", "SMPs", "took ms"]);
    for phase in &up.summary.phases {
        table.row([phase.phase.to_string(), phase.smps.to_string(), time(phase.took)]);
    }
    let summary = &up.summary;
    let routing: String = routing_report(&up.routing).lines().map(|line| line + "\n").collect();
    format!(
        "{table}SUBNET UP after {} ms of virtual time, {} ms of them the subnet manager's, {} SMPs, {} retries\n\
         {routing}{} switches, {} hosts, {} cables, {} ports active, {} LIDs; {} pairs of switch and LID followed\n\
         seed {}, {} packets, trace {:016x}\n",
        time(up.up_at),
        time(up.sm_took),
        summary.smps.total(),
        summary.retries,
        summary.switches,
        summary.hosts,
        summary.cables,
        summary.ports_active,
        summary.lids,
        up.checked.pairs,
        up.seed,
        up.statistics.packets,
        up.trace_hash,
    )
}
