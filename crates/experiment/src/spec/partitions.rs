//! Partitions of an experiment, and the weights of its hosts.

use serde::Serialize;
use weft_routing::{Isolation, Strictness};

/// Partitions, from a partitions file or from the tables of the experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionsSpec {
    /// A partitions file as OpenSM has them, relative to the experiment's.
    File(String),
    /// `[partition.NAME]`, in the order of the file.
    Tables {
        /// The partitions.
        list: Vec<PartitionSpec>,
        /// What happens where a policy cannot be met.
        policies: Strictness,
    },
}

/// One partition of the experiment's file. The default partition need not be named: every host is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionSpec {
    /// Its name.
    pub name: String,
    /// The lower 15 bits of its P_Key; the lowest that is free where nothing is said.
    pub p_key: Option<u16>,
    /// Full members: hosts by name or range, or `vm:NAME`.
    pub members: Vec<String>,
    /// Limited members, who talk to full ones alone.
    pub limited: Vec<String>,
    /// How well it is to be isolated (Zahid 2016, table 1).
    pub policy: Isolation,
}

/// How much traffic a host receives, of 1 to 100 (Zahid 2016, section 7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WeightSpec {
    /// Hosts by name or range.
    pub hosts: String,
    /// Their weight.
    pub weight: u32,
}
