//! PathRecords (IBA 15.2.5.16): which ways the tables make, and whether they are as good as is asked.
//!
//! Whoever leaves out the source or the destination means every port. One way is answered for each pair of LIDs: with
//! an LMC the n-th LID of the source goes with the n-th of the destination.

use weft_wire::{Gid, Lid, PKey, PathRate, PathRecord, Selector, ServiceLevel, sa_status};

use super::ends::End;
use super::query::{Found, Query};
use super::view::{MTU_LEAST, View, Way};
use crate::options::MANAGEMENT_LEVEL;

/// Bits of the component mask.
mod component {
    pub(super) const SERVICE_ID: [u32; 2] = [0, 1];
    pub(super) const DGID: u32 = 2;
    pub(super) const SGID: u32 = 3;
    pub(super) const DLID: u32 = 4;
    pub(super) const SLID: u32 = 5;
    pub(super) const RAW_TRAFFIC: u32 = 6;
    pub(super) const FLOW_LABEL: u32 = 8;
    pub(super) const TCLASS: u32 = 10;
    pub(super) const REVERSIBLE: u32 = 11;
    pub(super) const NUMB_PATH: u32 = 12;
    pub(super) const P_KEY: u32 = 13;
    pub(super) const QOS_CLASS: u32 = 14;
    pub(super) const SL: u32 = 15;
    pub(super) const MTU_SELECTOR: u32 = 16;
    pub(super) const MTU: u32 = 17;
    pub(super) const RATE_SELECTOR: u32 = 18;
    pub(super) const RATE: u32 = 19;
    pub(super) const LIFE_SELECTOR: u32 = 20;
    pub(super) const LIFE: u32 = 21;
    pub(super) const PREFERENCE: u32 = 22;
}

/// What a NumbPath that is not given stands for.
const PATHS_MAX: u8 = 0x7f;

/// A query for paths.
pub(super) struct PathQuery<'a> {
    query: &'a Query<'a>,
    wanted: PathRecord,
    view: &'a View,
    /// How long a packet may take at most.
    life_time: u8,
    /// How many ways from one port to another.
    paths: u8,
}

/// The ports that a query means at one end, and the LID of it that it means, if it says.
struct Side<'a> {
    ends: &'a [End],
    lid: Option<Lid>,
}

impl<'a> PathQuery<'a> {
    /// `single`: for the best way alone.
    pub(super) fn new(query: &'a Query<'a>, view: &'a View, life_time: u8, single: bool) -> Self {
        let wanted: PathRecord = query.record();
        let paths = match wanted.numb_path {
            _ if single => 1,
            given if query.names(component::NUMB_PATH) => given,
            _ => PATHS_MAX,
        };
        Self { query, wanted, view, life_time: life_time & 0x3f, paths }
    }

    /// The one way that is asked for.
    pub(super) fn get(&self) -> Result<Found, u16> {
        let gives = |gid, lid| self.query.names(gid) || self.query.names(lid);
        if !gives(component::SGID, component::SLID) || !gives(component::DGID, component::DLID) {
            return Err(sa_status::INSUFFICIENT_COMPONENTS);
        }
        self.table()?.exactly_one()
    }

    /// All ways that are asked for, in order of source LIDs, then destination LIDs.
    pub(super) fn table(&self) -> Result<Found, u16> {
        // Reject what has no meaning before anything is looked for.
        self.query.check::<PathRecord>()?;
        let from = self.side(component::SGID, self.wanted.sgid, component::SLID, self.wanted.slid)?;
        let to = self.side(component::DGID, self.wanted.dgid, component::DLID, self.wanted.dlid)?;
        let mut found = Found::new::<PathRecord>();
        if !self.is_possible() {
            return Ok(found);
        }
        let sees = |end: &&End| self.query.sight.sees(end.guid);
        let destinations: Vec<&End> = to.ends.iter().filter(sees).collect();
        for source in from.ends.iter().filter(sees) {
            for destination in &destinations {
                let pairs = lid_pairs(source, from.lid, destination, to.lid);
                let ways = pairs.filter_map(|(slid, dlid)| self.record(source, destination, slid, dlid));
                for record in ways.take(self.paths.into()) {
                    found.add(&record)?;
                }
            }
        }
        Ok(found)
    }

