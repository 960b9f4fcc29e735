//! The engines that spread LIDs over the ways that they allow: min-hop, up/down and dimension order.

mod dor;
mod minhop;
use crate::oracle;
mod parallel;
mod updn;
