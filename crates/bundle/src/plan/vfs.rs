//! The cabling that a laboratory emulates: the file's, or the same with virtualised adapters.

use std::collections::BTreeMap;

use weft_sm::LidScheme;
use weft_topology::{Fabric, NodeIndex, PortRef, VFS_MAX, VirtualiseError, Virtualised};
use weft_wire::{Lid, PortNum};

use crate::failure::Failure;

/// A number of virtual functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VfCount {
    /// The HCA that has this number; none for all others.
    pub node: Option<String>,
    /// How many.
    pub count: u32,
}

/// What is wrong with a number of virtual functions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VfCountError {
    /// There is nothing before the `=`.
    #[error("no node is named before `=`")]
    NoNode,
    /// It is no number, or too large.
    #[error("`{0}` is not a number of virtual functions")]
    NoNumber(String),
}

impl VfCount {
    /// For every HCA.
    pub fn of_all(count: u32) -> Self {
        Self { node: None, count }
    }

    /// `COUNT` or `NODE=COUNT`. The node's name may itself contain `=`.
    pub fn parse(text: &str) -> Result<Self, VfCountError> {
        let (node, count) = match text.rsplit_once('=') {
            Some((node, count)) => (Some(node), count),
            None => (None, text),
        };
        if node == Some("") {
            return Err(VfCountError::NoNode);
        }
        let count = count.parse().map_err(|_| VfCountError::NoNumber(count.to_owned()))?;
        Ok(Self { node: node.map(str::to_owned), count })
    }
}

/// The virtual functions that HCAs get, and when these get their LIDs.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    /// Their numbers; none where no adapter is virtualised.
    pub counts: Vec<VfCount>,
    /// When they get LIDs.
    pub lids: LidScheme,
}

impl Functions {
    /// Whether there are any.
    pub fn is_any(&self) -> bool {
        !self.counts.is_empty()
    }

    /// Whether they are slots that are empty at first.
    pub fn is_dynamic(&self) -> bool {
        self.is_any() && self.lids == LidScheme::Dynamic
    }
}

/// How many virtual functions each HCA gets.
type Counts = BTreeMap<NodeIndex, u16>;

/// The cabling of a topology file with what the command line adds to it. `lmc` is that of host ports.
pub fn cabling(fabric: Fabric, functions: &Functions, lmc: u8) -> anyhow::Result<Virtualised> {
    if !functions.is_any() {
        return Ok(Virtualised { fabric, adapters: Vec::new() });
    }
    if fabric.adapters().next().is_none() {
        return Err(Failure::bad_input("--vfs needs HCAs with a cable, and the topology has none")
            .hint("leave out --vfs"));
    }
    let counts = counts(&fabric, &functions.counts)?;
    // Empty slots have no LIDs; whether there are enough shows when virtual machines boot.
    check_pieces(&fabric, &counts, functions.is_dynamic(), lmc)?;
    fabric.virtualised_by(|hca| counts.get(&hca).copied()).map_err(|error| refused(&error))
}

/// A cabling in which these functions are unplugged, as empty slots are.
pub fn unplugged(fabric: &Fabric, functions: impl IntoIterator<Item = NodeIndex>) -> Fabric {
    let mut fabric = fabric.clone();
    functions.into_iter().for_each(|function| fabric.disconnect(PortRef::new(function, PortNum(1))));
    fabric
}

/// The number of each HCA: its own, or else the one for all. HCAs without either have no vSwitch.
fn counts(fabric: &Fabric, wanted: &[VfCount]) -> anyhow::Result<Counts> {
    let (mut own, mut of_all) = (Counts::new(), None);
    for VfCount { node, count } in wanted {
        let vfs = u16::try_from(*count).ok().filter(|vfs| (1..=VFS_MAX).contains(vfs));
        let vfs = vfs.ok_or_else(|| refused(&VirtualiseError::Count(*count)))?;
        let before = match node {
            None => of_all.replace(vfs),
            Some(name) => own.insert(adapter(fabric, name)?, vfs),
        };
        if let Some(before) = before {
            let whose = node.as_deref().map_or_else(|| "every HCA".to_owned(), |name| format!("`{name}`"));
            return Err(Failure::bad_input(format!("--vfs gives {whose} two numbers, {before} and {vfs}"))
                .hint("give one COUNT for all HCAs, and NODE=COUNT once for each that differs"));
        }
    }
    let number = |hca| own.get(&hca).copied().or(of_all);
    Ok(fabric.adapters().filter_map(|(hca, _)| Some((hca, number(hca)?))).collect())
}

