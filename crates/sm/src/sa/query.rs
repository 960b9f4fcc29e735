//! Queries, the records that match them, and their layout.
//!
//! A query names components of a record by a mask and says what they must be. Both become masks over the bytes of an
//! encoded record here, so that one comparison serves every type of record.

use weft_wire::{Mad, Row, SaMad, SaRecord, SmKey, sa_status};

use super::sight::Sight;

/// The longest answer: half a million paths, which is all there are among 700 ports.
pub(super) const BYTES_MAX: usize = 32 << 20;

/// Bit 31 of a query's modifier: capabilities are the least that a port must have (IBA 15.2.5.3).
const CAPABILITIES_AT_LEAST: u32 = 1 << 31;

/// A request, as far as records are concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query<'a> {
    mad: &'a Mad,
    /// The component mask.
    pub(super) mask: u64,
    /// Whether it shows the key of who may know everything.
    pub(super) trusted: bool,
    /// The ports that the requester may see.
    pub(super) sight: Sight<'a>,
}

/// Records, one after the other, each filled up to AttributeOffset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) bytes: Vec<u8>,
    pub(super) count: usize,
    /// In 8-byte units; 0 where there are no records.
    pub(super) offset: u16,
}

/// A component mask and the values that it is about, over a record's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    /// Bits that must be as wanted.
    exact: Vec<u8>,
    /// Bits that must be set where wanted.
    at_least: Vec<u8>,
    want: Vec<u8>,
}

impl<'a> Query<'a> {
    pub(super) fn new(mad: &'a Mad, sa_key: SmKey) -> Self {
        let shown = SaMad::sm_key.get(&mad.0);
        let trusted = shown == sa_key && shown != SmKey(0);
        Self { mad, mask: SaMad::component_mask.get(&mad.0), trusted, sight: Sight::All }
    }

    /// The record that it carries; what the mask leaves out may be anything.
    pub(super) fn record<R: SaRecord>(&self) -> R {
        R::from_bytes(&SaMad::data.get(&self.mad.0))
    }

    /// Whether the mask has this component.
    pub(super) fn names(&self, component: u32) -> bool {
        self.mask >> component & 1 == 1
    }

    /// Whether the mask has all of these components.
    pub(super) fn names_all(&self, components: u64) -> bool {
        self.mask & components == components
    }

    /// What matches. Bits of the mask beyond the record's components make no sense.
    pub(super) fn filter<R: SaRecord>(&self) -> Result<Filter, u16> {
        self.filter_of::<R>(&self.record(), self.mask)
    }

    /// Whether the mask has components of the record alone.
    pub(super) fn check<R: SaRecord>(&self) -> Result<(), u16> {
        check_mask::<R>(self.mask)
    }

    /// The same for another record and mask.
    pub(super) fn filter_of<R: SaRecord>(&self, record: &R, mask: u64) -> Result<Filter, u16> {
        check_mask::<R>(mask)?;
        let mut want = Vec::with_capacity(R::LENGTH);
        record.append_to(&mut want);
        let mut filter = Filter { exact: vec![0; R::LENGTH], at_least: vec![0; R::LENGTH], want };
        for (bit, row) in R::COMPONENTS.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1) {
            cover(&mut filter.exact, R::COMPONENTS[bit], row.width);
        }
        Ok(filter)
    }

    /// Takes components out of an exact comparison, to be compared as the least that a record must have.
    pub(super) fn capabilities_at_least(&self) -> bool {
        self.mad.attribute_modifier() & CAPABILITIES_AT_LEAST != 0
    }
}

fn check_mask<R: SaRecord>(mask: u64) -> Result<(), u16> {
    let beyond = mask.checked_shr(R::COMPONENTS.len() as u32).unwrap_or(0);
    if beyond == 0 { Ok(()) } else { Err(sa_status::REQ_INVALID) }
}

/// Sets the bits of a row.
fn cover(mask: &mut [u8], row: Row, width: usize) {
    for bit in row.first..row.first + width {
        mask[bit / 8] |= 0x80 >> (bit % 8);
    }
}

impl Filter {
    /// What is no condition at all.
    pub(super) fn ignore(&mut self, row: Row) {
        for bit in row.first..row.first + row.width {
            self.exact[bit / 8] &= !(0x80 >> (bit % 8));
        }
    }

    /// What is a condition on the bits alone that are wanted.
    pub(super) fn loosen(&mut self, row: Row) {
        let is_condition = self.exact[row.first / 8] & 0x80 >> (row.first % 8) != 0;
        if is_condition {
            self.ignore(row);
            cover(&mut self.at_least, row, row.width);
        }
    }

    /// Whether a record has what is wanted.
    pub(super) fn matches(&self, record: &[u8]) -> bool {
        let conditions = self.exact.iter().zip(&self.at_least).zip(&self.want);
        record
            .iter()
            .zip(conditions)
            .all(|(have, ((exact, at_least), want))| (have ^ want) & exact | !have & want & at_least == 0)
    }

