//! Identities of processes and of people: issued by the laboratory's authority, read by their holders, renewed and revoked.

pub mod issue;
pub mod papers;
pub(crate) mod token;
