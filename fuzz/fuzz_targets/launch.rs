#![no_main]
//! Fuzz target: see `weft_fuzz::launch`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::launch(bytes));
