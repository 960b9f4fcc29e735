//! Surveys of the fabric itself, with SMPs through an attached port, as any program could make them.

mod session;
mod several;
mod sweep;
mod tables;

pub use session::{Session, limits};
pub use several::several;
pub use sweep::survey;
pub use tables::read_tables;
