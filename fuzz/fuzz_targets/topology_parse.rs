#![no_main]
//! Fuzz target: see `weft_fuzz::topology_parse`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::topology_parse(bytes));
