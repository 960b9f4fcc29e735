//! `weft top`
