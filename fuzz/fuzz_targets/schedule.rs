#![no_main]
//! Fuzz target: see `weft_fuzz::schedule`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::schedule(bytes));