    /// The ports at one end.
    fn side(&self, gid_bit: u32, gid: Gid, lid_bit: u32, lid: Lid) -> Result<Side<'a>, u16> {
        let lid = Some(lid).filter(|_| self.query.names(lid_bit));
        let by_gid = match self.query.names(gid_bit) {
            true => {
                let end = self.view.by_gid(gid).filter(|end| self.query.sight.sees(end.guid));
                Some(end.ok_or(sa_status::REQ_INVALID_GID)?)
            }
            false => None,
        };
        let end = match (by_gid, lid) {
            (None, None) => return Ok(Side { ends: &self.view.ends, lid }),
            (Some(end), None) => Some(end),
            (by_gid, Some(lid)) => {
                self.view.by_lid(lid).filter(|end| by_gid.is_none_or(|other| other == *end))
            }
        };
        Ok(Side { ends: end.map_or(&[], std::slice::from_ref), lid })
    }

    /// Whether any way of this subnet can be meant: there is no raw traffic, and one way from LID to LID.
    fn is_possible(&self) -> bool {
        let wanted = &self.wanted;
        let names = |bit| self.query.names(bit);
        !(names(component::RAW_TRAFFIC) && wanted.raw_traffic
            || names(component::PREFERENCE) && wanted.preference != 0)
    }

    /// The way from one port's first LID to another's.
    pub(super) fn first(&self, source: &End, destination: &End) -> Option<PathRecord> {
        self.record(source, destination, source.lid, destination.lid)
    }

    /// The way from LID to LID, if there is one as good as is asked.
    fn record(&self, source: &End, destination: &End, slid: Lid, dlid: Lid) -> Option<PathRecord> {
        let p_key = self.p_key(source, destination)?;
        let forth = self.view.way(source, dlid)?;
        let back = self.view.way(destination, slid);
        let names = |bit| self.query.names(bit);
        if names(component::REVERSIBLE) && self.wanted.reversible && back.is_none() {
            return None;
        }
        // What is said of a reversible way must hold in both directions.
        let way = back.map_or(forth, |back| forth.and(back));
        let sl = self.service_level(way, self.view.level(slid, dlid))?;
        let rate = self.rate(way)?;
        let mtu = self.mtu(way)?;
        let packet_life_time = self.life_time(source == destination)?;
        let echoed = |bit, value: u32| if names(bit) { value } else { 0 };
        let service_id = self.wanted.service_id;
        Some(PathRecord {
            service_id: if component::SERVICE_ID.into_iter().all(names) { service_id } else { 0 },
            dgid: self.view.gid(destination.guid),
            sgid: self.view.gid(source.guid),
            dlid,
            slid,
            flow_label: echoed(component::FLOW_LABEL, self.wanted.flow_label),
            tclass: echoed(component::TCLASS, self.wanted.tclass.into()) as u8,
            reversible: back.is_some(),
            p_key,
            qos_class: echoed(component::QOS_CLASS, self.wanted.qos_class.into()) as u16,
            sl,
            mtu_selector: Selector::Exactly,
            mtu,
            rate_selector: Selector::Exactly,
            rate,
            packet_life_time_selector: Selector::Exactly,
            packet_life_time,
            ..PathRecord::default()
        })
    }

    /// The key that both ports have, of the partition that is asked for if one is. Where there are
    /// no partitions there is one, of which all are full members.
    fn p_key(&self, source: &End, destination: &End) -> Option<PKey> {
        let wanted = Some(self.wanted.p_key).filter(|_| self.query.names(component::P_KEY));
        match &self.view.keys {
            Some(keys) => keys.shared(source.guid, destination.guid, wanted),
            None => {
                let default = PKey::DEFAULT_FULL;
                wanted.is_none_or(|wanted| (wanted.0 ^ default.0) & 0x7fff == 0).then_some(default)
            }
        }
    }

    /// The service level that the routing has chosen for the pair; where it leaves the choice, the one that is asked
    /// for, or the lowest: tables are the same for all of them. Management's own is given to who asks for it.
    fn service_level(&self, way: Way, chosen: Option<ServiceLevel>) -> Option<ServiceLevel> {
        let usable = |sl: &u8| way.service_levels >> sl & 1 == 1;
        let wanted = Some(self.wanted.sl).filter(|_| self.query.names(component::SL));
        if self.view.manages_apart && wanted == Some(MANAGEMENT_LEVEL) {
            return wanted.filter(|sl| usable(&sl.0));
        }
        if let Some(chosen) = chosen {
            return Some(chosen).filter(|sl| usable(&sl.0) && wanted.is_none_or(|wanted| wanted == *sl));
        }
        wanted.map(|sl| sl.0).or_else(|| (0..16).find(usable)).filter(usable).map(ServiceLevel)
    }

    /// What the way can do, brought down to what is asked for: whoever wants less can have it.
    fn mtu(&self, way: Way) -> Option<u8> {
        let wanted = self.wanted.mtu;
        match self.condition(component::MTU_SELECTOR, component::MTU, self.wanted.mtu_selector) {
            Selector::GreaterThan => Some(way.mtu).filter(|mtu| *mtu > wanted),
            Selector::LessThan => wanted.checked_sub(1).map(|less| less.min(way.mtu)),
            Selector::Exactly => Some(wanted).filter(|wanted| *wanted <= way.mtu),
            _ => Some(way.mtu),
        }
        .filter(|mtu| *mtu >= MTU_LEAST)
    }

    /// The same for the rate.
    fn rate(&self, way: Way) -> Option<PathRate> {
        let rate = way.rate()?;
        let selector = self.condition(component::RATE_SELECTOR, component::RATE, self.wanted.rate_selector);
        if selector == Selector::Best {
            return Some(rate);
        }
        let wanted = self.wanted.rate.megabits()?;
        match selector {
            Selector::GreaterThan => Some(rate).filter(|_| way.megabits > wanted),
            Selector::LessThan => PathRate::below(wanted.min(way.megabits.saturating_add(1))),
            _ => Some(self.wanted.rate).filter(|_| wanted <= way.megabits),
        }
    }

    /// How long a packet may take. That is as it is, so nothing is brought down.
    fn life_time(&self, to_itself: bool) -> Option<u8> {
        let life_time = if to_itself { 0 } else { self.life_time };
        let wanted = self.wanted.packet_life_time;
        let selector = self.wanted.packet_life_time_selector;
        let fits = match self.condition(component::LIFE_SELECTOR, component::LIFE, selector) {
            Selector::GreaterThan => life_time > wanted,
            Selector::LessThan => life_time < wanted,
            Selector::Exactly => life_time == wanted,
            _ => true,
        };
        fits.then_some(life_time)
    }

    /// What a selector says; it and its value are a condition only together. Without one the best is wanted.
    fn condition(&self, selector_bit: u32, value_bit: u32, selector: Selector) -> Selector {
        let given = self.query.names(selector_bit) && self.query.names(value_bit);
        if given { selector } else { Selector::Best }
    }
}

/// The LIDs of the ways from port to port.
fn lid_pairs(from: &End, slid: Option<Lid>, to: &End, dlid: Option<Lid>) -> impl Iterator<Item = (Lid, Lid)> {
    // A LID that is given is the only one of its port.
    let lids = |end: &End, lid: Option<Lid>| lid.map_or((end.lid.0, end.lids()), |lid| (lid.0, 1));
    let ((from, from_count), (to, to_count)) = (lids(from, slid), lids(to, dlid));
    (0..from_count.max(to_count)).map(move |n| (Lid(from + n % from_count), Lid(to + n % to_count)))
}
