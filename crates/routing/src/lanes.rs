//! Service levels of pairs of end ports, and the lanes that they mean.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_topology::NodeIndex;
use weft_wire::{Lid, PortNum, ServiceLevel, VirtualLane};

/// How many service levels there are.
pub const SERVICE_LEVELS: usize = 16;

/// The service level of every pair: sources and destinations are put into classes, and a matrix holds the level of
/// a source class to a destination class. Classes are what an engine makes of them: switches, LIDs or partitions.
///
/// What is in no class uses level 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceLevels {
    /// By LID, the row; [`NO_CLASS`] where it has none.
    rows: Vec<u16>,
    /// By LID, the column.
    columns: Vec<u16>,
    /// How many columns there are.
    width: usize,
    matrix: Vec<u8>,
}

/// A LID that moves, and the one whose classes it gets: that of a port at its new place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Takeover {
    /// The LID that moves.
    pub lid: Lid,
    /// The LID that has the classes.
    pub of: Lid,
}

/// A LID without a class.
const NO_CLASS: u16 = u16::MAX;

impl ServiceLevels {
    /// Level 0 for all.
    pub fn zero() -> Self {
        Self::default()
    }

    /// Level 0 for all pairs of `height` source classes and `width` destination classes, for LIDs up to `top`.
    pub fn classes(top: Lid, height: usize, width: usize) -> Self {
        let none = vec![NO_CLASS; usize::from(top.0) + 1];
        Self { rows: none.clone(), columns: none, width, matrix: vec![0; height * width] }
    }

    /// Puts a LID as a source into a class.
    ///
    /// # Panics
    ///
    /// When the LID is above the top.
    pub fn set_source(&mut self, lid: Lid, class: u16) {
        self.rows[usize::from(lid.0)] = class;
    }

    /// Puts a LID as a destination into a class.
    ///
    /// # Panics
    ///
    /// When the LID is above the top.
    pub fn set_destination(&mut self, lid: Lid, class: u16) {
        self.columns[usize::from(lid.0)] = class;
    }

    /// Puts a LID into a class of sources and the one of destinations of the same number.
    pub(crate) fn set_class(&mut self, lid: Lid, class: u16) {
        self.set_source(lid, class);
        self.set_destination(lid, class);
    }

    /// Puts a LID into the classes of another one, where there are classes.
    pub(crate) fn copy(&mut self, from: Lid, to: Lid) {
        let at = usize::from(to.0);
        let classes = [self.source_class(from), self.destination_class(from)];
        for (list, class) in [&mut self.rows, &mut self.columns].into_iter().zip(classes) {
            if list.is_empty() {
                continue;
            }
            if list.len() <= at {
                list.resize(at + 1, NO_CLASS);
            }
            list[at] = class.unwrap_or(NO_CLASS);
        }
    }

    /// Moves LIDs: each gets the classes that another one had, all at the same time.
    pub fn take_over(&mut self, all: &[Takeover]) {
        let before = self.clone();
        for Takeover { lid, of } in all {
            self.copy(*of, *lid);
            for (list, class) in [
                (&mut self.rows, before.source_class(*of)),
                (&mut self.columns, before.destination_class(*of)),
            ] {
                if let Some(place) = list.get_mut(usize::from(lid.0)) {
                    *place = class.unwrap_or(NO_CLASS);
                }
            }
        }
    }

    /// Sets the level from a source class to a destination class.
    ///
    /// # Panics
    ///
    /// When there is no such class.
    pub fn set(&mut self, source: u16, destination: u16, level: ServiceLevel) {
        self.matrix[usize::from(source) * self.width + usize::from(destination)] = level.0;
    }

    /// The levels of one source class, by destination class.
    ///
    /// # Panics
    ///
    /// When there is no such class.
    pub fn row_mut(&mut self, source: u16) -> &mut [u8] {
        let first = usize::from(source) * self.width;
        &mut self.matrix[first..first + self.width]
    }

    /// The level that a packet from `source` to `destination` uses.
    pub fn of(&self, source: Lid, destination: Lid) -> ServiceLevel {
        ServiceLevel(self.level(self.source_class(source), self.destination_class(destination)))
    }

    /// The level from a source class to a destination class, 0 to 15.
    pub(crate) fn level(&self, source: Option<u16>, destination: Option<u16>) -> u8 {
        let place =
            source.zip(destination).map(|(row, column)| usize::from(row) * self.width + usize::from(column));
        let level = place.and_then(|place| self.matrix.get(place)).copied().unwrap_or(0);
        level % SERVICE_LEVELS as u8
    }

    /// The levels that some pair may use, as bits.
    pub(crate) fn used(&self) -> u16 {
        self.matrix.iter().fold(1, |used, level| used | 1 << (level % SERVICE_LEVELS as u8))
    }

