//! Answers in bulk: all paths of a host, in segments.

use weft_machine::Time;
use weft_mgmt::rmpp::{Outbox, OutboxLimits, Timing};
use weft_wire::{
    AddressedMad, Gid, Guid, Method, PathRate, PathRecord, RmppHeader, RmppType, SaMad, SaRecord,
    rmpp_status, status,
};

use super::{Network, What};

impl Network {
    /// The paths from a host to all that are there, itself included.
    pub(super) fn answer_in_bulk(&mut self, host: usize, mad: &AddressedMad) {
        self.asked_in_bulk.push((self.now, host));
        let mut answer = *mad;
        SaMad::method.set(&mut answer.mad.0, Method::GetTableResp);
        SaMad::attribute_offset.set(&mut answer.mad.0, PathRecord::OFFSET);
        if self.busy_answers > 0 {
            self.busy_answers -= 1;
            SaMad::status.set(&mut answer.mad.0, status::BUSY);
            return self.at(self.now + Time::from_micros(20), host, What::Mad(Box::new(answer)));
        }
        let asked = PathRecord::from_bytes(&SaMad::data.get(&mad.mad.0));
        assert_eq!((asked.sgid.guid, asked.dgid.guid, asked.numb_path), (self.facts[host].guid, Guid(0), 1));
        let mut message = answer.mad.0[..56].to_vec();
        for to in self.facts.iter().filter(|to| !self.absent.contains(&to.guid)) {
            let (slid, dlid) = (self.facts[host].lid, to.lid);
            let sl = self.levels.get(&(slid, dlid)).copied().unwrap_or_default();
            let rate = self.rates.get(&dlid).copied().unwrap_or(PathRate::Gb20);
            let dgid = Gid { prefix: to.gid_prefix, guid: to.guid };
            PathRecord { slid, dlid, sl, rate, dgid, ..asked }.append_to(&mut message);
        }
        self.tables[host].offer(self.now, &answer, message, &Timing::default()).unwrap();
        self.send_segments(host);
    }

    pub(super) fn send_segments(&mut self, host: usize) {
        while let Some(segment) = self.tables[host].poll_transmit(self.now) {
            let at = self.now + Time::from_micros(20);
            self.at(at, host, What::Mad(Box::new(segment)));
            if self.broken > 0 {
                self.broken -= 1;
                self.tables[host] = Outbox::new(OutboxLimits::default());
                let mut end = segment;
                let status = rmpp_status::UNSPECIFIED;
                let header = RmppHeader { kind: RmppType::Abort, status, ..segment.mad.rmpp() };
                end.mad.set_rmpp(&RmppHeader { first: false, last: false, ..header });
                self.at(at, host, What::Mad(Box::new(end)));
            }
        }
    }
}
