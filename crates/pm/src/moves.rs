//! Moves hosts to the slow lane and back, by asking the subnet manager: SubnAdmSet(Notice) with trap 69 or 68.
//!
//! For each hot spot and host there is what is wanted and what is known; what differs is asked for, one request at a
//! time, until both are the same:
//!
//! ```text
//!              wanted: slow              wanted: fast
//!  known fast    ask repath                forgotten
//!  known slow    nothing                   ask unpath
//!  not known     ask repath                ask unpath
//! ```
//!
//! A request that no one answered may have been carried out all the same, so the host is not known any more and the
//! request is made again after the next sweep. One that was refused was not carried out; it is made again after a pause,
//! which doubles with every refusal.
//! A repath that is under way when the hot spot ends is waited for, so that the unpath cannot overtake it.
//!
//! A host that has left the fabric keeps its entry, because it may come back as it was; nothing is asked about it until
//! then, and then it is not known. So is a host that the subnet manager says has come again.
//!
//! **Invariant:** a host that may be on the slow lane has an entry here until the subnet manager has taken its unpath,
//! or has refused it too often, or there is no more room and it has left. **Invariant:** nothing is asked twice that was
//! taken.

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::{Time, Timer};
use weft_mgmt::{Limits, Stats, Transactions, Window};
use weft_wire::{AddressedMad, Guid, Lid, ServiceLevel, SmKey, status};

use crate::learn::OwnPort;
use crate::request::{self, Tell};
use crate::{Event, Options, PmTimer};

/// Notices in flight.
const WINDOW: u32 = 16;
/// Hosts times hot spots: every host of a large fabric towards a dozen hot spots.
const ENTRIES_MAX: usize = 1 << 17;
/// After the first refusal in a row, and the most after later ones, each of which doubles it.
const PAUSE: Time = Time::from_secs(10);
const DOUBLINGS_MAX: u32 = 5;
/// Refusals in a row that end an unpath.
const REFUSALS_MAX: u32 = 8;

/// The lane that a host uses towards a hot spot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Slow,
    Fast,
    Unknown,
}

/// A hot spot's LID and a host.
pub(crate) type Pair = (Lid, Guid);

/// A host's end port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostPort {
    pub(crate) lid: Lid,
    pub(crate) guid: Guid,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The hot spot's port.
    hot_spot: Guid,
    /// 0 while the host is not in the fabric.
    host_lid: Lid,
    wanted: Lane,
    known: Lane,
    /// What is being asked for.
    asking: Option<Lane>,
    /// Not to be asked again before.
    again: Time,
    refusals: u32,
}

impl Entry {
    fn is_to_be_asked(&self, now: Time) -> bool {
        let differs = self.asking.is_none() && self.wanted != self.known;
        differs && self.again <= now && self.host_lid != Lid(0)
    }

    /// Whether there is nothing left to remember.
    fn is_settled(&self) -> bool {
        self.asking.is_none() && self.wanted == Lane::Fast && self.known == Lane::Fast
    }
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Move(Pair, Lane),
    Wildcard,
}

/// Whether hosts have been asked to ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wildcard {
    Owed,
    Asking,
    Done,
}

/// What moves have counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Repaths taken by the subnet manager.
    pub(crate) repaths: u64,
    /// Unpaths taken by the subnet manager.
    pub(crate) unpaths: u64,
    /// Requests that no one answered.
    pub(crate) unanswered: u64,
    /// Requests refused.
    pub(crate) refused: u64,
    /// Hosts that could not be noted for want of room.
    pub(crate) dropped: u64,
    /// Unpaths given up after too many refusals.
    pub(crate) given_up: u64,
}

/// Moves.
#[derive(Debug)]
pub(crate) struct Moves {
    slow: ServiceLevel,
    sa_key: SmKey,
    pub(crate) own: OwnPort,
    entries: BTreeMap<Pair, Entry>,
    wildcard: Wildcard,
    notices: Transactions<Key>,
    pub(crate) counts: Counts,
}

impl Moves {
    pub(crate) fn new(options: &Options) -> Self {
        let limits = Limits {
            window: Window::Fixed(WINDOW),
            timeout: options.sa_timeout,
            retries: options.retries,
            queue: ENTRIES_MAX + 1,
        };
        let owed = options.repath && options.wildcard_at_start;
        Self {
            slow: options.slow_sl,
            sa_key: options.sa_key,
            own: OwnPort::default(),
            entries: BTreeMap::new(),
            wildcard: if owed { Wildcard::Owed } else { Wildcard::Done },
            notices: Transactions::new(limits),
            counts: Counts::default(),
        }
    }

    pub(crate) fn stats(&self) -> &Stats {
        self.notices.stats()
    }

