//! Looking a node up by any of its names, and the name that finds it.

use weft_wire::{Guid, Printable, is_unprintable};

use crate::{Fabric, NodeIndex, PortRef};

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
        let fits = |description: &str| {
            description
                .split_once(' ')
                .is_some_and(|(first, device)| first == host && !device.is_empty() && !device.contains(' '))
        };
        let mut adapters = self.hosts().filter(|(_, node)| fits(&node.description));
        let Some((first, _)) = adapters.next() else { return Err(FindError::NotFound(host.to_owned())) };
        let mut candidates: Vec<String> = adapters.map(|(_, node)| node.id.clone()).collect();
        if candidates.is_empty() {
            return Ok(first);
        }
        candidates.insert(0, self.node(first).id.clone());
        Err(FindError::Ambiguous { name: host.to_owned(), candidates })
    }

    /// The shortest name of a node for people that [`Fabric::find`] takes: its description, or its id where others
    /// have the description too, or where a terminal would not print it, or a file holds it [escaped](Printable).
    pub fn label(&self, index: NodeIndex) -> String {
        let node = self.node(index);
        let unique = self.by_description.get(&node.description) == Some(&Some(index));
        let finds = unique && self.find(&node.description) == Ok(index);
        let escaped = |c: char| is_unprintable(c) || c == '\\';
        let name = if finds && !node.description.contains(escaped) { &node.description } else { &node.id };
        Printable(name).to_string()
    }

    /// A port by its node's [label](Fabric::label): `leaf-3:12`.
    pub fn port_label(&self, port: PortRef) -> String {
        format!("{}:{}", self.label(port.node), port.port)
    }

    /// The node with an end port of this PortGUID.
    pub fn by_port_guid(&self, guid: Guid) -> Option<NodeIndex> {
        let has_it = |node: &crate::Node| node.end_ports().any(|(_, port)| port.guid == guid);
        self.iter().find(|(_, node)| has_it(node)).map(|(index, _)| index)
    }
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
