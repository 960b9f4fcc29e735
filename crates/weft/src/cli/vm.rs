//! The arguments of `vm`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use weft_control::vmm::{VmLate, VmMethod, VmUpdate};
use weft_wire::{Guid, PKey};

use super::TableArgs;
use super::choice::{Word, choice};

/// Verbs for virtual machines.
#[derive(Debug, Subcommand)]
pub(crate) enum VmVerb {
    /// Start a virtual machine, or a fleet of them
    Create(VmCreateArgs),
    /// List virtual machines, with UFM's field names in JSON
    Ls(TableArgs),
    /// Show which switches and blocks a move would write, in which order; nothing is sent to switches
    Plan(VmPlanArgs),
    /// Move a virtual machine to another host; it keeps its GUID and its LID
    Migrate(VmMigrateArgs),
    /// End a virtual machine, or take a lost one off the list
    Destroy(VmName),
    /// Give up a virtual machine that is lost, or whose host cannot be reached
    Forget(VmForgetArgs),
}

/// A virtual machine.
#[derive(Debug, Args)]
pub(crate) struct VmName {
    /// Virtual machine, as `weft vm ls` lists it
    pub(crate) name: String,
}

/// `vm create`
#[derive(Debug, Args)]
pub(crate) struct VmCreateArgs {
    /// Name: 1 to 64 letters, digits, `-`, `_` and `.`; machines of a fleet are NAME-1, NAME-2, …
    pub(crate) name: String,
    /// Host to start on: an HCA's description, GUID or id [default: the host with most free functions]
    #[arg(long, value_name = "NODE")]
    pub(crate) host: Option<String>,
    /// Number of machines of a fleet, spread evenly over hosts [default: one machine]
    #[arg(long, value_name = "COUNT")]
    pub(crate) count: Option<u32>,
    /// Virtual function of the host, from 1 [default: the first free one]
    #[arg(long, value_name = "VF", requires = "host")]
    pub(crate) vf: Option<u8>,
    /// Port GUID, with --lids dynamic [default: the manager chooses one]
    #[arg(long, value_name = "GUID")]
    pub(crate) guid: Option<Guid>,
    /// Partitions that it has to be in, such as 0x8001 (full member) or 0x0001 (limited member) [default: none is required]
    #[arg(long, value_name = "P_KEY,…", value_delimiter = ',', value_parser = p_key)]
    pub(crate) pkey: Vec<PKey>,
    /// Maximum data rate in each direction in Gb/s of fabric time; it moves with the machine [default: the adapter's]
    #[arg(long, value_name = "GBPS", value_parser = mbps)]
    pub(crate) rate: Option<u32>,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// A P_Key: 16 bits, in hex with 0x. The VM manager says which of them name partitions.
fn p_key(text: &str) -> Result<PKey, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let number = digits.map_or_else(|| text.parse(), |digits| u16::from_str_radix(digits, 16));
    number.map(PKey).map_err(|_| "a P_Key is a number of 16 bits, in hex with 0x, such as 0x8001".into())
}

/// The fastest rate that is taken, in Mb/s.
const MBPS_MAX: f64 = 4e6;

/// Gb/s as whole Mb/s.
fn mbps(text: &str) -> Result<u32, String> {
    let mbps = text.parse::<f64>().map(|gbps| (gbps * 1000.0).round());
    match mbps {
        Ok(mbps) if (1.0..=MBPS_MAX).contains(&mbps) => Ok(mbps as u32),
        _ => Err("a rate is a number of Gb/s from 0.001 to 4000".into()),
    }
}

/// How the subnet manager chooses the switches that it writes.
const METHODS: &[Word<VmMethod>] = &[
    ("ftreeminrc", "The fewest switches of a fat tree; falls back to the others", VmMethod::FtreeMinrc),
    ("itrc", "Every switch whose row differs", VmMethod::Itrc),
    ("skyline", "Every switch whose row does not lead nearer to the new place", VmMethod::Skyline),
    ("full", "Every block of every switch", VmMethod::Full),
];

