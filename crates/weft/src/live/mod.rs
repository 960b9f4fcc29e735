//! What the verbs read from the fabric itself, with SMPs through an attached port, as any program could.

mod discover;
mod session;

pub(crate) use discover::{LiveFabric, LiveRouting, discover};
pub(crate) use session::{Session, limits};
