//! A set of nodes, as a partition has it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What separates the names in a text.
const SEPARATOR: char = ',';

/// One or more nodes. As text their names with commas between them, so a name with a comma cannot stand there: a node's id
/// or GUID can.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nodes<Node>(pub Vec<Node>);

impl<Node> Nodes<Node> {
    /// The same nodes named in another way.
    ///
    /// # Errors
    ///
    /// What `node` fails with.
    pub fn try_map<N, E>(self, node: impl FnMut(Node) -> Result<N, E>) -> Result<Nodes<N>, E> {
        self.0.into_iter().map(node).collect::<Result<_, E>>().map(Nodes)
    }
}

impl<Node: fmt::Display> fmt::Display for Nodes<Node> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, node) in self.0.iter().enumerate() {
            if place > 0 {
                write!(f, "{SEPARATOR}")?;
            }
            node.fmt(f)?;
        }
        Ok(())
    }
}

/// A text names no nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nodes are named with commas between them, as in `S-1,S-2`")]
pub struct BadNodes;

impl<Node: FromStr> FromStr for Nodes<Node> {
    type Err = BadNodes;

    fn from_str(text: &str) -> Result<Self, BadNodes> {
        let name = |name: &str| (!name.is_empty()).then(|| name.parse().ok())?;
        text.split(SEPARATOR).map(name).collect::<Option<_>>().map(Self).ok_or(BadNodes)
    }
}