/// What waits for what while switches are written.
const UPDATES: &[Word<VmUpdate>] = &[
    ("ordered", "A switch after the next written switch on its new path", VmUpdate::Ordered),
    (
        "ordered-late",
        "The same, but switches around the old place drop packets until those of the old way are gone",
        VmUpdate::OrderedLate,
    ),
    ("drop-first", "Packets are dropped first", VmUpdate::DropFirst),
    ("unordered", "All at once", VmUpdate::Unordered),
];

/// What is done where a new row could turn packets of the old way round and close a circle.
const LATE_ROWS: &[Word<VmLate>] = &[
    (
        "detour",
        "The switch sends packets a detour until those of the old way are gone, or drops them where there is none",
        VmLate::Detour,
    ),
    ("wait", "The switch drops packets until then", VmLate::Wait),
    ("refuse", "The move is refused", VmLate::Refuse),
];

/// Where to, and how the address follows.
#[derive(Debug, Args)]
pub(crate) struct VmWayArgs {
    /// Virtual machine, as `weft vm ls` lists it
    pub(crate) name: String,
    /// Host to move to: an HCA's description, GUID or id
    pub(crate) host: String,
    /// Choice of the switches to write
    #[arg(long, value_name = "METHOD", default_value = "ftreeminrc", value_parser = choice(METHODS))]
    pub(crate) method: VmMethod,
    /// Order of the writes
    #[arg(long, value_name = "ORDER", default_value = "ordered", value_parser = choice(UPDATES))]
    pub(crate) update: VmUpdate,
    /// Rows that are not safe while packets of the old way are under way
    #[arg(long, value_name = "POLICY", default_value = "detour", value_parser = choice(LATE_ROWS))]
    pub(crate) late: VmLate,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// `vm plan`
#[derive(Debug, Args)]
pub(crate) struct VmPlanArgs {
    /// Where to, and how
    #[command(flatten)]
    pub(crate) way: VmWayArgs,
    /// Write a picture of the move: where it is, where it goes, the switches that are written; the file's end says the format
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
}

/// `vm migrate`
#[derive(Debug, Args)]
pub(crate) struct VmMigrateArgs {
    /// Where to, and how
    #[command(flatten)]
    pub(crate) way: VmWayArgs,
    /// Shut it down and boot it there, rather than take its state along
    #[arg(long, conflicts_with_all = ["early_detach", "late_detach", "pre_copy", "stop_copy", "resume"])]
    pub(crate) cold: bool,
    /// Take its function away before its memory is copied
    #[arg(long)]
    pub(crate) early_detach: bool,
    /// Take its function away after its memory is copied [default]
    #[arg(long, conflicts_with = "early_detach")]
    pub(crate) late_detach: bool,
    /// Milliseconds that an emulated hypervisor copies memory while the machine runs
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub(crate) pre_copy: u64,
    /// Milliseconds that it copies the rest while the machine is stopped
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=30_000))]
    pub(crate) stop_copy: u64,
    /// Milliseconds that the machine takes to resume
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=30_000))]
    pub(crate) resume: u64,
}

/// `vm forget`
#[derive(Debug, Args)]
pub(crate) struct VmForgetArgs {
    /// Virtual machine, as `weft vm ls` lists it
    pub(crate) name: String,
    /// Also when it may still run: its host ends it when it returns
    #[arg(long)]
    pub(crate) force: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_p_keys_are_numbers_in_range() {
        assert_eq!((mbps("2.5"), mbps("0.001"), mbps("4000")), (Ok(2500), Ok(1), Ok(4_000_000)));
        for wrong in ["0", "0.0004", "-1", "NaN", "inf", "4000.001", "fast", ""] {
            assert!(mbps(wrong).is_err(), "{wrong}");
        }
        assert_eq!((p_key("0x8001"), p_key("1")), (Ok(PKey(0x8001)), Ok(PKey(1))));
        for wrong in ["0x10000", "-1", "0x", "65536", ""] {
            assert!(p_key(wrong).is_err(), "{wrong}");
        }
    }
}
