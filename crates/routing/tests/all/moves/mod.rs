//! Planners of moves of virtual machines.

use crate::trees;

mod common;
mod exhaustive;
mod large;
mod levels;
mod numbers;
mod random;
mod rebalance;
mod safety;
mod vswitches;
