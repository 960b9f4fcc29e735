//! What engines work from: cabling, LIDs and options, out of files.

use std::path::Path;

use weft_routing::Lids;
use weft_routing::files::GuidToLid;
use weft_topology::Fabric;

use crate::cli::RoutingArgs;
use crate::engine_options::{Told, parsed};
use crate::failure::Failure;
use crate::topology_file;

/// What a fabric is routed from.
pub(super) struct Inputs {
    pub(super) fabric: Fabric,
    pub(super) lids: Lids,
    pub(super) told: Told,
}

impl Inputs {
    /// Reads all files that the arguments name.
    pub(super) fn load(file: &Path, args: &RoutingArgs) -> anyhow::Result<Self> {
        let fabric = topology_file::load(file)?;
        let lids = lids(&fabric, args)?;
        let told = Told::load(Some(&fabric), &args.engine)?;
        Ok(Self { fabric, lids, told })
    }
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
        (None, Some(lmc)) => Lids::in_guid_order(fabric, lmc)?,
        (None, None) => from_fabric(fabric)?,
    };
    lids.add_virtual(fabric, args.vms)?;
    Ok(lids)
}

/// The LIDs of the cabling's file if every cabled end port has some there, else counted up in order of GUIDs.
pub(super) fn from_fabric(fabric: &Fabric) -> anyhow::Result<Lids> {
    let counted = Lids::in_guid_order(fabric, 0)?;
    match Lids::from_fabric(fabric) {
        Ok(lids) if lids.len() >= counted.len() => Ok(lids),
        _ => Ok(counted),
    }
}
