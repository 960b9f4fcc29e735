//! Benchmarks: numbers of a laboratory, quoted only if the machine was quiet meanwhile.

mod attached;
mod bare_quic;
pub mod door;
pub mod lft;
pub mod moves;
mod own_lab;
mod placement;
mod quiet;
pub mod sa;
pub mod smp;
pub mod up;

pub use attached::{Options as SmpOptions, WINDOWS};
pub use bare_quic::echo;
pub use placement::Placement;
