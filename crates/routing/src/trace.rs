//! Following a packet through tables, one node at a time.

use std::fmt;

use serde::Serialize;
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Lid, PortNum};

use crate::lids::Lids;
use crate::tables::Routes;

/// One node on a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hop {
    /// The node.
    pub node: NodeIndex,
    /// Its id.
    pub id: String,
    /// The port by which the packet comes in; 0 at the node where it begins.
    pub entry: PortNum,
    /// The port by which it leaves; 0 at the node where it ends.
    pub exit: PortNum,
}

/// The nodes that a packet passes, first and last included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Path {
    /// In the order of the journey.
    pub hops: Vec<Hop>,
}

/// Why a packet does not arrive, and how far it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("from {from} to LID {to}: {problem}: {path}")]
pub struct TraceError {
    /// Where it began.
    pub from: String,
    /// Where it was to go.
    pub to: Lid,
    /// What went wrong at the last node of the path.
    pub problem: TraceProblem,
    /// How far it came.
    pub path: Path,
}

/// What can go wrong on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[non_exhaustive]
pub enum TraceProblem {
    /// No one has the destination's LID.
    #[error("nobody has this LID")]
    UnknownLid,
    /// The source has no cable.
    #[error("the source has no cable")]
    SourceNotCabled,
    /// The last switch's table has no entry for the LID.
    #[error("the last switch has no route")]
    NoRoute,
    /// The last switch's entry names a port that is not there or has no cable.
    #[error("the last switch sends it by a port without a cable")]
    NotCabled,
    /// The path comes back to a switch that it passed already.
    #[error("it goes round in a loop")]
    Loop,
    /// The packet ends at an end port that does not have the LID.
    #[error("it ends at the wrong node")]
    WrongNode,
}

/// The path from an end port to a LID by these tables.
///
/// # Panics
///
/// When `from` names a node that `fabric` does not have.
pub fn trace(
    fabric: &Fabric,
    lids: &Lids,
    routes: &Routes,
    from: PortRef,
    to: Lid,
) -> Result<Path, TraceError> {
    let mut walk = Walk { fabric, path: Path::default() };
    let problem = match lids.owner(to) {
        None => Some(TraceProblem::UnknownLid),
        Some(owner) => walk.go(routes, from, to, owner).err(),
    };
    match problem {
        None => Ok(walk.path),
        Some(problem) => {
            Err(TraceError { from: fabric.port_name(from).to_string(), to, problem, path: walk.path })
        }
    }
}

struct Walk<'a> {
    fabric: &'a Fabric,
    path: Path,
}

impl Walk<'_> {
    fn pass(&mut self, at: PortRef, exit: PortNum) {
        let id = self.fabric.node(at.node).id.clone();
        self.path.hops.push(Hop { node: at.node, id, entry: at.port, exit });
    }

    fn go(&mut self, routes: &Routes, from: PortRef, to: Lid, owner: PortRef) -> Result<(), TraceProblem> {
        let mut passed = vec![false; self.fabric.nodes().len()];
        let mut at = PortRef::new(from.node, PortNum::ZERO);
        if !self.fabric.node(from.node).is_switch() {
            if from == owner {
                self.pass(at, PortNum::ZERO);
                return Ok(());
            }
            self.pass(at, from.port);
            at = self.fabric.peer(from).ok_or(TraceProblem::SourceNotCabled)?;
        }
        loop {
            if !self.fabric.node(at.node).is_switch() {
                self.pass(at, PortNum::ZERO);
                return if at == owner { Ok(()) } else { Err(TraceProblem::WrongNode) };
            }
            let exit = routes.port(at.node, to);
            self.pass(at, exit);
            if passed[at.node.index()] {
                return Err(TraceProblem::Loop);
            }
            passed[at.node.index()] = true;
            match exit {
                PortNum::NONE => return Err(TraceProblem::NoRoute),
                PortNum::ZERO if at.node == owner.node => return Ok(()),
                PortNum::ZERO => return Err(TraceProblem::WrongNode),
                _ => {}
            }
            at = self.fabric.peer(PortRef::new(at.node, exit)).ok_or(TraceProblem::NotCabled)?;
        }
    }
}

impl Path {
    /// How many cables it takes.
    pub fn cables(&self) -> usize {
        self.hops.len().saturating_sub(1)
    }
}

impl fmt::Display for Path {
    /// `H-a[1] -> [4]S-b[7] -> [1]H-c`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, hop) in self.hops.iter().enumerate() {
            if place > 0 {
                write!(f, " -> [{}]", hop.entry)?;
            }
            f.write_str(&hop.id)?;
            match hop.exit {
                PortNum::ZERO => {}
                PortNum::NONE => f.write_str("[no route]")?,
                exit => write!(f, "[{exit}]")?,
            }
        }
        Ok(())
    }
}
