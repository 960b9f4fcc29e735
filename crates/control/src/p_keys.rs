//! P_Keys in tables of ports: what a change of the partitions writes, and what ports have no room for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_wire::PortNum;

use crate::HexGuid;

/// What other partitions have come to at a subnet manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartitionsTaken {
    /// Whether it writes them; a manager that stands by would when it takes over.
    pub in_charge: bool,
    /// Blocks of P_Key tables that it has written.
    pub smps: u64,
    /// Keys that wait until a place has rested that another key has left.
    pub waiting: u32,
    /// Ports that have not acknowledged that they have left.
    pub kept: u32,
    /// Keys that ports have no room for; 0 from a manager of a version before.
    #[serde(default)]
    pub left_out: u32,
}

/// A block of a P_Key table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeyBlock {
    /// The node.
    pub node: HexGuid,
    /// Its port.
    pub port: PortNum,
    /// The number of the block, of 32 keys.
    pub block: u16,
}

/// Which ports have no room for all their P_Keys, in one sentence: by GUID, how many are left out.
pub fn p_keys_missing(left_out: &BTreeMap<String, u32>) -> Option<String> {
    let (first, missing) = left_out.iter().next()?;
    let whose = match left_out.len() {
        1 => format!("1 port has no room for all P_Keys of its partitions: {first}"),
        ports => format!("{ports} ports have no room for all P_Keys of their partitions, such as {first}"),
    };
    Some(format!("{whose}, which lacks {missing}; more fit with a higher --p-key-capacity"))
}

/// Which ports are not as the partitions say, or not yet: a sentence each.
pub(crate) fn sentences(
    left_out: &BTreeMap<String, u32>,
    waiting: &BTreeMap<String, u32>,
    kept: &BTreeMap<String, bool>,
) -> Vec<String> {
    let missing = p_keys_missing(left_out);
    let waiting = waiting.iter().map(|(port, keys)| {
        let keys = weft_wire::count_of(*keys as usize, "P_Key");
        format!("{keys} of {port} wait until places that other keys have left are free")
    });
    let kept = kept.iter().map(|(port, is_cut_off)| {
        let how = if *is_cut_off { "its switch drops its packets" } else { "it may be in them still" };
        format!("{port} has not acknowledged that it has left some: {how}")
    });
    missing.into_iter().chain(waiting).chain(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_port_without_room_is_not_said_to_be_several() {
        let of = |ports: &[(&str, u32)]| {
            p_keys_missing(&ports.iter().map(|(port, keys)| ((*port).to_owned(), *keys)).collect())
        };
        let end = "which lacks 63; more fit with a higher --p-key-capacity";
        let one = format!("1 port has no room for all P_Keys of its partitions: 0x21, {end}");
        let two = format!("2 ports have no room for all P_Keys of their partitions, such as 0x21, {end}");
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("0x21", 63)]), Some(one));
        assert_eq!(of(&[("0x21", 63), ("0x31", 1)]), Some(two));
    }
}
