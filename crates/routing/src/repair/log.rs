//! Record of cut cables and of the rows that they moved.

use weft_topology::PortRef;
use weft_wire::Lid;

use super::{Ends, Row};

use crate::sorted;

/// Cuts, oldest first.
#[derive(Debug, Default)]
pub(super) struct Log {
    cuts: Vec<Cut>,
}

/// A cable that is cut, and the rows that had to move.
#[derive(Debug)]
struct Cut {
    cable: Ends,
    /// In the order of [`key`].
    rows: Vec<Row>,
}

/// LIDs first: the rows for one LID move together, for else they may lead in a circle.
fn key(row: &Row) -> (Lid, u32) {
    (row.lid, row.before.node.0)
}

fn same(a: Ends, b: Ends) -> bool {
    a == b || a == (b.1, b.0)
}

impl Log {
    pub(super) fn push(&mut self, cable: Ends, mut rows: Vec<Row>) {
        sorted::by_key(&mut rows, key);
        self.cuts.push(Cut { cable, rows });
    }

    pub(super) fn cables(&self) -> impl Iterator<Item = Ends> {
        self.cuts.iter().map(|cut| cut.cable)
    }

    /// The ports at both ends of all cables.
    pub(super) fn ports(&self) -> Vec<PortRef> {
        self.cables().flat_map(|(a, b)| [a, b]).collect()
    }

    pub(super) fn has(&self, cable: Ends) -> bool {
        self.cables().any(|other| same(other, cable))
    }

    /// Takes a cut out, and gives the rows that go back to what they were. The rows for a LID that a later cut has moved
    /// again, or that went by a cable which is cut now, stay until that cable is back, and then go back all the way.
    pub(super) fn undo(&mut self, cable: Ends) -> Option<Vec<Row>> {
        let place = self.cuts.iter().position(|cut| same(cut.cable, cable))?;
        let undone = self.cuts.remove(place);
        let mut back = Vec::new();
        for rows in undone.rows.chunk_by(|a, b| a.lid == b.lid) {
            let lid = rows[0].lid;
            let later =
                self.cuts.iter().skip(place).position(|cut| cut.moves(lid)).map(|later| place + later);
            let needed = || self.cuts.iter().position(|cut| rows.iter().any(|row| cut.is_end(row.before)));
            match later.or_else(needed) {
                Some(later) => self.cuts[later].absorb(rows),
                None => back.extend(rows.iter().map(Row::back)),
            }
        }
        Some(back)
    }
}

impl Cut {
    fn is_end(&self, port: PortRef) -> bool {
        port == self.cable.0 || port == self.cable.1
    }

    fn moves(&self, lid: Lid) -> bool {
        self.rows.binary_search_by_key(&lid, |row| row.lid).is_ok()
    }

    /// Takes on rows that were moved before.
    fn absorb(&mut self, earlier: &[Row]) {
        for row in earlier {
            match self.rows.binary_search_by_key(&key(row), key) {
                Ok(place) => self.rows[place].before = row.before,
                Err(place) => self.rows.insert(place, *row),
            }
        }
    }
}