    /// Those of the records that match.
    pub(super) fn select<R: SaRecord>(&self, records: impl Iterator<Item = R>) -> Result<Found, u16> {
        let (mut found, mut bytes) = (Found::new::<R>(), Vec::with_capacity(R::LENGTH));
        for record in records {
            bytes.clear();
            record.append_to(&mut bytes);
            if self.matches(&bytes) {
                found.add_bytes(&bytes)?;
            }
        }
        Ok(found)
    }
}

impl Found {
    pub(super) fn new<R: SaRecord>() -> Self {
        Self { bytes: Vec::new(), count: 0, offset: R::OFFSET }
    }

    pub(super) fn one<R: SaRecord>(record: &R) -> Self {
        let mut found = Self::new::<R>();
        record.append_to(&mut found.bytes);
        found.fill_up();
        found
    }

    pub(super) fn add<R: SaRecord>(&mut self, record: &R) -> Result<(), u16> {
        record.append_to(&mut self.bytes);
        self.fill_up();
        self.check()
    }

    fn add_bytes(&mut self, record: &[u8]) -> Result<(), u16> {
        self.bytes.extend_from_slice(record);
        self.fill_up();
        self.check()
    }

    fn fill_up(&mut self) {
        self.count += 1;
        self.bytes.resize(self.count * usize::from(self.offset) * 8, 0);
    }

    fn check(&self) -> Result<(), u16> {
        if self.bytes.len() > BYTES_MAX { Err(sa_status::NO_RESOURCES) } else { Ok(()) }
    }

    /// The only record; an error where there is none, or more than one.
    pub(super) fn exactly_one(self) -> Result<Self, u16> {
        match self.count {
            0 => Err(sa_status::NO_RECORDS),
            1 => Ok(self),
            _ => Err(sa_status::TOO_MANY_RECORDS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_wire::{Lid, LinkRecord, PathRecord, PortNum};

    fn query_for(mask: u64, record: &impl SaRecord) -> Mad {
        let (mut mad, mut bytes) = (Mad::default(), Vec::new());
        record.append_to(&mut bytes);
        mad.0[56..56 + bytes.len()].copy_from_slice(&bytes);
        SaMad::component_mask.set(&mut mad.0, mask);
        SaMad::sm_key.set(&mut mad.0, SmKey(1));
        mad
    }

    fn cable(from: u16, port: u8) -> LinkRecord {
        LinkRecord { from_lid: Lid(from), from_port: PortNum(port), to_port: PortNum(9), to_lid: Lid(99) }
    }

    #[test]
    fn a_mask_selects_by_its_components_alone() {
        let records = [cable(1, 1), cable(1, 2), cable(2, 1)];
        let select = |mask| {
            let mad = query_for(mask, &cable(1, 2));
            let query = Query::new(&mad, SmKey(1));
            query.filter::<LinkRecord>().and_then(|f| f.select(records.into_iter())).map(|f| f.count)
        };
        assert_eq!([0, 0b1, 0b10, 0b11, 0b100].map(select), [Ok(3), Ok(2), Ok(1), Ok(1), Ok(3)]);
        assert_eq!(select(0b1_0000), Err(sa_status::REQ_INVALID), "there is no fifth component");
    }

    #[test]
    fn records_are_filled_up_to_their_offset() {
        let mad = query_for(0, &cable(0, 0));
        let filter = Query::new(&mad, SmKey(1)).filter::<LinkRecord>().unwrap();
        let found = filter.select([cable(1, 1), cable(2, 2)].into_iter()).unwrap();
        assert_eq!((found.offset, found.bytes.len()), (1, 16));
        assert_eq!(found.bytes[8..], [0, 2, 2, 9, 0, 99, 0, 0]);
        assert_eq!(found.exactly_one(), Err(sa_status::TOO_MANY_RECORDS));
        assert_eq!(Found::new::<LinkRecord>().exactly_one(), Err(sa_status::NO_RECORDS));
    }

    #[test]
    fn a_wanted_bit_can_be_the_least_there_must_be() {
        let mad = query_for(1 << 5, &PathRecord { slid: Lid(0b0110), ..PathRecord::default() });
        let mut filter = Query::new(&mad, SmKey(1)).filter::<PathRecord>().unwrap();
        let slid = |slid| PathRecord { slid: Lid(slid), ..PathRecord::default() };
        let rows = || [slid(0b0110), slid(0b1111), slid(0b0100)].into_iter();
        assert_eq!(filter.select(rows()).unwrap().count, 1);
        filter.loosen(PathRecord::COMPONENTS[5]);
        filter.loosen(PathRecord::COMPONENTS[4]);
        assert_eq!(filter.select(rows()).unwrap().count, 2);
        filter.at_least.fill(0);
        assert_eq!(filter.select(rows()).unwrap().count, 3);
    }

    #[test]
    fn trust_is_a_key_that_is_not_zero() {
        let mad = query_for(0, &cable(0, 0));
        assert!(Query::new(&mad, SmKey(1)).trusted);
        assert!(!Query::new(&mad, SmKey(2)).trusted);
        assert!(!Query::new(&Mad::default(), SmKey(0)).trusted);
    }
}
