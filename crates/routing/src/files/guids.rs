//! Files of GUIDs (roots, compute nodes, I/O nodes, orders) and of weights.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use weft_wire::{Guid, Lid};

use super::error::{FileError, FileProblem};
use super::scan;

use crate::sorted;

/// Reads a list of GUIDs, one to a line; what follows a GUID on its line is a name and is passed over, as are blank
/// lines and `#` comments. So are the files that OpenSM takes for `root_guid_file`, `cn_guid_file`, `io_guid_file` and
/// `guid_routing_order_file`.
///
/// ```
/// use weft_routing::files::parse_guids;
/// use weft_wire::Guid;
/// let roots = parse_guids("roots", "# the spines\n0x8f10500200b50 spine 1\n").unwrap();
/// assert_eq!(roots, [Guid(0x8f1_0500_200b_50)]);
/// let error = parse_guids("roots", "8f10500200b50\n").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "roots:1:1: expected a GUID: 0x and up to 16 hexadecimal digits: `8f10500200b50`",
/// );
/// ```
pub fn parse_guids(file: &str, text: &str) -> Result<Vec<Guid>, FileError> {
    let mut guids = BTreeMap::new();
    for (place, mut line) in scan::lines(file, text, true).enumerate() {
        let word = line.word("a GUID")?;
        let guid = word.guid()?;
        if guids.insert(guid, place).is_some() {
            return Err(word.error(FileProblem::Twice(guid.to_string())));
        }
    }
    let mut order: Vec<(usize, Guid)> = guids.into_iter().map(|(guid, place)| (place, guid)).collect();
    sorted::by_key(&mut order, |item| *item);
    Ok(order.into_iter().map(|(_, guid)| guid).collect())
}

/// Reads weights of end ports, in this range: `0xguid weight` to a line, with blank lines and `#` comments between.
pub fn parse_weights(
    file: &str,
    text: &str,
    range: RangeInclusive<u32>,
) -> Result<BTreeMap<Guid, u32>, FileError> {
    let range = u64::from(*range.start())..=u64::from(*range.end());
    let weights = numbers(file, text, "a weight", range, scan::Word::guid)?;
    Ok(weights.into_iter().map(|(guid, weight)| (guid, weight as u32)).collect())
}

/// Reads how much data end ports received: `0xguid count` to a line, in whatever unit.
pub fn parse_counters(file: &str, text: &str) -> Result<BTreeMap<Guid, u64>, FileError> {
    numbers(file, text, "a count", 0..=u64::MAX, scan::Word::guid)
}

/// Reads weights of virtual machines, in this range: `LID weight` to a line, the LID decimal or hexadecimal with `0x`.
pub fn parse_vm_weights(
    file: &str,
    text: &str,
    range: RangeInclusive<u32>,
) -> Result<BTreeMap<Lid, u32>, FileError> {
    let range = u64::from(*range.start())..=u64::from(*range.end());
    let weights = numbers(file, text, "a weight", range, scan::Word::lid_of_either_base)?;
    Ok(weights.into_iter().map(|(lid, weight)| (lid, weight as u32)).collect())
}

fn numbers<'a, K: Ord + Copy + ToString>(
    file: &'a str,
    text: &'a str,
    what: &'static str,
    range: RangeInclusive<u64>,
    key: impl Fn(scan::Word<'a>) -> Result<K, FileError>,
) -> Result<BTreeMap<K, u64>, FileError> {
    let mut numbers = BTreeMap::new();
    for mut line in scan::lines(file, text, true) {
        let word = line.word("whose number it is")?;
        let whose = key(word)?;
        let number = line.word(what)?.number(what, *range.start(), *range.end())?;
        line.end()?;
        if numbers.insert(whose, number).is_some() {
            return Err(word.error(FileProblem::Twice(whose.to_string())));
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guids_keep_their_order_and_come_once() {
        assert_eq!(parse_guids("f", "0x9\n\n0x3 # c\n 0x5 a name\n"), Ok(vec![Guid(9), Guid(3), Guid(5)]));
        let error = parse_guids("f", "0x9\n0x09\n").unwrap_err();
        assert_eq!(error.to_string(), "f:2:1: 0x0000000000000009 stands here for the second time: `0x09`");
    }

    #[test]
    fn weights_are_checked() {
        assert_eq!(parse_weights("f", "0x9 7\n0x3 1\n", 1..=100), Ok([(Guid(9), 7), (Guid(3), 1)].into()));
        assert_eq!(parse_vm_weights("f", "9 7\n0xa 1\n", 0..=9), Ok([(Lid(9), 7), (Lid(10), 1)].into()));
        assert_eq!(parse_counters("f", "0x9 18446744073709551615"), Ok([(Guid(9), u64::MAX)].into()));
        assert!(parse_counters("f", "0x9 18446744073709551616").is_err());
        for (text, says) in [
            ("0x9", "f:1:4: expected a weight"),
            ("0x9 0", "f:1:5: a weight must be 1 to 100: `0`"),
            ("0x9 -1", "f:1:5: a weight must be 1 to 100: `-1`"),
            ("0x9 101", "f:1:5: a weight must be 1 to 100: `101`"),
            ("0x9 1 1", "f:1:7: the line ends before this: `1`"),
        ] {
            assert_eq!(parse_weights("f", text, 1..=100).unwrap_err().to_string(), says);
        }
        assert_eq!(*parse_vm_weights("f", "0xc000 1", 0..=9).unwrap_err().problem, FileProblem::Lid);
    }
}
