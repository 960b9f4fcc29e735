//! The manager's knowledge of the fabric: nodes, ports and cables, what routing made of them, and what devices hold.

mod adapters;
mod changes;
mod held;
mod key;
mod layout;
mod learned;
mod p_keys;
mod routed;
mod subnet;

pub(crate) use adapters::Adapters;
pub(crate) use changes::{Cable, Changes};
pub(crate) use held::{Held, HeldPort, LftBlock, Memory, is_in_service, remember};
pub(crate) use key::{Key, PortAt, VlBlock};
pub(crate) use layout::{Arranged, Layout, Layouts, arrange};
pub(crate) use learned::Learned;
pub(crate) use p_keys::Keys;
pub(crate) use routed::{Mappings, Routed};
pub(crate) use subnet::{FoundNode, FoundPort, Subnet, graph_port, is_up, own_lid};
