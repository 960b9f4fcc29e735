//! The arguments of virtualised adapters.

use clap::{Args, ValueEnum};
use weft_bundle::plan::vfs::{Functions, VfCount};
use weft_bundle::plan::wanted::Guids;
use weft_sm::LidScheme;

use super::choice::{Word, choice};

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
    #[arg(long, value_name = "WHEN", value_parser = choice(LID_SCHEMES), requires = "vfs")]
    pub(crate) lids: Option<LidScheme>,

    /// Whether a virtual machine takes its GUID along when it moves [default: static]
    #[arg(long, value_name = "WHICH", value_parser = choice(GUIDS), requires = "vfs")]
    pub(crate) vm_guids: Option<Guids>,

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

/// When virtual functions get their LIDs.
pub(super) const LID_SCHEMES: &[Word<LidScheme>] = &[
    (
        "prepopulated",
        "At the start: all functions are plugged in, and each has a LID",
        LidScheme::Prepopulated,
    ),
    (
        "dynamic",
        "When a virtual machine boots on them: all functions are unplugged at first",
        LidScheme::Dynamic,
    ),
];

/// Whether a virtual machine keeps its GUID.
const GUIDS: &[Word<Guids>] = &[
    ("static", "It does", Guids::Static),
    (
        "dynamic",
        "GUIDs stay with functions, and peers look a machine's name up: with --lids dynamic --vm-lids-stay true",
        Guids::Dynamic,
    ),
];

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

    /// The functions that adapters get.
    pub(crate) fn functions(&self) -> Functions {
        Functions { counts: self.vfs.clone(), lids: self.lids.unwrap_or_default() }
    }
}
