#![no_main]
//! Fuzz target: see `weft_fuzz::user_mad`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::user_mad(bytes));
