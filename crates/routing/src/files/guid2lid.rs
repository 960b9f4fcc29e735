//! LIDs by port, kept from one run to the next, in the shape of OpenSM's `guid2lid` file.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use weft_topology::{Fabric, PortRef};
use weft_wire::{Guid, Lid};

use super::error::{FileError, FileProblem};
use super::scan;
use crate::lids::{LidError, Lids};
use crate::sorted;

/// How many LIDs a port has at most: its LMC is 0 to 7.
const LIDS_MAX: u16 = 1 << 7;

/// LIDs by port GUID. Its text is `0xguid 0xmin 0xmax` and a blank line for each port, in order of GUIDs: without the blank
/// line, OpenSM takes the rest of the file for a part of the first entry. Reading takes any blank lines and `#` comments.
///
/// ```
/// use weft_routing::files::GuidToLid;
/// let known = GuidToLid::parse("guid2lid", "0x0002c90300000001 0x0003 0x0003\n").unwrap();
/// assert_eq!(known.to_string(), "0x0002c90300000001 0x0003 0x0003\n\n");
/// let error = GuidToLid::parse("guid2lid", "0x1 0x2 0x2\n0x1 five").unwrap_err();
/// assert_eq!(error.to_string(), "guid2lid:2:5: a LID is 0x1 to 0xbfff: `five`");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GuidToLid {
    ranges: BTreeMap<Guid, LidRange>,
}

/// A port's LIDs: the base LID and, with an LMC, those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LidRange {
    /// The base LID.
    pub min: Lid,
    /// The last LID.
    pub max: Lid,
}

impl LidRange {
    /// The 2^lmc LIDs from `base`, if they can be a port's.
    pub fn aligned(base: Lid, lmc: u8) -> Option<Self> {
        let count = 1u16 << lmc.min(7);
        let max = Lid(base.0.checked_add(count - 1)?);
        let fits = base.is_unicast() && max.is_unicast() && base.0.is_multiple_of(count);
        fits.then_some(Self { min: base, max })
    }

    /// The LMC that stands for this many LIDs.
    pub fn lmc(self) -> u8 {
        (self.max.0.saturating_sub(self.min.0).saturating_add(1)).ilog2() as u8
    }
}

impl GuidToLid {
    /// Reads a file.
    pub fn parse(file: &str, text: &str) -> Result<Self, FileError> {
        let mut known = Self::default();
        // By last LID, so that the one range that may overlap a new one is found at once.
        let mut taken: BTreeMap<Lid, (Lid, Guid)> = BTreeMap::new();
        for mut line in scan::lines(file, text, true) {
            let word = line.word("a GUID")?;
            let guid = word.guid()?;
            let first = line.word("the first LID")?;
            let min = first.lid()?;
            let last = line.word("the last LID")?;
            let max = last.lid()?;
            line.end()?;
            if max < min {
                return Err(last.error(FileProblem::Order));
            }
            let count = max.0 - min.0 + 1;
            if !count.is_power_of_two() || count > LIDS_MAX {
                return Err(last.error(FileProblem::Count(count)));
            }
            if !min.0.is_multiple_of(count) {
                return Err(first.error(FileProblem::Misaligned(count)));
            }
            if let Some((_, (first, owner))) = taken.range(min..).next()
                && *first <= max
                && *owner != guid
            {
                return Err(word.error(FileProblem::Overlap(*owner)));
            }
            if known.ranges.insert(guid, LidRange { min, max }).is_some() {
                return Err(word.error(FileProblem::Twice(guid.to_string())));
            }
            taken.insert(max, (min, guid));
        }
        Ok(known)
    }

    /// What a fabric's end ports have. Of a port with LIDs of virtual functions, its own.
    pub fn of(fabric: &Fabric, lids: &Lids) -> Self {
        let mut known = Self::default();
        for lids in lids.iter() {
            let Some(port) = fabric.port(lids.port) else { continue };
            let max = lids.iter().last().unwrap_or(lids.base);
            known.ranges.entry(port.guid).or_insert(LidRange { min: lids.base, max });
        }
        known
    }

    /// The LIDs of a fabric's end ports. Ports of others are passed over; ports without a line get none.
    pub fn lids(&self, fabric: &Fabric) -> Result<Lids, LidError> {
        let mut found: Vec<(LidRange, PortRef)> = Vec::new();
        for (index, node) in fabric.iter() {
            for (number, port) in node.end_ports() {
                let range = self.range(port.guid);
                found.extend(range.map(|range| (range, PortRef::new(index, number))));
            }
        }
        sorted::by_key(&mut found, |item| *item);
        let mut lids = Lids::new();
        for (range, port) in found {
            lids.insert(port, range.min, range.lmc())?;
        }
        Ok(lids)
    }

