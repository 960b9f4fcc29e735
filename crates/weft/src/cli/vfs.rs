//! The arguments of virtualised adapters.

use clap::{Args, ValueEnum};

/// Options of virtualised adapters.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Virtual functions")]
pub(crate) struct VfArgs {
    /// Virtual functions of every HCA, 1 to 252, each behind the HCA's vSwitch [default: no vSwitches]
    #[arg(long, value_name = "COUNT")]
    pub(crate) vfs: Option<u32>,

    /// When virtual functions get their LIDs [default: prepopulated]
    #[arg(long, value_name = "WHEN", value_enum, requires = "vfs")]
    pub(crate) lids: Option<VfLids>,

    /// Whether programs at a virtual function may send SMPs (QP0); with deny they are dropped and counted
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, requires = "vfs")]
    pub(crate) vf_qp0: VfQp0,

    /// Start no VM manager [default: start one with --vfs]
    #[arg(long, requires = "vfs")]
    pub(crate) no_vmm: bool,

    /// Node whose first cabled port the VM manager uses [default: the first HCA beside the subnet manager's]
    #[arg(long, value_name = "NODE", requires = "vfs", conflicts_with = "no_vmm")]
    pub(crate) vmm_at: Option<String>,
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
    /// Whether there is a VM manager.
    pub(crate) fn starts_manager(&self) -> bool {
        self.vfs.is_some() && !self.no_vmm
    }

    /// Whether virtual functions are slots that are empty at first.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.vfs.is_some() && self.lids == Some(VfLids::Dynamic)
    }
}
