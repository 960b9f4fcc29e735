//! OpenSM's files, both ways: what it and the tools around it write and read, as text.
//!
//! ```text
//!   guid2lid ─────────────────────▶ GuidToLid ──▶ Lids
//!   opensm.fdbs, opensm-lfts.dump ▶ Routes                ┌──▶ the same files, as OpenSM shapes them
//!   opensm-sl2vl.dump ────────────▶ LaneMap        Dump ──┤
//!   psl (ibdmchk) ────────────────▶ ServiceLevels         └──▶ psl and slvl, as ibdmchk reads them
//!   opensm-subnet.lst ────────────▶ Fabric
//!   GUIDs, weights ───────────────▶ fields of EngineOptions
//!   tables, hops, lanes, levels ▶ SavedRouting, for the engine `file`
//!   Fabric, Routes ──────────────▶ ORCS's DOT graphs
//! ```
//!
//! Readers take any text, and say in one line what is wrong where: [`FileError`]. They are stricter than OpenSM, which
//! passes over much that it does not understand: what is skipped here is blank lines, `#` comments and what OpenSM
//! itself writes for people. Writers give the bytes that OpenSM 3.3.23 writes on a little-endian machine for the same
//! tables.

mod dot;
mod dump;
mod error;
mod guid2lid;
mod guids;
mod lanes;
mod levels;
mod matrix;
pub mod partitions;
mod saved;
mod saved_files;
mod scan;
mod subnet;
mod tables;

pub use dot::write_dot;
pub use dump::Dump;
pub use error::{FileError, FileProblem};
pub use guid2lid::{GuidToLid, LidRange};
pub use guids::{parse_counters, parse_guids, parse_vm_weights, parse_weights};
pub use lanes::{parse_sl2vl, parse_slvl};
pub use levels::parse_psl;
pub use saved::{Restored, SavedRouting};
pub use saved_files::{AddFile, SavedFiles};
pub use subnet::parse_subnet;
pub use tables::{Fdbs, parse_fdbs, parse_lfts};
