//! Identities that no peer takes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

weft_wire::named! {
    /// What an agent proves itself with instead of its own identity.
    #[derive(PartialOrd, Ord, Hash)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
    pub enum BadIdentity {
        /// A certificate whose time is over.
        Expired = "expired",
        /// A certificate that is not valid yet.
        Future = "future",
        /// A certificate of another authority.
        Foreign = "foreign",
        /// A certificate of another node.
        Other = "other",
    }
}

/// A text is no bad identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a bad identity is expired, future, foreign or other")]
pub struct BadIdentityName;

impl FromStr for BadIdentity {
    type Err = BadIdentityName;

    fn from_str(text: &str) -> Result<Self, BadIdentityName> {
        Self::named(text).ok_or(BadIdentityName)
    }
}

/// A node whose agent presents a bad identity. As text `expired S-1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Presented<Node> {
    /// The node; its agent holds one identity for all its nodes.
    pub node: Node,
    /// What it presents.
    #[serde(rename = "as")]
    pub identity: BadIdentity,
}

impl<Node> Presented<Node> {
    /// The same with its node named in another way.
    ///
    /// # Errors
    ///
    /// What `node` fails with.
    pub fn try_map<N, E>(self, node: impl FnOnce(Node) -> Result<N, E>) -> Result<Presented<N>, E> {
        Ok(Presented { node: node(self.node)?, identity: self.identity })
    }

    /// What follows the word in its text: `expired S-1`.
    pub(crate) fn of(text: &str) -> Option<Self>
    where
        Node: FromStr,
    {
        let (identity, node) = text.split_once(' ')?;
        Some(Self { node: node.parse().ok()?, identity: identity.parse().ok()? })
    }
}

impl<Node: fmt::Display> fmt::Display for Presented<Node> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.identity, self.node)
    }
}
