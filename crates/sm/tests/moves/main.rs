//! Moves of LIDs over a scripted fabric of virtualised adapters: what is written, what is answered, and what is refused.

#![allow(unreachable_pub)]

#[path = "../sa/client.rs"]
mod client;
#[path = "../fake/mod.rs"]
mod fake;
mod site;

mod away;
mod broken;
mod drains;
mod late;
mod moved;
mod partner;
mod rebalance;
mod refused;
mod together;
mod unproved;