    /// Forgets what is under way; whether it was carried out is not known.
    pub(crate) fn abandon(&mut self, now: Time) {
        self.notices.abandon();
        self.notices.begin_ids_at(now.as_nanos());
        for entry in self.entries.values_mut().filter(|entry| entry.asking.is_some()) {
            (entry.asking, entry.known) = (None, Lane::Unknown);
        }
        if self.wildcard == Wildcard::Asking {
            self.wildcard = Wildcard::Owed;
        }
    }

    /// A host is to use the slow lane towards a hot spot. False when that is so already, or there is no room.
    pub(crate) fn want_slow(&mut self, now: Time, hot_spot: HostPort, host: HostPort) -> bool {
        let (hot_lid, hot_spot, host_lid, host) = (hot_spot.lid, hot_spot.guid, host.lid, host.guid);
        if let Some(entry) = self.entries.get_mut(&(hot_lid, host)) {
            if entry.wanted == Lane::Slow {
                return false;
            }
            (entry.wanted, entry.refusals, entry.again) = (Lane::Slow, 0, now);
            return true;
        }
        if self.entries.len() >= ENTRIES_MAX {
            self.entries.retain(|_, entry| entry.host_lid != Lid(0));
        }
        if self.entries.len() >= ENTRIES_MAX {
            self.counts.dropped += 1;
            return false;
        }
        let (wanted, known) = (Lane::Slow, Lane::Fast);
        let (asking, refusals) = (None, 0);
        let entry = Entry { hot_spot, host_lid, wanted, known, asking, again: now, refusals };
        self.entries.insert((hot_lid, host), entry);
        true
    }

    /// No one is to use the slow lane towards this LID any more.
    pub(crate) fn want_fast(&mut self, now: Time, hot_spot: Lid) {
        let all = (hot_spot, Guid(0))..=(hot_spot, Guid(u64::MAX));
        for (_, entry) in self.entries.range_mut(all) {
            (entry.wanted, entry.again, entry.refusals) = (Lane::Fast, now, 0);
        }
        self.forget_settled();
    }

    /// No one is to use any slow lane any more.
    pub(crate) fn withdraw(&mut self, now: Time) {
        let spots: BTreeSet<Lid> = self.entries.keys().map(|(lid, _)| *lid).collect();
        spots.into_iter().for_each(|lid| self.want_fast(now, lid));
    }

    /// A host has come or gone, and may have forgotten everything.
    pub(crate) fn is_new(&mut self, host: Guid) {
        for (_, entry) in self.entries.iter_mut().filter(|((_, guid), _)| *guid == host) {
            entry.known = Lane::Unknown;
        }
    }

    /// All hosts may have forgotten everything.
    pub(crate) fn are_new(&mut self) {
        self.entries.values_mut().for_each(|entry| entry.known = Lane::Unknown);
    }

    /// These hosts are in the fabric, with these LIDs.
    pub(crate) fn hosts_are(&mut self, hosts: &BTreeMap<Guid, Lid>) {
        for ((_, host), entry) in &mut self.entries {
            let lid = hosts.get(host).copied().unwrap_or(Lid(0));
            if entry.host_lid == Lid(0) {
                entry.known = Lane::Unknown;
            }
            entry.host_lid = lid;
        }
    }

    fn forget_settled(&mut self) {
        self.entries.retain(|_, entry| !entry.is_settled());
    }

