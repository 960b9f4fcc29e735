#![no_main]
//! Fuzz target: see `weft_fuzz::gmp`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::gmp(bytes));
