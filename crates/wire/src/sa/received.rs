//! weft's own attribute by which a performance manager reports how much hosts receive.
//!
//! | request | what it does |
//! |---|---|
//! | `SubnAdmGet(ReceivedData)` | begins a report: the answer has its number. One with the number of an earlier report repeats it, for a manager that has restarted |
//! | `SubnAdmSet(ReceivedData)` | one part of it; when all parts have come, routing learns from them |

use super::record;
use crate::Guid;

layout! {
    /// One part of a report.
    pub struct ReceivedData: 200 {
        /// The report's number, as the subnet manager has given it; in a request for a number, that of the report that is repeated, or 0.
        0, 32, report: u32;
        /// The number of this part, from 0.
        32, 16, part: u16;
        /// How many there are, at most [`ReceivedData::PARTS_MAX`].
        48, 16, parts: u16;
        /// End ports; 0 where there is none.
        64, 768, guids: [Guid; 12];
        /// How many bytes each has received since the report before.
        832, 768, bytes: [u64; 12];
    }
}
record!(ReceivedData: RECEIVED_DATA, 5);

impl ReceivedData {
    /// How many ports one part has room for.
    pub const PORTS: usize = 12;

    /// The most parts of a report: enough for a port for each unicast LID.
    pub const PARTS_MAX: u16 = 4096;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lid, SA_DATA_SIZE};

    #[test]
    fn it_fills_a_mad_and_a_report_holds_every_lid() {
        assert_eq!(ReceivedData::SIZE, SA_DATA_SIZE);
        assert_eq!(ReceivedData::default().guids.len(), ReceivedData::PORTS);
        assert!(
            usize::from(ReceivedData::PARTS_MAX) * ReceivedData::PORTS >= usize::from(Lid::UNICAST_MAX.0)
        );
    }
}
