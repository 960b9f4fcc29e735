//! The cabling that a laboratory emulates: the file's, or the same with virtualised adapters.

use weft_topology::{Fabric, VFS_MAX, VirtualiseError, Virtualised};
use weft_wire::Lid;

use crate::cli::{VfArgs, VfLids};
use crate::failure::Failure;

/// The cabling of a topology file with what the command line adds to it. `lmc` is that of host ports.
pub(crate) fn cabling(fabric: Fabric, args: &VfArgs, lmc: u8) -> anyhow::Result<Virtualised> {
    let Some(vfs) = args.vfs else { return Ok(Virtualised { fabric, adapters: Vec::new() }) };
    if args.lids == Some(VfLids::Dynamic) {
        return Err(Failure::bad_input(
            "--lids dynamic is not supported yet: virtual functions are there from the start",
        )
        .hint("leave out --lids, or use --lids prepopulated")
        .into());
    }
    let adapters = fabric.adapters().count();
    if adapters == 0 {
        return Err(Failure::bad_input("--vfs needs HCAs with a cable, and the topology has none")
            .hint("leave out --vfs")
            .into());
    }
    let vfs = u16::try_from(vfs).unwrap_or(u16::MAX);
    if (1..=VFS_MAX).contains(&vfs) {
        check_lids(&fabric, adapters, (vfs, lmc))?;
    }
    fabric.virtualised(vfs).map_err(|error| refused(&error))
}

/// Fails when not every end port of the virtualised cabling can have its LIDs.
fn check_lids(fabric: &Fabric, adapters: usize, (vfs, lmc): (u16, u8)) -> anyhow::Result<()> {
    let each = 1usize << lmc.min(7);
    let others = fabric.nodes().iter().filter(|node| !node.is_switch());
    let ends: usize = others.map(|node| node.cabled_ports().count()).sum();
    let fixed = fabric.switches().count() + ends * each + adapters;
    let (most, wanted) = (usize::from(Lid::UNICAST_MAX.0), fixed + usize::from(vfs) * adapters * each);
    if wanted <= most {
        return Ok(());
    }
    let fitting = most.saturating_sub(fixed) / (adapters * each);
    let failure = Failure::bad_input(format!(
        "{vfs} virtual functions on each of {adapters} HCAs need {wanted} LIDs, and there are {most}"
    ));
    Err(match fitting {
        0 => failure.hint("use a smaller topology, or a lower --lmc"),
        _ => failure.hint(format!("use --vfs {fitting} or fewer")),
    }
    .into())
}

fn refused(error: &VirtualiseError) -> anyhow::Error {
    let hint = match error {
        VirtualiseError::Count(_) => format!("use --vfs 1 to --vfs {VFS_MAX}"),
        VirtualiseError::SeveralPorts { .. } => {
            "--vfs takes topologies whose HCAs have one cabled port each: remove the other cables".to_owned()
        }
        VirtualiseError::GuidTaken { .. } => {
            "--vfs takes the physical topology: a file with vSwitches needs no --vfs".to_owned()
        }
        _ => "use fewer virtual functions or a smaller topology".to_owned(),
    };
    Failure::bad_input(format!("--vfs: {error}")).hint(hint).into()
}
