//! Files of other tools, both ways: text in, text out.

pub mod partitions;
