#![no_main]
//! Fuzz target: see `weft_fuzz::administration`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::administration(bytes));
