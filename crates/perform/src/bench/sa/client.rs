//! One client: its questions, what is outstanding, and what has come of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weft_lab::survey::Session;
use weft_machine::Random;
use weft_mgmt::rmpp::{Inbox, InboxLimits};
use weft_mgmt::{component_mask, records, subnet_administration};
use weft_wire::{
    AddressedMad, Gid, GidPrefix, Guid, Lid, Method, NodeInfo, NodeRecord, PathRecord, RmppType, SaRecord,
    ServiceLevel, Smp, TransactionId, status,
};

use super::{Cache, Options, Record};

/// How long a question waits for its answer, and how often it is asked.
const PATIENCE: Duration = Duration::from_secs(1);
const TRIES_MAX: u32 = 5;
/// Connections in a row that the cache serves, until the clock is looked at.
const HITS_MAX: u32 = 1 << 12;
/// How long a table may take, pauses included.
const TABLE_PATIENCE: Duration = Duration::from_secs(60);
/// The first pause after BUSY, and the longest; each is drawn between half of it and one and a half.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A client's port, and the manager that it asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    pub(super) own: Guid,
    pub(super) sm_lid: Lid,
    pub(super) sm_sl: ServiceLevel,
}

/// A client that has not begun.
pub(super) struct Job {
    pub(super) session: Session,
    pub(super) asker: Asker,
    /// What it needs paths to, in the order in which it connects.
    pub(super) peers: Vec<Guid>,
    pub(super) options: Options,
    pub(super) nth: u32,
}

/// What has come of questions.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) samples: Vec<Duration>,
    pub(super) lookups: u64,
    pub(super) records: u64,
    pub(super) busy: u64,
    pub(super) repeated: u64,
    pub(super) failed: u64,
    pub(super) began: Option<Instant>,
    pub(super) ended: Option<Instant>,
}

impl Tally {
    pub(super) fn add(&mut self, mut other: Self) {
        self.samples.append(&mut other.samples);
        self.lookups += other.lookups;
        self.records += other.records;
        self.busy += other.busy;
        self.repeated += other.repeated;
        self.failed += other.failed;
        self.began = self.began.into_iter().chain(other.began).min();
        self.ended = self.ended.max(other.ended);
    }

    fn answered(&mut self, since: Instant, records: u64) {
        let now = Instant::now();
        self.samples.push(now - since);
        self.records += records;
        self.ended = Some(now);
    }
}

/// A question that is outstanding.
struct Waiting {
    since: Instant,
    sent: Instant,
    tries: u32,
    request: AddressedMad,
}

impl Asker {
    fn gid(guid: Guid) -> Gid {
        Gid { prefix: GidPrefix::DEFAULT, guid }
    }

    fn question(&self, record: Record, to: Guid, id: u32) -> AddressedMad {
        let (lid, sl) = (self.sm_lid, self.sm_sl);
        let mut asked = match record {
            Record::Path | Record::Paths => {
                let is_one = record == Record::Path;
                let dgid = if is_one { Self::gid(to) } else { Gid::default() };
                let path = PathRecord {
                    sgid: Self::gid(self.own),
                    dgid,
                    reversible: true,
                    numb_path: 1,
                    ..Default::default()
                };
                let mut components = vec!["sgid", "reversible", "numb_path"];
                components.extend(is_one.then_some("dgid"));
                let mask = component_mask::<PathRecord>(&components);
                let method = if is_one { Method::Get } else { Method::GetTable };
                subnet_administration(lid, sl, method, PathRecord::ATTRIBUTE, mask, &path.encode())
            }
            Record::Node => {
                let node_info = NodeInfo { port_guid: to, ..NodeInfo::default() };
                let node = NodeRecord { node_info, ..NodeRecord::default() };
                let mask = component_mask::<NodeRecord>(&["port_guid"]);
                subnet_administration(lid, sl, Method::Get, NodeRecord::ATTRIBUTE, mask, &node.encode())
            }
        };
        Smp::transaction_id.set(&mut asked.mad.0, TransactionId(id.into()));
        asked
    }
}

/// The lower half of an id; the upper one is the agent's.
fn id_of(mad: &AddressedMad) -> u32 {
    mad.mad.transaction_id().0 as u32
}

impl Job {
    /// Keeps a window of questions outstanding until the time is over. With a cache only the first connection to each peer asks.
    pub(super) fn one_by_one(mut self, over: &AtomicBool) -> anyhow::Result<Tally> {
        let began = Instant::now();
        let until = began + Duration::from_secs(self.options.seconds);
        let mut tally = Tally { began: Some(began), ..Tally::default() };
        let mut known = BTreeSet::new();
        let mut waiting: BTreeMap<u32, Waiting> = BTreeMap::new();
        let mut peers = self.peers.clone().into_iter().cycle();
        let mut next_id = 1;
        loop {
            let is_over = Instant::now() >= until || over.load(Ordering::Relaxed);
            let mut hits = 0;
            while !is_over && waiting.len() < self.options.window as usize {
                let Some(to) = peers.next() else { break };
                tally.lookups += 1;
                if self.options.cache != Cache::Off && !known.insert(to) {
                    hits += 1;
                    // Answers are not to wait for connections that need none, nor is the end.
                    if !waiting.is_empty() || hits >= HITS_MAX {
                        break;
                    }
                    continue;
                }
                let request = self.asker.question(self.options.record, to, next_id);
                self.session.queue(&request)?;
                let now = Instant::now();
                waiting.insert(next_id, Waiting { since: now, sent: now, tries: 1, request });
                next_id = next_id.wrapping_add(1);
            }
            if waiting.is_empty() {
                if is_over {
                    return Ok(tally);
                }
                continue;
            }
            self.session.flush()?;
            for answer in self.session.receive_all(PATIENCE)? {
                self.take(&mut tally, &mut waiting, &answer)?;
            }
            self.expire(&mut tally, &mut waiting)?;
        }
    }

