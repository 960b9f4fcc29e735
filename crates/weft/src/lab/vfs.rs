//! The cabling that a laboratory emulates: the file's, or the same with virtualised adapters.

use weft_topology::{Fabric, NodeIndex, PortRef, VFS_MAX, VirtualiseError, Virtualised};
use weft_wire::{Lid, PortNum};

use crate::cli::VfArgs;
use crate::failure::Failure;

/// The cabling of a topology file with what the command line adds to it. `lmc` is that of host ports.
pub(crate) fn cabling(fabric: Fabric, args: &VfArgs, lmc: u8) -> anyhow::Result<Virtualised> {
    let Some(vfs) = args.vfs else { return Ok(Virtualised { fabric, adapters: Vec::new() }) };
    let adapters = fabric.adapters().count();
    if adapters == 0 {
        return Err(Failure::bad_input("--vfs needs HCAs with a cable, and the topology has none")
            .hint("leave out --vfs")
            .into());
    }
    let vfs = u16::try_from(vfs).unwrap_or(u16::MAX);
    if (1..=VFS_MAX).contains(&vfs) {
        // Empty slots have no LIDs; whether there are enough shows when virtual machines boot.
        check_lids(&fabric, adapters, (if args.is_dynamic() { 0 } else { vfs }, lmc))?;
    }
    fabric.virtualised(vfs).map_err(|error| refused(&error))
}

/// A cabling in which these functions are unplugged, as empty slots are.
pub(crate) fn unplugged(fabric: &Fabric, functions: impl IntoIterator<Item = NodeIndex>) -> Fabric {
    let mut fabric = fabric.clone();
    functions.into_iter().for_each(|function| fabric.disconnect(PortRef::new(function, PortNum(1))));
    fabric
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
    if vfs == 0 {
        let message =
            format!("the topology needs {wanted} LIDs without virtual functions, and there are {most}");
        return Err(Failure::bad_input(message).hint("use a smaller topology, or a lower --lmc").into());
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
