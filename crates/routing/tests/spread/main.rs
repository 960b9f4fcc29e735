//! The engines that spread LIDs over the ways that they allow: min-hop, up/down and dimension order.

mod dor;
mod minhop;
mod oracle;
mod updn;
