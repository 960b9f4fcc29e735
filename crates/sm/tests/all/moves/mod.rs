//! Moves of LIDs over a scripted fabric of virtualised adapters: what is written, what is answered, and what is refused.

#![allow(unreachable_pub)]

use crate::fake;
use crate::sa::client;
mod site;

mod away;
mod broken;
mod drains;
mod late;
mod levels;
mod moved;
mod partner;
mod rebalance;
mod refused;
mod together;
mod unproved;
