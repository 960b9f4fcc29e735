//! The SMPs that read what a device holds: its tables and states.

use weft_wire::PortNum;

use super::partitions::p_key_modifier;
use super::settings::{sl_to_vl_modifier, vl_arbitration_modifier};
use crate::knowledge::{Key, PortAt, Subnet};
use crate::requests::{Get, SmpRequest};

/// The SMP that reads a table or a state, and the port that it goes to; `None` for everything else that can be asked.
pub(super) fn reading(subnet: &Subnet, key: Key) -> Option<(PortAt, SmpRequest)> {
    let (at, get, modifier) = match key {
        Key::SwitchInfo(node) => (own_port(node), Get::SwitchInfo, 0),
        Key::Lft { node, block } => (own_port(node), Get::Lft, u32::from(block)),
        Key::PortInfo(at) => (at, Get::PortInfo, u32::from(at.port.0)),
        Key::SlToVl(at, input) => (at, Get::SlToVl, sl_to_vl_modifier(subnet, at, input)),
        Key::PKeys(at, block) => (at, Get::PKeys, p_key_modifier(subnet, at, block)),
        Key::VlArbitration(at, block) => (at, Get::VlArbitration, vl_arbitration_modifier(at, block)),
        _ => return None,
    };
    Some((at, SmpRequest::get(get, modifier)))
}

/// A switch's port 0.
pub(super) fn own_port(node: u32) -> PortAt {
    PortAt { node, port: PortNum::ZERO }
}
