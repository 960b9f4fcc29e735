//! Tests of pictures: what is shown of generated and of real fabrics, that nothing overlaps, and what is written.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod pictures;
