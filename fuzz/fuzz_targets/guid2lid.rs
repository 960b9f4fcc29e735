#![no_main]
//! Fuzz target: see `weft_fuzz::guid2lid`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::guid2lid(bytes));