    /// Asks for what is wanted and not so. Hosts forget hot spots with the wildcard, so nothing is asked before that is
    /// done.
    pub(crate) fn ask(&mut self, now: Time) {
        if self.wildcard == Wildcard::Owed {
            let mad = self.notice(Lid(0), Lid(0), Tell::Wildcard);
            if self.notices.offer(Key::Wildcard, mad).is_ok() {
                self.wildcard = Wildcard::Asking;
            }
        }
        if self.wildcard != Wildcard::Done {
            return;
        }
        let pairs: Vec<Pair> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.is_to_be_asked(now))
            .map(|(pair, _)| *pair)
            .collect();
        pairs.into_iter().for_each(|pair| self.ask_about(now, pair));
    }

    fn ask_about(&mut self, now: Time, pair: Pair) {
        let Some(entry) = self.entries.get(&pair).filter(|entry| entry.is_to_be_asked(now)) else { return };
        let wanted = entry.wanted;
        let tell = if wanted == Lane::Slow { Tell::Repath(self.slow) } else { Tell::Unpath(self.slow) };
        let mad = self.notice(entry.host_lid, pair.0, tell);
        // Beyond the queue's bound it is its turn after the next sweep.
        if self.notices.offer(Key::Move(pair, wanted), mad).is_ok() {
            self.entries.entry(pair).and_modify(|entry| entry.asking = Some(wanted));
        }
    }

    fn notice(&self, target: Lid, hot_spot: Lid, tell: Tell) -> AddressedMad {
        let OwnPort { lid, sm_lid, service_level } = self.own;
        let mad = request::notice(sm_lid, service_level, lid, target, hot_spot, tell);
        request::with_key(mad, self.sa_key)
    }

    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<AddressedMad> {
        self.notices.poll_transmit(now)
    }

    /// Takes the subnet manager's answer.
    pub(crate) fn receive(&mut self, now: Time, mad: &AddressedMad) -> Option<Event> {
        let done = self.notices.handle_response(now, mad)?;
        let status = mad.mad.status();
        match done.key {
            Key::Wildcard if status == status::OK => {
                self.wildcard = Wildcard::Done;
                Some(Event::AskedAgain)
            }
            Key::Wildcard => {
                // A manager that does not know it will never do it.
                self.counts.refused += 1;
                self.wildcard = Wildcard::Done;
                Some(Event::NotMoved { hot_spot: Lid(0), lid: Lid(0), status: Some(status) })
            }
            Key::Move(pair, lane) if status == status::OK => self.taken(now, pair, lane),
            Key::Move(pair, lane) => self.refused(now, pair, lane, status),
        }
    }

    fn taken(&mut self, now: Time, pair: Pair, lane: Lane) -> Option<Event> {
        let entry = self.entries.get_mut(&pair).filter(|entry| entry.asking == Some(lane))?;
        (entry.asking, entry.known, entry.refusals) = (None, lane, 0);
        let ((hot_spot, port), lid) = (pair, entry.host_lid);
        let (hot_spot_guid, port_guid) = (entry.hot_spot.into(), port.into());
        self.forget_settled_at(pair);
        self.ask_about(now, pair);
        if lane == Lane::Slow {
            self.counts.repaths += 1;
            return Some(Event::Repathed { hot_spot, hot_spot_guid, lid, port_guid });
        }
        self.counts.unpaths += 1;
        Some(Event::Unpathed { hot_spot, hot_spot_guid, lid, port_guid })
    }

    fn refused(&mut self, now: Time, pair: Pair, lane: Lane, status: u16) -> Option<Event> {
        self.counts.refused += 1;
        let entry = self.entries.get_mut(&pair).filter(|entry| entry.asking == Some(lane))?;
        let pause = Time::from_nanos(PAUSE.as_nanos() << entry.refusals.min(DOUBLINGS_MAX));
        (entry.asking, entry.again) = (None, now + pause);
        entry.refusals += 1;
        let (hot_spot, lid) = (pair.0, entry.host_lid);
        if entry.wanted == Lane::Fast && entry.refusals >= REFUSALS_MAX {
            entry.known = Lane::Fast;
            self.counts.given_up += 1;
        }
        self.forget_settled_at(pair);
        Some(Event::NotMoved { hot_spot, lid, status: Some(status) })
    }

    fn forget_settled_at(&mut self, pair: Pair) {
        if self.entries.get(&pair).is_some_and(Entry::is_settled) {
            self.entries.remove(&pair);
        }
    }

    /// Lets time pass: the next request that no one answered.
    pub(crate) fn poll_failed(&mut self, now: Time) -> Option<Event> {
        while let Some(failed) = self.notices.poll_failed(now) {
            self.counts.unanswered += 1;
            match failed.key {
                Key::Wildcard => {
                    self.wildcard = Wildcard::Owed;
                    return Some(Event::NotMoved { hot_spot: Lid(0), lid: Lid(0), status: None });
                }
                Key::Move(pair, lane) => {
                    let Some(entry) = self.entries.get_mut(&pair) else { continue };
                    if entry.asking == Some(lane) {
                        (entry.asking, entry.known) = (None, Lane::Unknown);
                        let (hot_spot, lid) = (pair.0, entry.host_lid);
                        return Some(Event::NotMoved { hot_spot, lid, status: None });
                    }
                }
            }
        }
        None
    }

    pub(crate) fn next_timer(&self) -> Option<Timer<PmTimer>> {
        self.notices.next_timer().map(|timer| timer.map(PmTimer::Notice))
    }

    /// Every pair of hot spot and host of which the host is wanted on the slow lane.
    pub(crate) fn slow(&self) -> impl Iterator<Item = Pair> {
        self.entries.iter().filter(|(_, entry)| entry.wanted == Lane::Slow).map(|(pair, _)| *pair)
    }

    /// Hosts that may be on the slow lane and are not to be, and those that are to be and are not known to be.
    pub(crate) fn unsettled(&self) -> usize {
        self.entries.values().filter(|entry| entry.wanted != entry.known).count()
    }
}
