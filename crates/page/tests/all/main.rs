//! The page without a laboratory: changes, tapes and the server.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod http;
mod patches;
mod tapes;
