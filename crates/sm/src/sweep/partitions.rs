//! The P_Key tables of ports, from the keys that they have (`p_keys.rs`, IBA 10.9).
//!
//! The default partition's key comes first in every table: ports reach the manager by it. Who is in no partition of the
//! operator's is a limited member of that one; the manager's own port is always a full one.

use weft_wire::{PKey, PKeyTable, PortNum};

use crate::knowledge::{FoundNode, PortAt, Subnet};
use crate::{Options, PartEnforce};

/// How many keys a block of a table has.
const PER_BLOCK: usize = 32;

/// What is written into one port: all blocks that it has, so that no key is left of those before.
pub(crate) fn blocks(subnet: &Subnet, at: PortAt, options: &Options) -> Vec<(u16, [u8; PKeyTable::SIZE])> {
    let (Some(keys), Some(node)) = (&subnet.keys, subnet.node(at.node)) else { return Vec::new() };
    let room = usize::from(room(node, at.port));
    let table = if is_end(node, at.port) {
        keys.table(subnet.end_guid(at), room)
    } else if enforced(subnet, at, options) != (false, false) {
        let Some(peer) = subnet.port(at).and_then(|port| port.peer) else { return Vec::new() };
        // The host's own memberships: what it sends must be among them, and what it gets must match one.
        keys.table(subnet.end_guid(peer), room)
    } else {
        return Vec::new();
    };
    let block = |number: usize| {
        let mut p_keys = [PKey(0); PER_BLOCK];
        p_keys.iter_mut().zip(table.iter().skip(number * PER_BLOCK)).for_each(|(place, key)| *place = *key);
        (number as u16, PKeyTable { p_keys }.encode())
    };
    (0..room.div_ceil(PER_BLOCK)).map(block).collect()
}

/// How many keys there are no places for in a port's own table.
pub(crate) fn left_over(subnet: &Subnet, at: PortAt) -> usize {
    let (Some(keys), Some(node)) = (&subnet.keys, subnet.node(at.node)) else { return 0 };
    keys.of(subnet.end_guid(at)).len().saturating_sub(usize::from(room(node, at.port)))
}

/// Whether a switch's port looks at what comes from the link, and at what goes to it. One that has no room for all of its
/// host's keys looks at nothing: it would drop what is allowed.
pub(crate) fn enforced(subnet: &Subnet, at: PortAt, options: &Options) -> (bool, bool) {
    let keys_of_peer = || {
        let peer = subnet.port(at)?.peer?;
        subnet.node(peer.node).filter(|node| !node.is_switch())?;
        Some(subnet.keys.as_ref()?.of(subnet.end_guid(peer)).len())
    };
    let (Some(node), Some(keys)) = (subnet.node(at.node), keys_of_peer()) else { return (false, false) };
    if !node.is_switch() || at.port == PortNum::ZERO || keys > usize::from(room(node, at.port)) {
        return (false, false);
    }
    match options.routing.part_enforce {
        PartEnforce::Both => (true, true),
        PartEnforce::In => (true, false),
        PartEnforce::Out => (false, true),
        PartEnforce::Off => (false, false),
    }
}

fn is_end(node: &FoundNode, port: PortNum) -> bool {
    (port == PortNum::ZERO) == node.is_switch()
}

fn room(node: &FoundNode, port: PortNum) -> u16 {
    if is_end(node, port) {
        node.info.partition_cap
    } else {
        node.switch.map_or(0, |switch| switch.partition_enforcement_cap)
    }
}

/// The modifier that names a block of a port's table: only a switch takes the port's number.
pub(crate) fn p_key_modifier(subnet: &Subnet, at: PortAt, block: u16) -> u32 {
    let port = if subnet.node(at.node).is_some_and(FoundNode::is_switch) { at.port.0 } else { 0 };
    u32::from(port) << 16 | u32::from(block)
}
