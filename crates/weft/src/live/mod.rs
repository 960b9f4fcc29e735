//! What the verbs read from the fabric itself, with SMPs through an attached port, as any program could.

mod session;
mod several;
mod survey;
mod tables;

pub(crate) use session::{Session, limits};
pub(crate) use several::several;
pub(crate) use survey::{discover, survey};
pub(crate) use tables::read_tables;
