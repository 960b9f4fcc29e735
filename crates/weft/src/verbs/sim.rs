//! `weft sim`

use anyhow::Context;
use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::names::SM;
use weft_bundle::plan::seats;
use weft_bundle::record::standby_name;
use weft_bundle::topology_file;
use weft_device::DeviceOptions;
use weft_lab::pieces::{self, Managers, PieceLine};
use weft_lab::scene::TapeTo;
use weft_machine::Time;
use weft_perform::film::bring_up_taped;
use weft_sim::{BringUp, SimOptions, TraceMode, bring_up};
use weft_sm::LidScheme;
use weft_topology::{Fabric, PortRef};
use weft_wire::count_of;

use crate::cli::SimArgs;
use crate::engine_options::warn_of_fallback;
use crate::interrupt::break_off_when_interrupted;
use crate::learning::learning;
use crate::output::{Table, print, print_json};
use crate::sm_options::{Defaults, sm_options};

#[derive(Serialize)]
struct Report {
    /// The trace's hash in hexadecimal: JSON numbers of 64 bits are not safe with every reader.
    trace: String,
    #[serde(flatten)]
    up: BringUp,
    /// The pieces of the fabric, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pieces: Vec<PieceLine>,
}

pub(super) fn run(args: &SimArgs) -> anyhow::Result<()> {
    break_off_when_interrupted(|| "the fabric was not up, and there is no result")?;
    let fabric = topology_file::load(&args.file)?;
    let sm = sm_options(&args.sm, Some(&fabric), &Defaults { qos: true, lids: LidScheme::Prepopulated })?;
    let sm = learning(sm, None)?;
    let seats = seats::of_managers(&fabric, &args.file, &args.sm.sm_at)?;
    let names = (0..).map(|number| if number == 0 { SM.to_owned() } else { standby_name(number - 1) });
    let managers = Managers::new(&fabric, names.zip(seats.iter().copied()).collect());
    if let [seat] = seats[..] {
        let up = bring_one_up(&fabric, seat, sm, args)?;
        return report(up, managers.lines(&fabric), args.json);
    }
    // Nothing passes from one piece to another, so each has a time of its own.
    if args.tape.is_some() {
        return Err(Failure::bad_input("a tape shows one piece, and this fabric has several with managers")
            .hint("name one manager with --sm-at"));
    }
    let pieces = fabric.pieces();
    let mut ups = Vec::new();
    for (number, seat) in (0..).zip(seats) {
        let piece = fabric.piece(&pieces, pieces.of_seat(seat).unwrap_or_default());
        let node = piece.by_guid(fabric.node(seat.node).guid).context("a manager outside of its piece")?;
        let mut options = sm.clone();
        options.sa.subnet_prefix.0 = sm.sa.subnet_prefix.0.wrapping_add(number);
        ups.push((
            fabric.port_label(seat),
            bring_one_up(&piece, PortRef::new(node, seat.port), options, args)?,
        ));
    }
    if args.json {
        let reports: Vec<Report> = ups.into_iter().map(|(_, up)| Report::new(up, Vec::new())).collect();
        return print_json(&reports);
    }
    let all: String =
        ups.iter().map(|(seat, up)| format!("piece of the manager at {seat}:\n{}", text(up))).collect();
    print(&(all + &pieces::text(&managers.lines(&fabric))))
}

/// Brings a fabric up by a manager at this port.
fn bring_one_up(
    fabric: &Fabric,
    seat: PortRef,
    sm: weft_sm::Options,
    args: &SimArgs,
) -> anyhow::Result<BringUp> {
    let options = SimOptions {
        device: DeviceOptions {
            smp_processing: Time::from_micros(args.smp_processing_us),
            partition_cap: args.p_key_capacity,
            ..DeviceOptions::default()
        },
        sm,
        sm_port: Some(seat),
        link_delay: Time::from_micros(args.link_delay_us),
        link_jitter: Time::from_micros(args.link_jitter_us),
        trace: TraceMode::Hash,
        ..SimOptions::default()
    };
    let limit = Time::from_secs(args.limit);
    let up = match &args.tape {
        None => bring_up(fabric, options, args.seed, limit),
        Some(path) => {
            let to = TapeTo::file_or_folder(path, "sim")?;
            bring_up_taped(fabric, options, args.seed, limit, &to)?
        }
    };
    let up = up.map_err(|error| Failure::new(format!("seed {}: {error}", args.seed)))?;
    warn_of_fallback(&args.sm.engine, &up.routing.engine, &up.routing.fallbacks);
    Ok(up)
}

impl Report {
    fn new(up: BringUp, pieces: Vec<PieceLine>) -> Self {
        Self { trace: format!("{:016x}", up.trace_hash), up, pieces }
    }
}

fn report(up: BringUp, pieces: Vec<PieceLine>, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&Report::new(up, pieces));
    }
    print(&(text(&up) + &pieces::text(&pieces)))
}

fn text(up: &BringUp) -> String {
    let time = |time: Time| format!("{:.3}", time.as_secs_f64() * 1e3);
    let mut table = Table::headed("phase | SMPs | took ms");
    for phase in &up.summary.phases {
        table.row(&[&phase.phase, &phase.smps, &time(phase.took)]);
    }
    let summary = &up.summary;
    let routing: String = up.routing.lines().map(|line| line + "\n").collect();
    format!(
        "{table}SUBNET UP after {} ms of virtual time, {} ms of them the subnet manager's, {}, {}\n\
         {routing}{}, {}, {}, {} active, {}; {} pairs of switch and LID followed\n\
         seed {}, {} packets, trace {:016x}\n",
        time(up.up_at),
        time(up.sm_took),
        count_of(summary.smps.total as usize, "SMP"),
        count_of(summary.retries as usize, "retry"),
        count_of(summary.switches as usize, "switch"),
        count_of(summary.hosts as usize, "host"),
        count_of(summary.cables as usize, "cable"),
        count_of(summary.ports_active as usize, "port"),
        count_of(summary.lids as usize, "LID"),
        up.checked.pairs,
        up.seed,
        up.statistics.packets,
        up.trace_hash,
    )
}
