//! Hops: `opensm-lid-matrix.dump`.

use std::fmt::{self, Write};

use weft_wire::{Guid, Lid};

use super::dump::{Dump, NO_PATH};

/// How headings begin.
pub(super) const HEADING: &str = "Switch: guid ";

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