    /// The LIDs of this port.
    pub fn range(&self, port_guid: Guid) -> Option<LidRange> {
        self.ranges.get(&port_guid).copied()
    }

    /// All ports, in order of GUIDs.
    pub fn iter(&self) -> impl Iterator<Item = (Guid, LidRange)> {
        self.ranges.iter().map(|(guid, range)| (*guid, *range))
    }

    /// How many ports.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Notes the LIDs of a port.
    pub fn insert(&mut self, port_guid: Guid, range: LidRange) {
        self.ranges.insert(port_guid, range);
    }

    /// Forgets the LIDs of a port.
    pub fn remove(&mut self, port_guid: Guid) {
        self.ranges.remove(&port_guid);
    }
}

impl fmt::Display for GuidToLid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = self.iter();
        lines.try_for_each(|(guid, lids)| writeln!(f, "{guid} 0x{:04x} 0x{:04x}\n", lids.min.0, lids.max.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(text: &str) -> String {
        GuidToLid::parse("f", text).unwrap_err().to_string()
    }

    #[test]
    fn blank_lines_and_comments_are_passed_over() {
        let known = GuidToLid::parse("f", "# LIDs\n\n0x2 0x1 0x1\n0x1 0x0004 0x7 # two\n").unwrap();
        assert_eq!(known.len(), 2);
        assert_eq!(known.range(Guid(1)), Some(LidRange { min: Lid(4), max: Lid(7) }));
        let written = "0x0000000000000001 0x0004 0x0007\n\n0x0000000000000002 0x0001 0x0001\n\n";
        assert_eq!(known.to_string(), written);
    }

    #[test]
    fn errors_name_the_place() {
        assert!(error("\nxyz 1 1").starts_with("f:2:1: expected a GUID"));
        assert_eq!(error("0x1 0xc000 0xc000"), "f:1:5: a LID is 0x1 to 0xbfff: `0xc000`");
        assert_eq!(error("0x1 0x0 0x1"), "f:1:5: a LID is 0x1 to 0xbfff: `0x0`");
        assert_eq!(error("0x1 0x1"), "f:1:8: expected the last LID");
        assert_eq!(error("0x1 0x1 0x1 0x1"), "f:1:13: the line ends before this: `0x1`");
        assert_eq!(error("0x1 0x2 0x1"), "f:1:9: the LIDs end before they begin: `0x1`");
        let twice = "f:2:1: 0x0000000000000001 stands here for the second time: `0x1`";
        assert_eq!(error("0x1 0x2 0x2\n0x1 0x3 0x3"), twice);
        let overlap = "f:2:1: 0x0000000000000001 has some of these LIDs already: `0x2`";
        assert_eq!(error("0x1 0x4 0x7\n0x2 0x6 0x7"), overlap);
        assert_eq!(
            error("0x1 0x4 0x5\n0x2 0x0008 0x000f\n0x3 0x4 0x7"),
            overlap.replace("f:2", "f:3").replace("0x2", "0x3")
        );
        let count = "f:2:9: a port has 1, 2, 4, 8, 16, 32, 64 or 128 LIDs, not 3: `0x4`";
        assert_eq!(error("0x1 0x1 0x1\n0x2 0x2 0x4"), count);
        let count = "f:1:11: a port has 1, 2, 4, 8, 16, 32, 64 or 128 LIDs, not 256: `0x1ff`";
        assert_eq!(error("0x1 0x100 0x1ff"), count);
        assert_eq!(error("0x1 0x2 0x5"), "f:1:5: the first of 4 LIDs must be a multiple of 4: `0x2`");
    }

    #[test]
    fn a_whole_space_of_lids_is_no_lmc() {
        assert_eq!(LidRange { min: Lid(0), max: Lid(u16::MAX) }.lmc(), 15);
        assert_eq!(LidRange { min: Lid(8), max: Lid(11) }.lmc(), 2);
    }

    proptest! {
        #[test]
        fn text_round_trips(guids in prop::collection::btree_set(1u64.., 0..40)) {
            let mut known = GuidToLid::default();
            for (at, guid) in guids.into_iter().enumerate() {
                let lid = Lid(at as u16 * 4 + 4);
                known.insert(Guid(guid), LidRange { min: lid, max: Lid(lid.0 + 3) });
            }
            prop_assert_eq!(GuidToLid::parse("f", &known.to_string()).unwrap(), known);
        }

        #[test]
        fn no_text_panics(text in "[0-9a-fx# \n]{0,60}") {
            let _ = GuidToLid::parse("f", &text);
        }
    }
}
