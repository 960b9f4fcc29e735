//! Looking a node up by any of its names, and the name that finds it.

use weft_wire::{Guid, NodeType, Printable, is_unprintable};

use crate::{Fabric, Node, NodeIndex, PortRef};

/// Why a name leads to no node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// Nothing has this name.
    #[error("no node has the id, description or GUID `{}`", Printable(.0))]
    NotFound(String),
    /// Several nodes have this description.
    #[error("`{}` is the description of {} nodes: {}", Printable(name), .candidates.len(), listed(.candidates))]
    Ambiguous {
        /// The name.
        name: String,
        /// The ids of the nodes that it fits.
        candidates: Vec<String>,
    },
    /// This host has several adapters.
    #[error("`{}` has {} adapters: {}", Printable(host), .adapters.len(), listed(.adapters))]
    SeveralAdapters {
        /// The host.
        host: String,
        /// The adapters' descriptions.
        adapters: Vec<String>,
    },
}

fn listed(candidates: &[String]) -> String {
    const SHOWN_MAX: usize = 8;
    let mut text = candidates.iter().take(SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    if candidates.len() > SHOWN_MAX {
        text.push_str(", …");
    }
    text
}

impl Fabric {
    /// The node with this id, else this NodeGUID or PortGUID in hexadecimal, else this description if only one
    /// node has it, else the adapter of this host if it has one alone: `host-3` for `host-3 mlx5_0`, as Linux describes them.
    pub fn find(&self, name: &str) -> Result<NodeIndex, FindError> {
        if let Some(index) = self.by_id(name) {
            return Ok(index);
        }
        if let Some(index) =
            guid(name).and_then(|guid| self.by_guid(guid).or_else(|| self.by_port_guid(guid)))
        {
            return Ok(index);
        }
        match self.by_description.get(name) {
            None => self.adapter_of(name),
            Some(Some(index)) => Ok(*index),
            Some(None) => {
                let named = self.nodes.iter().filter(|node| node.description == name);
                let candidates = named.map(|node| node.id.clone()).collect();
                Err(FindError::Ambiguous { name: name.to_owned(), candidates })
            }
        }
    }

    /// The adapter whose description is this host's name and the adapter's own.
    fn adapter_of(&self, host: &str) -> Result<NodeIndex, FindError> {
        match self.by_host.get(host) {
            None => Err(FindError::NotFound(host.to_owned())),
            Some(Some(index)) => Ok(*index),
            Some(None) => {
                let adapters = self.nodes.iter().filter(|node| host_of(node) == Some(host));
                let adapters = adapters.map(|node| Printable(&node.description).to_string()).collect();
                Err(FindError::SeveralAdapters { host: host.to_owned(), adapters })
            }
        }
    }

    /// What people call a node, whether or not others are called so: its host, where it is the host's only adapter and is
    /// described as Linux does it, else its description.
    pub fn name(&self, index: NodeIndex) -> &str {
        let node = self.node(index);
        let is_only = |host: &&str| self.by_host.get(*host) == Some(&Some(index));
        let host = host_of(node).filter(is_only).filter(|host| self.find(host) == Ok(index));
        host.unwrap_or(&node.description)
    }

    /// The shortest name of a node for people that [`Fabric::find`] takes: its [name](Fabric::name), or its id where others
    /// have the description too, or where a terminal would not print it, or a file holds it [escaped](Printable).
    pub fn label(&self, index: NodeIndex) -> String {
        let node = self.node(index);
        let name = self.name(index);
        let unique = self.by_description.get(&node.description) == Some(&Some(index));
        let finds = unique && self.find(name) == Ok(index);
        let escaped = |c: char| is_unprintable(c) || c == '\\';
        let name = if finds && !name.contains(escaped) { name } else { &node.id };
        Printable(name).to_string()
    }

    /// A port by its node's [label](Fabric::label): `leaf-3:12`.
    pub fn port_label(&self, port: PortRef) -> String {
        format!("{}:{}", self.label(port.node), port.port)
    }

    /// The node with an end port of this PortGUID.
    pub fn by_port_guid(&self, guid: Guid) -> Option<NodeIndex> {
        let has_it = |node: &Node| node.end_ports().any(|(_, port)| port.guid == guid);
        self.iter().find(|(_, node)| has_it(node)).map(|(index, _)| index)
    }
}

/// The host of an adapter that is described as Linux does it, by the host's name and the adapter's: `host-3` of `host-3 mlx5_0`.
/// Virtual functions are described by their host too, and do not stand for it.
pub(crate) fn host_of(node: &Node) -> Option<&str> {
    let (host, device) = node.description.split_once(' ').filter(|_| node.kind == NodeType::Hca)?;
    let is_function = device.strip_prefix("vf").is_some_and(|number| number.parse::<u16>().is_ok());
    // As kernels number them: `mlx5_0`, `HCA-1`.
    let is_device = device.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        && device.ends_with(|c: char| c.is_ascii_digit());
    (!host.is_empty() && !device.is_empty() && is_device && !is_function).then_some(host)
}

/// Hexadecimal with `0x`, or all 16 digits without or in an id of ibnetdiscover's form: shorter ones could be a
/// description.
fn guid(name: &str) -> Option<Guid> {
    let id = ["S-", "H-", "R-"].iter().find_map(|kind| name.strip_prefix(kind));
    let digits = match name.strip_prefix("0x") {
        Some(digits) => digits,
        None => Some(id.unwrap_or(name)).filter(|digits| digits.len() == 16)?,
    };
    u64::from_str_radix(digits, 16).ok().map(Guid)
}
