//! Planners of moves of virtual machines.

#[path = "../trees/mod.rs"]
mod trees;

mod common;
mod exhaustive;
mod large;
mod numbers;
mod random;
mod rebalance;
mod safety;
mod vswitches;
