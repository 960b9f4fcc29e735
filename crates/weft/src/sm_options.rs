//! Command-line options, as the subnet manager's options.

use weft_bundle::failure::Failure;
use weft_sm::{
    CongestionControl, CongestionOptions, ElectionOptions, KeyOptions, LaneOptions, LidScheme, Options,
    RoutingOptions, SaOptions, SmpOptions, SweepOptions,
};
use weft_topology::Fabric;
use weft_wire::{MKey, SmKey, VlCap};

use crate::cli::SmArgs;
use crate::cli::congestion::CongestionArgs;
use crate::cli::lanes::LaneArgs;
use crate::engine_options::{Told, from_everywhere};
use crate::vm_lid_options::vm_lid_options;

/// Options that depend on the verb.
pub(crate) struct Defaults {
    /// Whether tables of service levels and lanes are written if `--qos` is not given.
    pub(crate) qos: bool,
    /// When virtual functions get their LIDs.
    pub(crate) lids: LidScheme,
}

/// The subnet manager's options. GUIDs must be `fabric`'s, where it is known.
pub(crate) fn sm_options(
    args: &SmArgs,
    fabric: Option<&Fabric>,
    defaults: &Defaults,
) -> anyhow::Result<Options> {
    let mut told = Told::load(fabric, &args.routing)?;
    // They are written into ports, whatever the engine makes of them.
    told.serves_otherwise("partitions");
    if let Some(warning) = short_lease(args) {
        crate::output::say(&warning);
    }
    let mut options = Options::default();
    options.vm_lids.scheme = defaults.lids;
    let options = vm_lid_options(args, fabric, options)?;
    let &SmArgs { max_wire_smps, timeout_ms, retries, smp_routing, .. } = args;
    let &SmArgs { sweep_interval_ms, one_sweep_per_cable, .. } = args;
    let options = Options {
        routing: RoutingOptions {
            chain: told.chain(&from_everywhere(&args.engine))?,
            learn_weights: told.live.weights,
            learn_order: told.live.order,
            engine: told.options,
            lmc: args.lmc,
            ..options.routing
        },
        smps: SmpOptions { max_wire_smps, timeout_ms, retries, smp_routing },
        sweeps: SweepOptions { sweep_interval_ms, one_sweep_per_cable, ..options.sweeps },
        election: ElectionOptions {
            priority: args.election.priority.unwrap_or(0),
            polling_ms: args.election.polling_ms,
            polling_retries: args.election.polling_retries,
        },
        lanes: LaneOptions { qos: args.qos.unwrap_or(defaults.qos), ..options.lanes },
        keys: KeyOptions {
            m_key: MKey(args.keys.m_key.0),
            m_key_protection: args.keys.m_key_protection,
            m_key_lease_s: args.keys.m_key_lease,
            sm_key: SmKey(args.keys.sm_key.0),
            sa_key: SmKey(args.keys.sa_key.map_or(1, |key| key.0)),
        },
        sa: SaOptions { subnet_prefix: args.subnet_prefix, ..options.sa },
        congestion: CongestionControl {
            is_on: args.congestion.congestion_control,
            settings: congestion_options(&args.congestion)?,
        },
        ..options
    };
    lane_options(&args.lanes, options)
}

/// What to say of a lease that ends before the manager has shown the key again.
fn short_lease(args: &SmArgs) -> Option<String> {
    let (lease, interval) = (args.keys.m_key_lease, args.sweep_interval_ms);
    let ends = args.keys.m_key.0 != 0 && lease > 0 && (interval == 0 || u64::from(lease) * 1000 <= interval);
    ends.then(|| {
        let sweeps = if interval == 0 { "no light sweeps (--sweep-interval-ms 0)" } else { "the time between light sweeps" };
        let than = if interval == 0 { "with" } else { "is not longer than" };
        format!("warning: --m-key-lease {lease} s {than} {sweeps}: after one wrong M_Key ports drop their protection")
    })
}

fn congestion_options(args: &CongestionArgs) -> anyhow::Result<CongestionOptions> {
    const DELAYS_MAX: usize = 4096;
    if args.cc_cct.len() > DELAYS_MAX {
        let message = format!("--cc-cct takes at most {DELAYS_MAX} delays, and got {}", args.cc_cct.len());
        return Err(Failure::bad_input(message).into());
    }
    let plain = CongestionOptions::default();
    Ok(CongestionOptions {
        key: args.cc_key,
        sw_cong_setting_threshold: args.cc_sw_cong_setting_threshold,
        sw_cong_setting_packet_size: args.cc_sw_cong_setting_packet_size,
        sw_cong_setting_marking_rate: args.cc_sw_cong_setting_marking_rate,
        ca_cong_setting_port_control: args.cc_ca_cong_setting_port_control,
        ca_cong_setting_control_map: args.cc_ca_cong_setting_control_map,
        ca_cong_setting_ccti_timer: args.cc_ca_cong_setting_ccti_timer,
        ca_cong_setting_ccti_increase: args.cc_ca_cong_setting_ccti_increase,
        ca_cong_setting_trigger_threshold: args.cc_ca_cong_setting_trigger_threshold,
        ca_cong_setting_ccti_min: args.cc_ca_cong_setting_ccti_min,
        cct: if args.cc_cct.is_empty() { plain.cct.clone() } else { args.cc_cct.clone() },
        ..plain
    })
}

fn lane_options(args: &LaneArgs, options: Options) -> anyhow::Result<Options> {
    for (given, name) in [(args.management_lane, "--management-lane"), (args.equal_lanes, "--equal-lanes")] {
        if given && !options.lanes.qos {
            return Err(Failure::bad_input(format!("{name} takes tables of service levels and lanes"))
                .hint("say --qos true"));
        }
    }
    let options = if args.equal_lanes { options.with_equal_lanes() } else { options };
    let &LaneArgs { signalling, repath_needs_key, sa_partitions, .. } = args;
    Ok(Options {
        lanes: LaneOptions {
            management_lane: args.management_lane,
            max_op_vls: match args.max_op_vls {
                1 => VlCap::Vl0,
                2 => VlCap::Vl0To1,
                4 => VlCap::Vl0To3,
                8 => VlCap::Vl0To7,
                _ => VlCap::Vl0To14,
            },
            hoq_life: args.hoq_lifetime,
            leaf_hoq_life: args.leaf_hoq_lifetime,
            packet_life_time: args.packet_life_time,
            vl_stall_count: args.vl_stall_count,
            ..options.lanes
        },
        routing: RoutingOptions { part_enforce: args.part_enforce, ..options.routing },
        sa: SaOptions { signalling, repath_needs_key, sa_partitions, ..options.sa },
        ..options
    })
}
