#![no_main]
//! Fuzz target: see `weft_fuzz::bundle`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::bundle(bytes));
