#![no_main]
//! Fuzz target: see `weft_fuzz::link`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::link(bytes));
