#![no_main]
//! Fuzz target: see `weft_fuzz::http_query`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::http_query(bytes));
