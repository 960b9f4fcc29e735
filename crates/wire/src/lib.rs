//! InfiniBand's vocabulary and fixed-size formats.
//!
//! Every identifier is a newtype, every code an open enum whose unknown values survive, and every structure one
//! `layout!` table of first bit, width, name and type, from which the struct, `decode`, `encode`, the handles
//! that patch one field in place and the printable table all follow. A table with a gap, an overlap or a type
//! too narrow for its row does not compile. Sections cited as "IBA" are those of the InfiniBand Architecture
//! Specification, volume 1, release 1.3 and later.

mod ids;
mod value;

pub use ids::{
    Gid, GidPrefix, Guid, Lid, MKey, PKey, PortNum, QKey, QpNum, ServiceLevel, TransactionId, TrapNumber,
    VirtualLane,
};
pub use value::{Bits, Value};