    fn take(
        &mut self,
        tally: &mut Tally,
        waiting: &mut BTreeMap<u32, Waiting>,
        answer: &AddressedMad,
    ) -> anyhow::Result<()> {
        let Some(mut known) = waiting.remove(&id_of(answer)) else { return Ok(()) };
        match answer.mad.status() {
            0 => tally.answered(known.since, 1),
            busy if busy & status::BUSY != 0 => {
                tally.busy += 1;
                known.sent = Instant::now();
                self.session.queue(&known.request)?;
                waiting.insert(id_of(answer), known);
            }
            _ => tally.failed += 1,
        }
        Ok(())
    }

    /// Asks again for what has no answer.
    fn expire(&mut self, tally: &mut Tally, waiting: &mut BTreeMap<u32, Waiting>) -> anyhow::Result<()> {
        let now = Instant::now();
        // Ids rise, and so do the times of first questions; only those at the front can be late.
        let late: Vec<u32> = waiting
            .iter()
            .take_while(|(_, known)| now - known.since >= PATIENCE)
            .filter(|(_, known)| now - known.sent >= PATIENCE)
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            let Some(known) = waiting.get_mut(&id) else { continue };
            if known.tries >= TRIES_MAX {
                tally.failed += 1;
                waiting.remove(&id);
                continue;
            }
            (known.tries, known.sent) = (known.tries + 1, now);
            tally.repeated += 1;
            self.session.queue(&known.request)?;
        }
        Ok(())
    }

    /// Asks once for all paths of the port, and again while the manager is busy.
    pub(super) fn all_paths(mut self, over: &AtomicBool) -> anyhow::Result<Tally> {
        let began = Instant::now();
        let mut tally = Tally { began: Some(began), lookups: self.peers.len() as u64, ..Tally::default() };
        let mut tries = 0;
        while began.elapsed() < TABLE_PATIENCE && !over.load(Ordering::Relaxed) {
            match self.table(tries + 1)? {
                Some(Table::Whole(records)) => {
                    tally.answered(began, records);
                    return Ok(tally);
                }
                Some(Table::Busy) => {
                    tally.busy += 1;
                    self.pause(tries)?;
                }
                Some(Table::Refused) => break,
                None => tally.repeated += 1,
            }
            tries += 1;
        }
        tally.failed += 1;
        Ok(tally)
    }

    /// Waits, and takes what comes late meanwhile.
    fn pause(&mut self, tries: u32) -> anyhow::Result<()> {
        let span = (PAUSE * (1 << tries.min(7))).min(PAUSE_MAX);
        let chance = Random::new(u64::from(self.nth) << 32 | u64::from(tries)).draw();
        let wait = span / 2 + span.mul_f64((chance >> 11) as f64 / (1_u64 << 53) as f64);
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.session.receive_all(left)?;
        }
    }

    /// One attempt; `None`: nothing came for too long.
    fn table(&mut self, id: u32) -> anyhow::Result<Option<Table>> {
        let question = self.asker.question(Record::Paths, Guid(0), id);
        self.session.send(&question)?;
        let mut inbox = Inbox::new(InboxLimits { transfers: 1, lingering: 0, ..InboxLimits::default() });
        loop {
            let answers = self.session.receive_all(PATIENCE * TRIES_MAX)?;
            if answers.is_empty() {
                return Ok(None);
            }
            let now = self.session.now();
            let mut whole = None;
            for answer in answers.iter().filter(|answer| id_of(answer) == id) {
                let rmpp = answer.mad.rmpp();
                match answer.mad.status() {
                    0 if rmpp.active && rmpp.kind == RmppType::Data => {
                        whole = whole.or(inbox.handle(now, answer));
                    }
                    busy if busy & status::BUSY != 0 => return Ok(Some(Table::Busy)),
                    0 if rmpp.active => return Ok(Some(Table::Busy)),
                    _ => return Ok(Some(Table::Refused)),
                }
            }
            while let Some(ack) = inbox.poll_transmit() {
                self.session.queue(&ack)?;
            }
            self.session.flush()?;
            if let Some(whole) = whole {
                return Ok(Some(Table::Whole(records::<PathRecord>(&whole.data).count() as u64)));
            }
        }
    }
}

/// What has become of a question for all paths.
enum Table {
    /// The number of its records.
    Whole(u64),
    /// The manager has no time, or has ended it before its end.
    Busy,
    Refused,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_of_clients_add_up() {
        let now = Instant::now();
        let one = |millis| {
            let mut tally = Tally { began: Some(now), lookups: 1, ..Tally::default() };
            tally.answered(now, 3);
            tally.ended = Some(now + Duration::from_millis(millis));
            tally
        };
        let mut all = one(5);
        all.add(one(3));
        assert_eq!((all.samples.len(), all.lookups, all.records), (2, 2, 6));
        assert_eq!(all.ended, Some(now + Duration::from_millis(5)));
    }
}