/// The HCA of that name.
fn adapter(fabric: &Fabric, name: &str) -> anyhow::Result<NodeIndex> {
    let hint = "name an HCA by description, GUID (0x…) or id: --vfs NODE=COUNT";
    let found = fabric.find(name);
    let index = found.map_err(|error| Failure::bad_input(format!("--vfs: {error}")).hint(hint))?;
    if fabric.adapters().any(|(hca, _)| hca == index) {
        return Ok(index);
    }
    let message = format!("--vfs: `{}` is not an HCA with a cable", fabric.label(index));
    Err(Failure::bad_input(message).hint(hint))
}

/// Checks the LIDs of each piece of the fabric: each is a subnet.
fn check_pieces(fabric: &Fabric, counts: &Counts, is_dynamic: bool, lmc: u8) -> anyhow::Result<()> {
    let pieces = fabric.pieces();
    if pieces.len() < 2 {
        return check_lids(fabric, counts, is_dynamic, lmc);
    }
    pieces.iter().try_for_each(|piece| {
        let part = fabric.piece(&pieces, piece);
        let here = counts.iter().filter_map(|(hca, vfs)| Some((part.by_guid(fabric.node(*hca).guid)?, *vfs)));
        check_lids(&part, &here.collect(), is_dynamic, lmc)
    })
}

/// Fails when not every end port of the virtualised cabling can have its LIDs.
fn check_lids(fabric: &Fabric, counts: &Counts, is_dynamic: bool, lmc: u8) -> anyhow::Result<()> {
    let each = 1usize << lmc.min(7);
    let ports = |hca: NodeIndex| fabric.node(hca).cabled_ports().count();
    let adapters: usize = counts.keys().map(|hca| ports(*hca)).sum();
    let others = fabric.nodes().iter().filter(|node| !node.is_switch());
    let ends: usize = others.map(|node| node.cabled_ports().count()).sum();
    let fixed = fabric.switches().count() + ends * each + adapters;
    let functions = counts.iter().map(|(hca, vfs)| usize::from(*vfs) * ports(*hca));
    let functions: usize = functions.filter(|_| !is_dynamic).sum();
    let (most, wanted) = (usize::from(Lid::UNICAST_MAX.0), fixed + functions * each);
    if wanted <= most {
        return Ok(());
    }
    if is_dynamic {
        let message =
            format!("the topology needs {wanted} LIDs without virtual functions, and there are {most}");
        return Err(Failure::bad_input(message).hint("use a smaller topology, or a lower --lmc"));
    }
    let mut numbers = counts.values();
    let alike = numbers.next().filter(|first| numbers.all(|vfs| vfs == *first));
    let what = match alike {
        Some(vfs) => format!("{vfs} virtual functions on each of {adapters} HCAs"),
        None => format!("{functions} virtual functions on {adapters} HCAs"),
    };
    let failure = Failure::bad_input(format!("{what} need {wanted} LIDs, and there are {most}"));
    let fitting = most.saturating_sub(fixed) / (adapters * each).max(1);
    Err(match (fitting, alike) {
        (0, _) => failure.hint("use a smaller topology, or a lower --lmc"),
        (_, Some(_)) => failure.hint(format!("use --vfs {fitting} or fewer")),
        (_, None) => failure.hint(format!("use fewer virtual functions: {fitting} on each HCA would fit")),
    })
}

fn refused(error: &VirtualiseError) -> anyhow::Error {
    let hint = match error {
        VirtualiseError::Count(_) => format!("use --vfs 1 to --vfs {VFS_MAX}"),
        VirtualiseError::GuidTaken { .. } => {
            "--vfs takes the physical topology: a file with vSwitches needs no --vfs".to_owned()
        }
        _ => "use fewer virtual functions or a smaller topology".to_owned(),
    };
    Failure::bad_input(format!("--vfs: {error}")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::VfCount;

    #[test]
    fn a_number_is_for_all_or_for_one_node() {
        let of = |node: &str, count| Ok(VfCount { node: Some(node.to_owned()), count });
        assert_eq!(VfCount::parse("4"), Ok(VfCount::of_all(4)));
        assert_eq!(VfCount::parse("host-3=8"), of("host-3", 8));
        assert_eq!(VfCount::parse("a=b=8"), of("a=b", 8));
        for wrong in ["", "=", "=4", "host-3=", "host-3", "-1", "host-3=-1", "4294967296", "4=x"] {
            assert!(VfCount::parse(wrong).is_err(), "{wrong}");
        }
    }
}
