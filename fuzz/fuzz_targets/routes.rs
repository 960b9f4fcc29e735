#![no_main]
//! Fuzz target: see `weft_fuzz::routes`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::routes(bytes));
