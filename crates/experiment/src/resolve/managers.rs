//! Settings of devices, hosts and managers.

use std::collections::BTreeSet;

use weft_host::stack::{Notices, StackOptions};
use weft_machine::Time;
use weft_routing::files::SavedRouting;
use weft_routing::{Chain, EngineOptions};
use weft_sm::{CongestionOptions, LidScheme, VlWeight};
use weft_topology::{Loader, NodeIndex, PortRef};
use weft_vm::{Method, UpdateOrder};
use weft_wire::{Guid, PortNum, ServiceLevel, SmKey};

use super::names::Names;
use super::{partitions, vms};
use crate::file::{Role, Wrong, engine_reads};
use crate::{CongestionSpec, Experiment, FlowPlan, ManagementLane, PmMode, Shaping};

/// Management's service level, where it has one of its own.
const MANAGEMENT_SL: u8 = 15;
/// The key by which a VM manager moves LIDs in virtual time; a live run has a random one.
const VMS_SA_KEY: SmKey = SmKey(0x7765_6674);
/// HOQLife and LifeTimeValue above 19 never end (IBA 14.2.5.4, 18.2.5.4).
const FOR_EVER: u8 = 20;

/// Management takes the highest lane of the smallest number of lanes that leaves traffic its own.
pub(super) fn management(experiment: &Experiment) -> Option<ManagementLane> {
    let lane = shaping(experiment).lanes_code().lanes() - 1;
    experiment.sm.management_lane.then_some(ManagementLane { sl: MANAGEMENT_SL, lane })
}

/// The experiment's rates, as a laboratory without an experiment has them.
pub(super) fn shaping(experiment: &Experiment) -> Shaping {
    Shaping { rates: experiment.rates.clone(), management_lane: experiment.sm.management_lane }
}

pub(super) fn stack(experiment: &Experiment) -> StackOptions {
    let (told, plain) = (&experiment.hosts, shaping(experiment).stack());
    StackOptions {
        window_packets: told.window_packets.unwrap_or(plain.window_packets),
        ack_timeout: told.ack_timeout.unwrap_or(plain.ack_timeout),
        retries: told.retries.unwrap_or(plain.retries),
        path_cache: told.path_cache,
        notices: told.notices,
        handler_times: told.handler_times,
        guids: experiment.vms.as_ref().map(|vms| vms.guids).unwrap_or_default(),
        // Where notices are the manager's to send, no machine asks for its own.
        wakes_peers: told.notices == Notices::All,
        ..plain
    }
}

/// The options of the subnet manager at a port. `own` is the experiment's file: files that it names are relative to it, and `load` reads them.
pub(super) fn sm(
    names: &Names<'_>,
    experiment: &Experiment,
    own: &str,
    at: PortRef,
    load: &mut Loader<'_>,
) -> Result<weft_sm::Options, Wrong> {
    let (told, rates) = (&experiment.sm, &experiment.rates);
    let chain: Chain = experiment.engine.chain.parse().unwrap_or_default();
    let mut options = shaping(experiment).with_lanes(weft_sm::Options::default());
    options.routing.engine = engine_options(names, experiment, &chain)?;
    options.routing.chain = chain;
    options.routing.learn_order = experiment.engine.learn_order;
    options.routing.learn_weights = experiment.pm.learn_weights > 0 && !experiment.engine.learn_order;
    let port_guid = names.fabric.port(at).map_or(Guid(0), |port| port.guid);
    options.routing.engine.partitions = partitions::partitions(names, own, port_guid, load)?;
    options.lanes = weft_sm::LaneOptions {
        hoq_life: life(told.hoq_life),
        leaf_hoq_life: life(told.hoq_life),
        packet_life_time: life(told.switch_life),
        ..options.lanes
    };
    options.sa.signalling = told.signalling;
    options.sweeps.one_sweep_per_cable = told.one_sweep_per_cable;
    if let Some(vms) = &experiment.vms {
        options.keys.sa_key = VMS_SA_KEY;
        options.vm_lids.unproved_moves =
            vms.route.method == Method::Full || vms.route.order == UpdateOrder::Unordered;
        (options.vm_lids.vm_lids_stay, options.sa.signal_moves) = (vms.lids_stay, vms.signal_moves);
        options.vm_lids.scheme = if vms.is_dynamic { LidScheme::Dynamic } else { LidScheme::Prepopulated };
    }
    options.routing.engine.saved = saved_routing(names, experiment, own, load)?;
    if let Some(told) = &experiment.congestion {
        options.congestion.is_on = true;
        options.congestion.settings = congestion(told);
    }
    options.sweeps.sweep_interval_ms =
        told.sweep_interval.map_or(options.sweeps.sweep_interval_ms, Time::as_millis);
    let weight = |vl: u8| match told.weights.as_slice() {
        [all] => *all,
        each => each.get(usize::from(vl)).copied().unwrap_or_default(),
    };
    if !told.weights.is_empty() {
        options.lanes.vl_arb_low = (0..rates.lanes).map(|vl| VlWeight { vl, weight: weight(vl) }).collect();
    }
    Ok(options)
}

