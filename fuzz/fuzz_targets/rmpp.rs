#![no_main]
//! Fuzz target: see `weft_fuzz::rmpp`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weft_fuzz::rmpp(bytes));
