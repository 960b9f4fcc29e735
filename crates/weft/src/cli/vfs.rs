//! The arguments of virtualised adapters.

use clap::{Args, ValueEnum};

/// Options of virtualised adapters.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Virtual functions")]
pub(crate) struct VfArgs {
    /// Virtual functions of every HCA, 1 to 252, each behind the HCA's vSwitch [default: no vSwitches]
    ///
    /// NODE=COUNT is for one HCA, and may be given for several: `--vfs 4 --vfs host-3=8`. Without a COUNT for all, HCAs that are not named
    /// have no vSwitch.
    #[arg(long, value_name = "[NODE=]COUNT", value_parser = VfCount::parse)]
    pub(crate) vfs: Vec<VfCount>,

    /// When virtual functions get their LIDs [default: prepopulated]
    #[arg(long, value_name = "WHEN", value_enum, requires = "vfs")]
    pub(crate) lids: Option<VfLids>,

    /// Whether programs at a virtual function may send SMPs (QP0); with deny they are dropped and counted
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, requires = "vfs")]
    pub(crate) vf_qp0: VfQp0,

    /// Start no VM manager [default: start one with --vfs]
    #[arg(long, requires = "vfs")]
    pub(crate) no_vmm: bool,

    /// Node whose first cabled port the VM manager uses, or NODE:PORT; repeat it for each piece of the fabric [default: the first HCA
    /// beside the subnet manager's]
    #[arg(long, value_name = "NODE", requires = "vfs", conflicts_with = "no_vmm")]
    pub(crate) vmm_at: Vec<String>,
}

/// A number of virtual functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VfCount {
    /// The HCA that has this number; none for all others.
    pub(crate) node: Option<String>,
    pub(crate) count: u32,
}

impl VfCount {
    /// For every HCA.
    pub(crate) fn of_all(count: u32) -> Self {
        Self { node: None, count }
    }

    /// `COUNT` or `NODE=COUNT`. The node's name may itself contain `=`.
    fn parse(text: &str) -> Result<Self, String> {
        let (node, count) = match text.rsplit_once('=') {
            Some((node, count)) => (Some(node), count),
            None => (None, text),
        };
        if node == Some("") {
            return Err("no node is named before `=`".to_owned());
        }
        let count = count.parse().map_err(|_| format!("`{count}` is not a number of virtual functions"))?;
        Ok(Self { node: node.map(str::to_owned), count })
    }
}

/// When virtual functions get their LIDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum VfLids {
    /// At the start: all functions are plugged in, and each has a LID
    #[default]
    Prepopulated,
    /// When a virtual machine boots on them: all functions are unplugged at first
    Dynamic,
}

/// What becomes of SMPs of programs at virtual functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum VfQp0 {
    /// They go their way, as a vSwitch lets them
    #[default]
    Allow,
    /// They are dropped and counted; the function's own management agent still answers
    Deny,
}

impl VfArgs {
    /// Whether there are virtual functions.
    pub(crate) fn is_any(&self) -> bool {
        !self.vfs.is_empty()
    }

    /// Whether there is a VM manager.
    pub(crate) fn starts_manager(&self) -> bool {
        self.is_any() && !self.no_vmm
    }

    /// Whether virtual functions are slots that are empty at first.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.is_any() && self.lids == Some(VfLids::Dynamic)
    }
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
