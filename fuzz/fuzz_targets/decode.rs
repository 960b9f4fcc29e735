#![no_main]
//! Fuzz target: see `weft_fuzz::decode`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::decode(bytes));
