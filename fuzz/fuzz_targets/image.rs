#![no_main]
//! Fuzz target: see `weft_fuzz::image`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::image(bytes));
