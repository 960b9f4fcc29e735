//! Command-line options for virtual functions' LIDs, as the subnet manager's options.

use std::collections::BTreeMap;
use std::path::Path;

use weft_bundle::failure::Failure;
use weft_routing::files::parse_weights;
use weft_routing::{VSwitch, WEIGHT_OF_A_HOST, vswitches};
use weft_sm::{Options, VmLidOptions};
use weft_topology::{Fabric, NodeIndex};
use weft_wire::Guid;

use crate::cli::SmArgs;
use crate::engine_options::parsed;

/// Adds them to options that say when functions get their LIDs. GUIDs must be those of `fabric`'s virtual functions, where it is known.
pub(crate) fn vm_lid_options(
    args: &SmArgs,
    fabric: Option<&Fabric>,
    options: Options,
) -> anyhow::Result<Options> {
    let is_dynamic = options.vm_lids.scheme == weft_sm::LidScheme::Dynamic;
    let given = &args.vm_lids;
    for (is_given, name) in [
        (given.vm_lids_max.is_some(), "--vm-lids-max"),
        (given.lid_quarantine_ms.is_some(), "--lid-quarantine-ms"),
        (given.vm_lids_stay, "--vm-lids-stay"),
    ] {
        if is_given && !is_dynamic {
            return Err(Failure::bad_input(format!("{name} needs LIDs that machines get when they boot"))
                .hint("`weft up` has them with --vfs COUNT --lids dynamic"));
        }
    }
    let vm_weights = match &args.routing.vm_weights {
        Some(_) if is_dynamic => {
            let message = "--vm-weights: machines with --lids dynamic have the paths of their hosts";
            return Err(Failure::bad_input(message)
                .hint("use --lids prepopulated, which gives each function paths of its own"));
        }
        Some(path) => vm_weights(path, fabric, &args.routing.management_nodes)?,
        None => BTreeMap::new(),
    };
    Ok(Options {
        vm_lids: VmLidOptions {
            switch_lids: given.switch_lids,
            vm_lids_max: given.vm_lids_max.unwrap_or(options.vm_lids.vm_lids_max),
            lid_quarantine_ms: given.lid_quarantine_ms.unwrap_or(options.vm_lids.lid_quarantine_ms),
            vm_lids_stay: given.vm_lids_stay,
            vm_weights,
            unproved_moves: given.unproved_moves,
            rebalance_below: given.rebalance_below.unwrap_or(0),
            ..options.vm_lids
        },
        sa: weft_sm::SaOptions { signal_moves: given.signal_moves, ..options.sa },
        ..options
    })
}

/// Weights by GUID. `management`: the nodes that serve management alone, as the user names them.
fn vm_weights(
    path: &Path,
    fabric: Option<&Fabric>,
    management: &Option<String>,
) -> anyhow::Result<BTreeMap<Guid, u32>> {
    let weights = parsed(path, |file, text| parse_weights(file, text, 1..=WEIGHT_OF_A_HOST))?;
    let Some(fabric) = fabric else { return Ok(weights) };
    let named = management.as_ref().map(|list| crate::engine_options::management_nodes(list, Some(fabric)));
    let vswitches = vswitches(fabric, &named.transpose()?.unwrap_or_default());
    check(fabric, &vswitches, &weights)
        .map_err(|(reason, hint)| Failure::bad_input(format!("{}: {reason}", path.display())).hint(hint))?;
    Ok(weights)
}

/// Every weight is a virtual function's, and those of one host are together no more than the host's. Fails with a sentence and a
/// hint.
fn check(
    fabric: &Fabric,
    vswitches: &[VSwitch],
    weights: &BTreeMap<Guid, u32>,
) -> Result<(), (String, String)> {
    let mut hosts: BTreeMap<Guid, NodeIndex> = BTreeMap::new();
    for vswitch in vswitches {
        for function in vswitch.virtual_functions() {
            let node = fabric.node(function.node);
            let port = fabric.port(function).map(|port| port.guid);
            hosts.extend([Some(node.guid), port].into_iter().flatten().map(|guid| (guid, vswitch.node)));
        }
    }
    let mut sums: BTreeMap<NodeIndex, u32> = BTreeMap::new();
    for (guid, weight) in weights {
        let Some(host) = hosts.get(guid) else {
            let hint = if hosts.is_empty() {
                "virtual functions come with --vfs COUNT"
            } else {
                "`weft vm ls --json` and `weft ask HOST slots` have the GUIDs of functions"
            };
            return Err((format!("{guid} is no virtual function's GUID"), hint.to_owned()));
        };
        let sum = sums.entry(*host).or_default();
        *sum = sum.saturating_add(*weight);
        if *sum > WEIGHT_OF_A_HOST {
            let host = fabric.label(*host);
            let reason =
                format!("the virtual functions of {host} weigh {sum} together, more than {WEIGHT_OF_A_HOST}");
            return Err((reason, "weights are shares of what the host receives: lower some".to_owned()));
        }
    }
    Ok(())
}
