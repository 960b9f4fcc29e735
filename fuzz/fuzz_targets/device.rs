#![no_main]
//! Fuzz target: see `weft_fuzz::device`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::device(bytes));
