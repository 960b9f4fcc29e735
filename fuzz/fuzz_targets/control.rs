#![no_main]
//! Fuzz target: see `weft_fuzz::control`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::control(bytes));
