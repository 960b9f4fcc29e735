//! Programs of libibumad: the kernel's ib_umad, as far as it has sockets. What becomes of their requests stands in the core
//! (`core/users.rs`, `core/issm.rs`).
//!
//! ```text
//!   serve.rs   accepts connections and reads them
//!   far.rs     connections of remote programs
//!   issm.rs    the file that makes a subnet manager of whoever holds it open
//! ```

mod far;
mod issm;
mod serve;

pub(crate) use far::converse;
pub(crate) use serve::{accept, listen};
