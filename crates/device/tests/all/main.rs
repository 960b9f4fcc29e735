//! All integration tests of this crate in one executable: each more is linked for itself.

mod credits;
mod cut_through;
mod data_properties;
mod fabric;
mod lane_shares;
mod properties;
mod shares;
