//! Routing engines: from cabling and LIDs to tables.

mod minhop;

pub use minhop::minhop;
