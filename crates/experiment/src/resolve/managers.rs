//! What devices, hosts and managers are made with.

use std::collections::BTreeSet;

use weft_device::{DataPathOptions, DeviceOptions};
use weft_host::stack::StackOptions;
use weft_machine::Time;
use weft_routing::{Chain, EngineOptions};
use weft_sm::VlWeight;
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{Guid, PortNum, ServiceLevel};

use super::lanes_code;
use super::names::Names;
use crate::file::{Wrong, engine_reads};
use crate::{Experiment, FlowPlan, ManagementLane, PmMode};

/// A lane's weight where nothing is said: two packets of 2 kB, in 64-byte units.
const WEIGHT: u8 = 66;
/// HOQLife and LifeTimeValue above 19 never end (IBA 14.2.5.4, 18.2.5.4).
const FOR_EVER: u8 = 20;

pub(super) fn management(experiment: &Experiment) -> Option<ManagementLane> {
    let lane = ManagementLane { sl: experiment.sm.management_sl, lane: experiment.rates.lanes.min(14) };
    experiment.sm.management_lane.then_some(lane)
}

/// Lanes in all: those of traffic, and management's.
fn lanes(experiment: &Experiment) -> u8 {
    experiment.rates.lanes
        + u8::from(management(experiment).is_some_and(|own| own.lane == experiment.rates.lanes))
}

pub(super) fn device(experiment: &Experiment) -> DeviceOptions {
    let rates = &experiment.rates;
    let plain = DeviceOptions::default();
    let entries = lanes(experiment).max(plain.vl_arbitration_low_cap);
    DeviceOptions {
        mtu_cap: rates.mtu,
        vl_cap: lanes_code(lanes(experiment).max(plain.vl_cap.lanes())),
        vl_arbitration_high_cap: entries,
        vl_arbitration_low_cap: entries,
        data: DataPathOptions {
            shaped: rates.shaped,
            dilation: rates.dilation,
            host_limit_mbps: rates.host_limit_mbps,
            buffer_packets: rates.buffer_packets,
            ..plain.data.clone()
        },
        ..plain
    }
}

pub(super) fn stack(experiment: &Experiment) -> StackOptions {
    let (told, plain) = (&experiment.hosts, StackOptions::default());
    StackOptions {
        window_packets: told.window_packets.unwrap_or(plain.window_packets),
        ack_timeout: told.ack_timeout.unwrap_or(plain.ack_timeout),
        retries: told.retries.unwrap_or(plain.retries),
        dilation: experiment.rates.dilation,
        ..plain
    }
}

pub(super) fn sm(names: &Names<'_>, experiment: &Experiment) -> Result<weft_sm::Options, Wrong> {
    let (told, rates) = (&experiment.sm, &experiment.rates);
    let own = management(experiment);
    let chain: Chain = experiment.engine.chain.parse().unwrap_or_default();
    let mut sl2vl = [0; 16];
    for sl in 0..rates.lanes.min(15) {
        sl2vl[usize::from(sl)] = sl;
    }
    if let Some(own) = own {
        sl2vl[usize::from(own.sl & 15)] = own.lane;
    }
    let weight = |lane: u8| match told.weights.as_slice() {
        [] => WEIGHT,
        [all] => *all,
        each => each.get(usize::from(lane)).copied().unwrap_or(WEIGHT),
    };
    let low = (0..rates.lanes).map(|vl| VlWeight { vl, weight: weight(vl) });
    let high = own.filter(|own| own.lane >= rates.lanes).map(|own| VlWeight { vl: own.lane, weight: WEIGHT });
    let plain = weft_sm::Options::default();
    Ok(weft_sm::Options {
        routing: engine_options(names, experiment, &chain)?,
        engines: chain,
        max_op_vls: lanes_code(lanes(experiment)),
        mtu_max: rates.mtu,
        qos: true,
        sl2vl,
        vl_arb_high: high.into_iter().collect(),
        vl_arb_low: low.collect(),
        // 255 is no limit (IBA 7.6.9.2).
        vl_high_limit: if own.is_some() { 255 } else { 0 },
        hoq_life: life(told.hoq_life),
        leaf_hoq_life: life(told.hoq_life),
        packet_life_time: life(told.switch_life),
        sweep_interval_ms: told.sweep_interval.map_or(plain.sweep_interval_ms, Time::as_millis),
        ..plain
    })
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
    Ok(options)
}

pub(super) fn pm(experiment: &Experiment) -> Option<weft_pm::Options> {
    let told = &experiment.pm;
    matches!(told.mode, PmMode::Watch | PmMode::On).then(|| weft_pm::Options {
        interval: told.interval,
        dilation: experiment.rates.dilation,
        threshold: told.threshold,
        utilisation_limit: told.utilisation_limit,
        repath: told.mode == PmMode::On,
        slow_sl: ServiceLevel(told.slow_sl),
        hysteresis: told.hysteresis,
        lanes: told.lanes,
        ..weft_pm::Options::default()
    })
}

/// Where the managers are attached. Said nothing, the subnet manager is where `weft up` would attach it, and the
/// performance manager at the last host without a part in any flow, else beside it.
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
    let busy: BTreeSet<NodeIndex> =
        flows.iter().flat_map(|flow| flow.senders.iter().chain(&flow.receivers)).copied().collect();
    let idle = |host: &NodeIndex| !busy.contains(host) && names.fabric.node(*host).attach_port().is_some();
    let pm = match &experiment.attach.pm {
        Some(name) => names.port_of(names.host(name)?),
        None => names.all_hosts().into_iter().rfind(idle).map_or(sm, |host| names.port_of(host)),
    };
    Ok((sm, pm))
}
