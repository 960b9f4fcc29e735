//! All integration tests of this crate in one executable: each more is linked for itself.

mod bring_up;
mod congestion;
mod fake;
mod learning;
mod moves;
mod odd_fabrics;
mod sa;
mod survey;
mod tenants;
mod transitions;
