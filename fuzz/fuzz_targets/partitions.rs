#![no_main]
//! Fuzz target: see `weft_fuzz::partitions`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::partitions(bytes));
