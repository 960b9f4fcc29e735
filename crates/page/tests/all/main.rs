//! The page without a laboratory: changes, tapes and the server.

mod http;
mod patches;
mod tapes;
