//! Which port has which LIDs, kept from one run to the next, in the shape of OpenSM's `guid2lid` file.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weft_wire::{Guid, Lid};

/// LIDs by port GUID. Its text is one `0xguid 0xmin 0xmax` per line, in order of GUIDs; reading takes blank lines
/// and `#` comments as well.
///
/// ```
/// use weft_sm::GuidToLid;
/// let known: GuidToLid = "0x0002c90300000001 0x0003 0x0003\n".parse().unwrap();
/// assert_eq!(known.to_string(), "0x0002c90300000001 0x0003 0x0003\n");
/// let error = "0x1 0x2 0x2\n0x1 five".parse::<GuidToLid>().unwrap_err();
/// assert_eq!(error.to_string(), "line 2: `five` is no LID from 0x1 to 0xbfff");
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

/// Why a text is no `guid2lid` file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {kind}")]
pub struct GuidToLidError {
    /// Where, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub kind: GuidToLidErrorKind,
}

/// What may be wrong with a line of a `guid2lid` file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuidToLidErrorKind {
    /// Not a GUID.
    #[error("`{0}` is no GUID")]
    Guid(String),
    /// Not a unicast LID.
    #[error("`{0}` is no LID from 0x1 to 0xbfff")]
    Lid(String),
    /// Fewer or more than three words.
    #[error("a line has three words, `0xguid 0xmin 0xmax`, and not {0}")]
    Words(usize),
    /// The last LID comes before the first.
    #[error("the LIDs end before they begin")]
    Order,
    /// A GUID for the second time.
    #[error("{0} has LIDs already")]
    Twice(Guid),
    /// LIDs that another GUID has.
    #[error("{0} has some of these LIDs already")]
    Overlap(Guid),
}

impl GuidToLid {
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

    pub(crate) fn insert(&mut self, port_guid: Guid, range: LidRange) {
        self.ranges.insert(port_guid, range);
    }

    pub(crate) fn remove(&mut self, port_guid: Guid) {
        self.ranges.remove(&port_guid);
    }
}

impl fmt::Display for GuidToLid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = self.iter();
        lines.try_for_each(|(guid, lids)| writeln!(f, "{guid} 0x{:04x} 0x{:04x}", lids.min.0, lids.max.0))
    }
}

impl FromStr for GuidToLid {
    type Err = GuidToLidError;

    fn from_str(text: &str) -> Result<Self, GuidToLidError> {
        let mut known = Self::default();
        // By last LID, so that the one range that may overlap a new one is found at once.
        let mut taken: BTreeMap<Lid, (Lid, Guid)> = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            let fail = |kind| GuidToLidError { line: at + 1, kind };
            let line = line.split_once('#').map_or(line, |(before, _)| before);
            let Some((guid, range)) = parse_line(line).map_err(fail)? else { continue };
            if let Some((_, (min, owner))) = taken.range(range.min..).next()
                && *min <= range.max
                && *owner != guid
            {
                return Err(fail(GuidToLidErrorKind::Overlap(*owner)));
            }
            if known.ranges.insert(guid, range).is_some() {
                return Err(fail(GuidToLidErrorKind::Twice(guid)));
            }
            taken.insert(range.max, (range.min, guid));
        }
        Ok(known)
    }
}

fn parse_line(line: &str) -> Result<Option<(Guid, LidRange)>, GuidToLidErrorKind> {
    let mut words = line.split_whitespace();
    let Some(guid) = words.next() else { return Ok(None) };
    let guid: Guid = guid.parse().map_err(|_| GuidToLidErrorKind::Guid(guid.to_owned()))?;
    let mut lid = || {
        let Some(word) = words.next() else {
            return Err(GuidToLidErrorKind::Words(line.split_whitespace().count()));
        };
        let digits = word.strip_prefix("0x").unwrap_or(word);
        let lid = u16::from_str_radix(digits, 16).ok().map(Lid).filter(|lid| lid.is_unicast());
        lid.ok_or_else(|| GuidToLidErrorKind::Lid(word.to_owned()))
    };
    let range = LidRange { min: lid()?, max: lid()? };
    if words.next().is_some() {
        return Err(GuidToLidErrorKind::Words(line.split_whitespace().count()));
    }
    if range.max < range.min {
        return Err(GuidToLidErrorKind::Order);
    }
    Ok(Some((guid, range)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(text: &str) -> (usize, GuidToLidErrorKind) {
        let error = text.parse::<GuidToLid>().unwrap_err();
        (error.line, error.kind)
    }

    #[test]
    fn blank_lines_and_comments_are_passed_over() {
        let known: GuidToLid = "# LIDs\n\n0x2 0x1 0x1\n0x1 0x0004 0x7 # two\n".parse().unwrap();
        assert_eq!(known.len(), 2);
        assert_eq!(known.range(Guid(1)), Some(LidRange { min: Lid(4), max: Lid(7) }));
        assert_eq!(known.to_string(), "0x0000000000000001 0x0004 0x0007\n0x0000000000000002 0x0001 0x0001\n");
    }

    #[test]
    fn errors_name_the_line() {
        assert_eq!(error("\nxyz 1 1"), (2, GuidToLidErrorKind::Guid("xyz".into())));
        assert_eq!(error("0x1 0xc000 0xc000"), (1, GuidToLidErrorKind::Lid("0xc000".into())));
        assert_eq!(error("0x1 0x0 0x1"), (1, GuidToLidErrorKind::Lid("0x0".into())));
        assert_eq!(error("0x1 0x1"), (1, GuidToLidErrorKind::Words(2)));
        assert_eq!(error("0x1 0x1 0x1 0x1"), (1, GuidToLidErrorKind::Words(4)));
        assert_eq!(error("0x1 0x2 0x1"), (1, GuidToLidErrorKind::Order));
        assert_eq!(error("0x1 0x2 0x2\n0x1 0x3 0x3"), (2, GuidToLidErrorKind::Twice(Guid(1))));
        assert_eq!(error("0x1 0x2 0x5\n0x2 0x4 0x9"), (2, GuidToLidErrorKind::Overlap(Guid(1))));
        assert_eq!(error("0x1 0x4 0x5\n0x2 0x1 0x9"), (2, GuidToLidErrorKind::Overlap(Guid(1))));
    }

    proptest! {
        #[test]
        fn text_round_trips(guids in prop::collection::btree_set(1u64.., 0..40)) {
            let mut known = GuidToLid::default();
            for (at, guid) in guids.into_iter().enumerate() {
                let lid = Lid(at as u16 * 3 + 1);
                known.insert(Guid(guid), LidRange { min: lid, max: Lid(lid.0 + 2) });
            }
            prop_assert_eq!(known.to_string().parse::<GuidToLid>().unwrap(), known);
        }

        #[test]
        fn no_text_panics(text in "[0-9a-fx# \n]{0,60}") {
            let _ = text.parse::<GuidToLid>();
        }
    }
}
