#![no_main]
//! Fuzz target: see `weft_fuzz::experiment`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::experiment(bytes));
