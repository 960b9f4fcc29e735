//! A topology file's lines, before names are looked up.

use std::collections::BTreeMap;

use weft_wire::Guid;

use super::error::{ParseError, Position, Problem};
use crate::{LinkMasks, Node};

/// All that a file says.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) nodes: Vec<NodeDraft>,
    /// Which node has an id, its module's prefix included.
    pub(super) ids: BTreeMap<String, usize>,
    /// Which port has an alias, its module's prefix included.
    pub(super) aliases: BTreeMap<String, (usize, u8, Spot)>,
}

/// A node's header line and its port lines.
#[derive(Debug)]
pub(super) struct NodeDraft {
    /// The node so far, without cables.
    pub(super) node: Node,
    pub(super) spot: Spot,
    /// Its port lines by number.
    pub(super) ports: BTreeMap<u8, PortDraft>,
    /// What the `width=`, `speed=` and `extspeed=` lines before it say of ports that say nothing themselves.
    pub(super) masks: Option<LinkMasks>,
}

/// A port's line.
#[derive(Debug)]
pub(super) struct PortDraft {
    pub(super) spot: Spot,
    /// The port's own GUID in parentheses.
    pub(super) guid: Option<Guid>,
    /// What the line says of width and speed.
    pub(super) masks: Option<LinkMasks>,
    /// Where the cable leads; an alias line does not say.
    pub(super) remote: Option<RemoteDraft>,
}

/// What a port's line says of the other end.
#[derive(Debug)]
pub(super) struct RemoteDraft {
    pub(super) spot: Spot,
    /// The node's id or an alias, as written.
    pub(super) name: String,
    /// The module whose prefix the name may want.
    pub(super) module: String,
    /// The port and where it is written; without one it is port 1.
    pub(super) port: Option<(u64, Spot)>,
    pub(super) guid: Option<(Guid, Spot)>,
    pub(super) lid: super::comment::LidLmc,
}

/// A place in a file and what stands there, kept for errors that show only once the whole file is read.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub(super) place: Position,
    pub(super) text: String,
}

impl Spot {
    pub(super) fn error(&self, problem: impl Into<Box<Problem>>) -> ParseError {
        let problem = problem.into();
        let Position { file, line, column } = self.place.clone();
        ParseError { file, line, column, text: self.text.clone(), problem, hint: None }
    }
}
