//! Input of the engines: cabling, LIDs and options, out of files.

use std::collections::BTreeMap;
use std::path::Path;

use weft_bundle::failure::Failure;
use weft_bundle::topology_file;
use weft_routing::files::{GuidToLid, parse_vm_weights};
use weft_routing::{Lids, WEIGHT_OF_A_HOST};
use weft_topology::{Fabric, Pieces, PortRef};
use weft_wire::Lid;

use crate::cli::routes::RoutingArgs;
use crate::engine_options::{Told, parsed};

/// What a fabric is routed from, or a piece of one.
pub(super) struct Inputs {
    /// A node of the piece, where there are several.
    pub(super) piece: Option<String>,
    pub(super) fabric: Fabric,
    pub(super) lids: Lids,
    pub(super) told: Told,
}

impl Inputs {
    /// Reads all files that the arguments name. Pieces that no switch or cable joins are subnets, each with LIDs and tables of
    /// its own.
    pub(super) fn load(file: &Path, args: &RoutingArgs) -> anyhow::Result<Vec<Self>> {
        let fabric = topology_file::load(file)?;
        let told = Told::load(Some(&fabric), &args.engine)?.without_manager()?;
        let pieces = fabric.pieces();
        let with_hosts = routable(&fabric, &pieces);
        if with_hosts.len() < 2 {
            return Ok(vec![Self::of(None, fabric, told, args)?]);
        }
        if args.engine.vm_weights.is_some() {
            return Err(Failure::bad_input(format!(
                "--vm-weights names LIDs, and each of the {} pieces of {} has its own",
                with_hosts.len(),
                file.display()
            ))
            .hint("give it a file of one piece; `weft topo check FILE` counts them"));
        }
        let piece = |piece: u32| {
            let name = fabric.piece_label(&pieces, piece);
            Self::of(Some(name), fabric.piece(&pieces, piece), told.clone(), args)
        };
        with_hosts.into_iter().map(piece).collect()
    }

    fn of(piece: Option<String>, fabric: Fabric, mut told: Told, args: &RoutingArgs) -> anyhow::Result<Self> {
        let lids = lids(&fabric, args)?;
        if let Some(path) = &args.engine.vm_weights {
            let weights = parsed(path, |file, text| parse_vm_weights(file, text, 1..=WEIGHT_OF_A_HOST))?;
            check_vm_weights(&fabric, &lids, &weights)
                .map_err(|reason| Failure::bad_input(format!("{}: {reason}", path.display())))?;
            told.options.vm_weights = weights;
        }
        Ok(Self { piece, fabric, lids, told })
    }
}

/// The pieces that have both switches and hosts or routers: there is something to route.
pub(super) fn routable(fabric: &Fabric, pieces: &Pieces) -> Vec<u32> {
    let mut has = vec![(false, false); pieces.len()];
    for (index, node) in fabric.iter() {
        for piece in pieces.of_node(index) {
            let (switch, host) = &mut has[piece as usize];
            *switch |= node.is_switch();
            *host |= !node.is_switch();
        }
    }
    pieces.iter().filter(|piece| has[*piece as usize] == (true, true)).collect()
}

/// The LIDs of a file, else those of the cabling's file, else counted up.
fn lids(fabric: &Fabric, args: &RoutingArgs) -> anyhow::Result<Lids> {
    let mut lids = match (&args.lids, args.lmc) {
        (Some(path), _) => {
            let known = parsed(path, GuidToLid::parse)?;
            let lids = known.lids(fabric);
            let lids = lids.map_err(|error| Failure::bad_input(format!("{}: {error}", path.display())))?;
            if lids.is_empty() {
                let name = path.display();
                return Err(Failure::bad_input(format!("{name} has no LID of this fabric's ports")).into());
            }
            lids
        }
        (None, Some(lmc)) => Lids::in_guid_order(fabric, lmc)
            .map_err(|error| Failure::bad_input(error.to_string()).hint("a lower --lmc takes fewer LIDs"))?,
        (None, None) => from_fabric(fabric)?,
    };
    lids.add_virtual(fabric, args.vms).map_err(|error| {
        Failure::bad_input(error.to_string()).hint("--vms with a lower number takes fewer")
    })?;
    Ok(lids)
}

/// Every weight is a virtual machine's, and those of one host are together no more than the host's. Fails with a sentence.
fn check_vm_weights(fabric: &Fabric, lids: &Lids, weights: &BTreeMap<Lid, u32>) -> Result<(), String> {
    // The first entry of a port is its own.
    let mut own: BTreeMap<PortRef, Lid> = BTreeMap::new();
    for entry in lids.iter() {
        own.entry(entry.port).or_insert(entry.base);
    }
    let mut sums: BTreeMap<PortRef, u32> = BTreeMap::new();
    for (lid, weight) in weights {
        let Some(entry) = lids.port_lids(*lid) else {
            return Err(format!("nobody has LID {lid}; --vms gives hosts LIDs for virtual machines"));
        };
        let host = fabric.port_name(entry.port);
        if own.get(&entry.port) == Some(&entry.base) {
            return Err(format!("LID {lid} is no virtual machine's: it is {host}'s own"));
        }
        let sum = sums.entry(entry.port).or_default();
        *sum = sum.saturating_add(*weight);
        if *sum > WEIGHT_OF_A_HOST {
            return Err(format!(
                "the virtual machines of {host} weigh {sum} together, more than {WEIGHT_OF_A_HOST}"
            ));
        }
    }
    Ok(())
}

/// The LIDs of the cabling's file if every cabled end port has some there, else counted up in order of GUIDs.
pub(super) fn from_fabric(fabric: &Fabric) -> anyhow::Result<Lids> {
    let counted = Lids::in_guid_order(fabric, 0).map_err(|error| Failure::bad_input(error.to_string()))?;
    match Lids::from_fabric(fabric) {
        Ok(lids) if lids.len() >= counted.len() => Ok(lids),
        _ => Ok(counted),
    }
}
