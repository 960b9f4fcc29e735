#![no_main]
//! Fuzz target: see `weft_fuzz::notice`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::notice(bytes));
