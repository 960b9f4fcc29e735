//! One vocabulary of machines and of the control protocol: plain types for what a machine is asked and what it answers.
//! A machine takes and gives these types, and `control` carries them as JSON without a type of its own between.
//!
//! GUIDs are hexadecimal text where people read ([`HexGuid`], [`hex`]), and numbers in recordings; times are nanoseconds.

mod codes;
pub mod fields;
mod guid;
pub mod hex;
pub mod pm;
pub mod routing;
pub mod sm;
mod tagged;
pub mod traffic;
pub mod vm;
pub mod words;

pub use codes::{NodeKind, PhysState, PortState};
pub use guid::HexGuid;
