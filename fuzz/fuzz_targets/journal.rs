#![no_main]
//! Fuzz target: see `weft_fuzz::journal`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::journal(bytes));
