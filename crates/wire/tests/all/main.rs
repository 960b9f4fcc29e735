//! All integration tests of this crate in one executable: each more is linked for itself.

mod golden;
mod golden_fields;
mod round_trip;
mod sa_records;
mod tshark;
