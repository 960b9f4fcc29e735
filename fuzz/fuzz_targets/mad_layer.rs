#![no_main]
//! Fuzz target: see `weft_fuzz::mad_layer`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::mad_layer(bytes));
