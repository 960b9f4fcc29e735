#![no_main]
//! Fuzz target: see `weft_fuzz::umad_reply`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::umad_reply(bytes));
