#![no_main]
//! Fuzz target: see `weft_fuzz::packet`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::packet(bytes));