    /// Whether every class has its place in the matrix, and every level is one. What was read from a file may be anything.
    pub fn is_whole(&self) -> bool {
        let top = |classes: &[u16]| {
            classes.iter().filter(|class| **class != NO_CLASS).max().map_or(0, |top| usize::from(*top) + 1)
        };
        let (height, width) = (top(&self.rows), top(&self.columns));
        let fits = height.checked_mul(self.width).is_some_and(|places| places <= self.matrix.len());
        let even = self.width > 0 && self.matrix.len().is_multiple_of(self.width) || self.matrix.is_empty();
        fits && even
            && width <= self.width
            && self.matrix.iter().all(|level| usize::from(*level) < SERVICE_LEVELS)
    }

    /// The class of a LID as a source.
    pub fn source_class(&self, lid: Lid) -> Option<u16> {
        self.rows.get(usize::from(lid.0)).copied().filter(|class| *class != NO_CLASS)
    }

    /// The class of a LID as a destination.
    pub fn destination_class(&self, lid: Lid) -> Option<u16> {
        self.columns.get(usize::from(lid.0)).copied().filter(|class| *class != NO_CLASS)
    }

    /// The highest level that any pair of classes uses.
    pub fn highest(&self) -> ServiceLevel {
        ServiceLevel(self.matrix.iter().copied().max().unwrap_or(0))
    }
}

/// The lane that each service level takes.
pub type LaneRow = [VirtualLane; SERVICE_LEVELS];

/// The lane of each service level: one map for the whole fabric, and others where a port differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneMap {
    /// Where nothing else is said.
    pub everywhere: LaneRow,
    /// By node, input port and output port (SLtoVLMappingTable, IBA 14.2.5.8); the input port of an HCA is 0.
    pub exceptions: BTreeMap<(NodeIndex, PortNum, PortNum), LaneRow>,
}

impl Default for LaneMap {
    /// Level n takes lane n; level 15 drops, as lane 15 is for management.
    fn default() -> Self {
        Self {
            everywhere: std::array::from_fn(|level| VirtualLane(level as u8)),
            exceptions: BTreeMap::new(),
        }
    }
}

impl LaneMap {
    /// The lane by which a packet of a level leaves `node` by `exit`, having come in by `entry`.
    pub fn lane(&self, node: NodeIndex, entry: PortNum, exit: PortNum, level: ServiceLevel) -> VirtualLane {
        self.row(node, entry, exit)[usize::from(level.0) % SERVICE_LEVELS]
    }

    /// The lanes by which packets of each level leave `node` by `exit`, having come in by `entry`.
    pub fn row(&self, node: NodeIndex, entry: PortNum, exit: PortNum) -> &LaneRow {
        match self.exceptions.is_empty() {
            true => &self.everywhere,
            false => self.exceptions.get(&(node, entry, exit)).unwrap_or(&self.everywhere),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_without_classes_uses_level_0() {
        let mut levels = ServiceLevels::classes(Lid(9), 2, 3);
        levels.set_source(Lid(4), 1);
        levels.set_destination(Lid(5), 2);
        levels.set(1, 2, ServiceLevel(7));
        assert_eq!(levels.of(Lid(4), Lid(5)), ServiceLevel(7));
        assert_eq!(levels.of(Lid(5), Lid(4)), ServiceLevel(0));
        assert_eq!(levels.of(Lid(4), Lid(900)), ServiceLevel(0));
        assert_eq!(ServiceLevels::zero().of(Lid(4), Lid(5)), ServiceLevel(0));
        assert_eq!(levels.highest(), ServiceLevel(7));
    }

    #[test]
    fn levels_that_contradict_each_other_are_not_whole() {
        let mut levels = ServiceLevels::classes(Lid(9), 2, 3);
        levels.set_source(Lid(4), 1);
        levels.set_destination(Lid(5), 2);
        assert!(levels.is_whole() && ServiceLevels::zero().is_whole());
        let damages: [fn(&mut ServiceLevels); 5] = [
            |levels| levels.set_source(Lid(4), 2),
            |levels| levels.set_destination(Lid(5), 3),
            |levels| levels.matrix[0] = 16,
            |levels| levels.matrix.truncate(5),
            |levels| levels.width = usize::MAX,
        ];
        for damage in damages {
            let mut damaged = levels.clone();
            damage(&mut damaged);
            assert!(!damaged.is_whole(), "{damaged:?}");
        }
    }

    #[test]
    fn a_port_may_map_otherwise() {
        let mut map = LaneMap::default();
        let place = (NodeIndex(3), PortNum(1), PortNum(2));
        map.exceptions.insert(place, [VirtualLane(5); SERVICE_LEVELS]);
        assert_eq!(map.lane(place.0, place.1, place.2, ServiceLevel(2)), VirtualLane(5));
        assert_eq!(map.lane(place.0, place.2, place.1, ServiceLevel(2)), VirtualLane(2));
    }
}
