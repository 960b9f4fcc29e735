//! From the arguments of `up` and `plan` to the laboratory that is wanted.

use std::path::Path;

use weft_bundle::failure::Failure;
use weft_bundle::plan::wanted::{
    Guids, Notices, OtherSm, StackOptions, Wanted, WantedPm, WantedSm, random_sa_key,
};
use weft_device::DeviceOptions;
use weft_machine::Time;
use weft_perform::shaping;
use weft_sm::LidScheme;
use weft_topology::{PortRef, Virtualised};
use weft_wire::{MKey, SmKey};

use crate::cli::DeviceArgs;
use crate::cli::keys::Key;
use crate::cli::plan::PlanArgs;
use crate::cli::vfs::VfQp0;
use crate::engine_options::partitions_text;
use crate::learning::learning;
use crate::sm_options::{Defaults, sm_options};

/// Where the managers are.
pub(crate) struct Seats {
    /// The first subnet manager, if it is weft's.
    pub(crate) sm: Option<PortRef>,
    pub(crate) pms: Vec<PortRef>,
    pub(crate) vmms: Vec<PortRef>,
    /// Other subnet managers of weft.
    pub(crate) standbys: Vec<OtherSm>,
}

/// Of links whose processes may be kept waiting by traffic, as in an experiment.
const SHAPED_LINK_TIMEOUT_MS: u64 = 5000;

/// What the command line asks for.
pub(crate) fn wanted<'a>(
    cabling: &'a Virtualised,
    seats: Seats,
    file: &Path,
    args: &PlanArgs,
) -> anyhow::Result<Wanted<'a>> {
    let Seats { sm, pms, vmms, standbys } = seats;
    let Virtualised { fabric, adapters } = cabling;
    let sa_key = sa_key(args)?;
    let shaping = args.rates.as_deref().map(shaping::read).transpose()?;
    let sm_at = |at| -> anyhow::Result<WantedSm> {
        let lids =
            if args.vfs.functions().is_dynamic() { LidScheme::Dynamic } else { LidScheme::Prepopulated };
        let mut options = sm_options(&args.sm, Some(fabric), &Defaults { qos: true, lids })?;
        options = learning(options, args.pm.learn_weights)?;
        options.keys.sa_key = sa_key;
        if let Some(shaping) = &shaping {
            options = shaping.with_lanes(options);
            let lanes = &mut options.routing.engine.lanes;
            *lanes = (*lanes).min(shaping.rates.lanes);
        }
        if args.standby > 0 && args.sm.election.priority.is_none() {
            options.election.priority = 1;
        }
        let partitions = args.sm.routing.partitions.as_deref().map(partitions_text).transpose()?;
        Ok(WantedSm { at, options, partitions })
    };
    let plain = device_options(&args.devices);
    let device = match &shaping {
        Some(shaping) => shaping.device(plain),
        None => plain,
    };
    if device.data.host_bus_mbps > 0 && !args.vfs.is_any() {
        let message = "`host_bus_gbps` of --rates is shared by virtual functions, and there are none";
        let hint = "add --vfs N, or write `host_limit_gbps` for hosts with one function";
        return Err(Failure::bad_input(message).hint(hint));
    }
    let stack = stack(args, shaping.as_ref())?;
    let cable_delay =
        shaping.as_ref().map_or(Time::ZERO, |shaping| shaping.cable_delay(shaping.rates.cable_m));
    let m_key = MKey(args.sm.keys.m_key.0);
    let pm_at = |at| {
        let options = weft_pm::Options { m_key, ..args.pm.options(device.data.dilation, shaping.is_some()) };
        WantedPm { at, options }
    };
    let topology = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    Ok(Wanted {
        adapters,
        empty_slots: args.vfs.functions().is_dynamic(),
        slots_qp0: args.vfs.vf_qp0 == VfQp0::Allow,
        m_key,
        sa_key,
        vmms,
        pms: pms.into_iter().map(pm_at).collect(),
        metrics: args.metrics,
        sm: sm.map(sm_at).transpose()?,
        standbys,
        device,
        // A name is offered, and a notice handed on, also where no flow has begun.
        hosts: stack
            .clone()
            .filter(|stack| stack.notices == Notices::Server || stack.guids == Guids::Dynamic),
        later_hosts: stack,
        cables: (cable_delay, Vec::new()),
        pack: args.pack,
        udp_port: args.udp_port,
        link_timeout_ms: args.link_timeout_ms.or(shaping.as_ref().map(|_| SHAPED_LINK_TIMEOUT_MS)),
        attach: args.attach_managers,
        ibsim: args.ibsim.part(),
        ..Wanted::bare(fabric, topology)
    })
}

/// What hosts are like; `None` is as usual.
fn stack(args: &PlanArgs, shaping: Option<&shaping::Shaping>) -> anyhow::Result<Option<StackOptions>> {
    let (notices, guids) = (args.notices, args.vfs.vm_guids.unwrap_or_default());
    let lids_stay = args.vfs.functions().is_dynamic() && args.sm.vm_lids.vm_lids_stay;
    if guids == Guids::Dynamic && !lids_stay {
        let message = "--vm-guids dynamic leaves LIDs with functions, too";
        return Err(Failure::bad_input(message).hint("add --lids dynamic --vm-lids-stay true"));
    }
    if guids == Guids::Dynamic && args.sm.vm_lids.signal_moves {
        let message = "--signal-moves: with --vm-guids dynamic no GUID comes back with another LID";
        return Err(Failure::bad_input(message).hint("leave out one of them"));
    }
    if notices == Some(Notices::Server) && !args.vfs.is_any() {
        let message = "--notices server: there are no virtual functions to hand notices on to";
        return Err(Failure::bad_input(message).hint("add --vfs N, or use --notices repath"));
    }
    if shaping.is_none() && notices.is_none() && guids == Guids::Static {
        return Ok(None);
    }
    let plain = shaping.map(shaping::Shaping::stack).unwrap_or_default();
    let notices = notices.unwrap_or_default();
    // Where notices are the manager's to send, no machine asks for its own.
    Ok(Some(StackOptions { notices, guids, wakes_peers: notices == Notices::All, ..plain }))
}

/// The key of subnet administration: a random one where virtual machines may move, since 1 is everyone's.
fn sa_key(args: &PlanArgs) -> anyhow::Result<SmKey> {
    match (args.sm.keys.sa_key, args.vfs.is_any()) {
        (Some(Key(1)), true) => Err(Failure::bad_input(
            "--sa-key 1 is known to everyone, and whoever has the key can move virtual machines",
        )
        .hint("leave out --sa-key: with --vfs each laboratory gets a random one")),
        (Some(Key(key)), _) => Ok(SmKey(key)),
        (None, true) => Ok(random_sa_key()),
        (None, false) => Ok(SmKey(1)),
    }
}

/// What the command line says, as the devices' options.
fn device_options(args: &DeviceArgs) -> DeviceOptions {
    DeviceOptions {
        vl15_buffer_packets: args.vl15_buffer,
        smp_processing: Time::from_micros(args.smp_processing_us),
        trap_interval: Time::from_millis(args.trap_interval_ms),
        trap_limit: args.trap_limit,
        partition_cap: args.p_key_capacity,
        ..DeviceOptions::default()
    }
}
