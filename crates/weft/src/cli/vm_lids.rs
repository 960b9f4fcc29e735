//! The arguments about LIDs of virtual functions.

use clap::{ArgAction, Args};
use weft_sm::SwitchLids;

use super::choice::{Word, choice};

/// Options of the subnet manager about LIDs of virtual functions.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Subnet manager")]
pub(crate) struct VmLidArgs {
    /// LID of a vSwitch
    #[arg(long, value_name = "WHICH", default_value = "own", value_parser = choice(SWITCH_LIDS))]
    pub(crate) switch_lids: SwitchLids,

    /// Maximum LIDs of virtual machines with --lids dynamic, those in quarantine included [default: no limit]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=49_151))]
    pub(crate) vm_lids_max: Option<u16>,

    /// Milliseconds until another machine may get the LID of one that is gone, with --lids dynamic [default: 40000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=86_400_000))]
    pub(crate) lid_quarantine_ms: Option<u64>,

    /// Leave LIDs with virtual functions, with --lids dynamic: a machine that moves gets another one, and is moved as under OpenSM
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub(crate) vm_lids_stay: bool,

    /// Notify subscribers to trap 69 when a machine is back with another LID, as with --vm-lids-stay true
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub(crate) signal_moves: bool,

    /// Carry out moves that no proof covers, where --method full or --update unordered is asked for: packets may loop or get lost
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub(crate) unproved_moves: bool,

    /// Give virtual machines fresh rows when the busiest link of a fresh routing carries less than this share of today's busiest
    /// link, 0.001 to 1 [default: never]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) rebalance_below: Option<u32>,
}

/// A share above 0 and up to 1, in thousandths.
fn share(text: &str) -> Result<u32, String> {
    let thousandths = text.parse::<f64>().map(|share| (share * 1000.0).round());
    match thousandths {
        Ok(thousandths) if (1.0..=1000.0).contains(&thousandths) => Ok(thousandths as u32),
        _ => Err("a share is a number from 0.001 to 1".into()),
    }
}

/// Which LID a vSwitch has.
const SWITCH_LIDS: &[Word<SwitchLids>] = &[
    ("own", "One of its own", SwitchLids::Own),
    (
        "shared",
        "The physical function's: one LID less for each host, and the vSwitch is managed by directed routes alone",
        SwitchLids::Shared,
    ),
];