fn congestion(told: &CongestionSpec) -> CongestionOptions {
    let delay = |index: u16| told.shift << 14 | index.saturating_mul(told.slope).min(0x3fff);
    CongestionOptions {
        sw_cong_setting_threshold: told.threshold,
        sw_cong_setting_packet_size: told.packet_size,
        sw_cong_setting_marking_rate: told.marking_rate,
        ca_cong_setting_ccti_increase: told.increase,
        ca_cong_setting_ccti_timer: told.timer,
        cct: (0..=told.limit).map(delay).collect(),
        ..CongestionOptions::default()
    }
}

/// The smallest code of a time that is no shorter: 4.096 µs times 2 to the code.
fn life(time: Option<Time>) -> u8 {
    let Some(time) = time else { return FOR_EVER };
    (0..FOR_EVER).find(|code| 4096_u64 << code >= time.as_nanos()).unwrap_or(FOR_EVER - 1)
}

fn engine_options(names: &Names<'_>, experiment: &Experiment, chain: &Chain) -> Result<EngineOptions, Wrong> {
    let told = &experiment.engine;
    let mut options = EngineOptions::default();
    let guids = |nodes: Vec<NodeIndex>| -> Vec<Guid> {
        nodes.iter().map(|node| names.fabric.node(*node).guid).collect()
    };
    if let Some(lanes) = told.lanes {
        options.lanes = lanes;
    } else if engine_reads(chain, "lanes") {
        options.lanes = experiment.rates.lanes;
    }
    options.max_reverse_hops = told.max_reverse_hops.unwrap_or(options.max_reverse_hops);
    options.roots = guids(told.roots.iter().map(|name| names.node(name)).collect::<Result<_, _>>()?);
    options.io_nodes = guids(names.hosts(&told.io_nodes)?);
    options.order = guids(names.hosts(&told.order)?);
    options.weights = partitions::weights(names, &told.weights)?;
    options.pftree_order = told.pftree_order.unwrap_or_default();
    let share = told.isolation_share.map(|share| (share * 1000.0).round() as u32);
    options.isolation_share = share.unwrap_or(options.isolation_share);
    options.management_nodes = guids(names.hosts(&told.management_nodes)?);
    Ok(options)
}

/// What the engine `file` takes; its files are named relative to the experiment's.
fn saved_routing(
    names: &Names<'_>,
    experiment: &Experiment,
    own: &str,
    load: &mut Loader<'_>,
) -> Result<Vec<SavedRouting>, Wrong> {
    let wrong = |path: &str, error: String| names.choice.wrong(Role::Topology, path, error);
    experiment.engine.saved().read(|path, saved, add| {
        let text =
            load(path, own).map_err(|error| wrong(path, format!("`{path}` cannot be read: {error}")))?;
        add(saved, path, &text).map_err(|error| wrong(path, error.to_string()))
    })
}

pub(super) fn pm(experiment: &Experiment) -> Option<weft_pm::Options> {
    let told = &experiment.pm;
    matches!(told.mode, PmMode::Watch | PmMode::On).then(|| weft_pm::Options {
        interval: told.interval,
        dilation: experiment.rates.dilation,
        detector: told.detector,
        threshold: told.threshold,
        further_threshold: told.further_threshold,
        utilisation_limit: told.utilisation_limit,
        repath: told.mode == PmMode::On,
        learn_weights: told.learn_weights,
        slow_sl: ServiceLevel(told.slow_sl),
        hysteresis: told.hysteresis,
        lanes: told.lanes,
        ..weft_pm::Options::default()
    })
}

/// Where the managers are attached. Said nothing, the subnet manager is where `weft up` would attach it, and the
/// performance manager at the last host without a part in any flow and without a machine at any time, else beside it.
pub(super) fn places(
    names: &Names<'_>,
    experiment: &Experiment,
    flows: &[FlowPlan],
) -> Result<(PortRef, PortRef), Wrong> {
    let usual = names.fabric.attach_place().unwrap_or(PortRef::new(NodeIndex(0), PortNum(1)));
    let sm = match &experiment.attach.sm {
        Some(name) => names.port_of(names.host(name)?),
        None => usual,
    };
    let ends = flows.iter().flat_map(|flow| flow.senders.iter().chain(&flow.receivers)).copied();
    let busy: BTreeSet<NodeIndex> = ends.chain(vms::hosts(names, experiment)?).collect();
    let idle = |seat: &PortRef| !busy.contains(&seat.node) && !names.is_function(seat.node);
    let pm = match &experiment.attach.pm {
        Some(name) => names.port_of(names.host(name)?),
        None => names.fabric.seats().filter(idle).last().unwrap_or(sm),
    };
    Ok((sm, pm))
}
