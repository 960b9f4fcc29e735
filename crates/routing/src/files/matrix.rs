//! Hops: `opensm-lid-matrix.dump`.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use weft_topology::{Fabric, NodeIndex};
use weft_wire::{Guid, Lid};

use super::dump::{Dump, NO_PATH};
use super::error::{FileError, FileProblem};
use super::scan::{self, hexadecimal};
use super::tables::switch;

/// How headings begin.
pub(super) const HEADING: &str = "Switch: guid ";

/// How many hops each LID is from each switch by each of its ports, as `opensm-lid-matrix.dump` says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LidMatrix {
    rows: BTreeMap<NodeIndex, BTreeMap<Lid, Vec<u8>>>,
}

impl LidMatrix {
    /// Hops from a switch to a LID by port; at place 0 the least of them. `None` where the file has no row, and 255 in a
    /// row for a port that does not lead there.
    pub fn row(&self, switch: NodeIndex, lid: Lid) -> Option<&[u8]> {
        self.rows.get(&switch)?.get(&lid).map(Vec::as_slice)
    }

    /// All rows, switch by switch.
    pub fn iter(&self) -> impl Iterator<Item = (NodeIndex, Lid, &[u8])> {
        let rows = self.rows.iter();
        rows.flat_map(|(node, rows)| rows.iter().map(|(lid, row)| (*node, *lid, row.as_slice())))
    }
}

/// Reads `opensm-lid-matrix.dump`. Who has a LID stands there as a comment, and is passed over.
pub fn parse_lid_matrix(file: &str, text: &str, fabric: &Fabric) -> Result<LidMatrix, FileError> {
    let mut matrix = LidMatrix::default();
    let mut current = None;
    for mut line in scan::lines(file, text, true) {
        if line.text().starts_with(HEADING) {
            line.skip_past(HEADING);
            let word = line.word("the GUID of a switch")?;
            let node = switch(fabric, word)?;
            line.end()?;
            if matrix.rows.insert(node, BTreeMap::new()).is_some() {
                return Err(word.error(FileProblem::Twice(word.text.to_owned())));
            }
            current = Some(node);
            continue;
        }
        let word = line.word("a LID")?;
        let bare = word.without(":").filter(|word| word.text.starts_with("0x"));
        let bare = bare.ok_or_else(|| {
            word.error(FileProblem::Expected("a heading, or a LID that begins with 0x and ends with a colon"))
        })?;
        let lid = bare.lid()?;
        let node = current.ok_or_else(|| word.error(FileProblem::NoHeading))?;
        let (mut row, count) = (Vec::new(), usize::from(fabric.node(node).port_count()) + 1);
        while let Some(hops) = line.next() {
            if row.len() == count {
                return Err(hops.error(FileProblem::Surplus));
            }
            let number = hexadecimal(hops.text, u64::from(u8::MAX));
            row.push(number.ok_or_else(|| hops.error(FileProblem::Expected("hops, from 00 to ff")))? as u8);
        }
        row.resize(count, NO_PATH);
        if matrix.rows.entry(node).or_default().insert(lid, row).is_some() {
            return Err(word.error(FileProblem::Twice(bare.text.to_owned())));
        }
    }
    Ok(matrix)
}

impl Dump<'_> {
    /// Writes `opensm-lid-matrix.dump`: the least hops from each switch to each switch by each of its ports, over
    /// whichever path. Hosts have no rows, as in OpenSM with min-hop.
    pub fn lid_matrix(&self, out: &mut dyn Write) -> fmt::Result {
        let switches: Vec<(Lid, u32, Guid)> = self
            .lids
            .iter()
            .filter_map(|lids| {
                let guid = self.fabric.port(lids.port)?.guid;
                Some((lids.base, self.graph.number(lids.port.node)?, guid))
            })
            .collect();
        // A fabric of a thousand switches has millions of rows.
        let spelled: Vec<String> = (0..=u8::MAX).map(|hops| format!(" {hops:02x}")).collect();
        for from in self.switches() {
            writeln!(out, "{HEADING}{}", self.node(from).guid)?;
            for (lid, to, guid) in &switches {
                let hops = self.hops_by_port(from, *to);
                if hops[0] == NO_PATH {
                    continue;
                }
                write!(out, "0x{:04x}:", lid.0)?;
                hops.iter().try_for_each(|hops| out.write_str(&spelled[usize::from(*hops)]))?;
                writeln!(out, " # portguid {guid}")?;
            }
        }
        Ok(())
    }
}
