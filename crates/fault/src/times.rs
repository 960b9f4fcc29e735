//! Times of a fault: how soon it was noticed, how soon the fabric was routed round it, how soon after its end all was as before, and
//! how many pairs of hosts had no way meanwhile. A function of what was seen, so that a laboratory's events and a simulation give the
//! same.

use serde::{Deserialize, Serialize};

/// Something that was seen, as far as it says anything of faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign<Key> {
    /// A fault began. The same again, while it lasts, is the other end of a cable, or its agent that is back.
    Begun {
        /// Which one.
        key: Key,
        /// Whether links or routes go with it, so that somebody may notice.
        takes_links: bool,
    },
    /// A fault ended. The last of several counts.
    Ended(Key),
    /// A device noticed that a link is gone, or the subnet manager that something has changed.
    Noticed,
    /// A device noticed that the link at this end is gone. Where no fault accounts for it, a fault from outside begins, with that
    /// end's name: a process was killed, stopped or cut off without weft's doing.
    Down(Key),
    /// The link at this end is there.
    Up(Key),
    /// A cable was taken out for good: what was there before is no measure any more.
    Recabled,
    /// The subnet manager has routed what it has found.
    Routed {
        /// Hosts.
        hosts: u32,
        /// Cables.
        cables: u32,
    },
}

/// What one fault cost. Where several overlap, each takes the first sign after its own beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FaultTimes"))]
pub struct FaultTimes<Key> {
    /// Which fault. In events its id, or for a process that was killed or frozen the command. For a fault from outside, a process
    /// that was killed, stopped or cut off without weft's doing: of an agent the end of the first link that went down, of a
    /// manager `end of` and its name.
    pub fault: Key,
    /// When it began, in nanoseconds of the clock of what was seen; in events the hub's, since 1970.
    pub began_ns: u64,
    /// How long it lasted, in nanoseconds; none as long as it does.
    pub lasted_ns: Option<u64>,
    /// From its beginning until a device or the subnet manager noticed, in nanoseconds; none where links stay up, or no one did, and
    /// for a fault from outside, which begins with the first sign of it.
    pub detected_after_ns: Option<u64>,
    /// From its beginning until the subnet manager had routed what was left, in nanoseconds.
    pub rerouted_after_ns: Option<u64>,
    /// From its end until the subnet manager had routed all that there was before, in nanoseconds.
    pub restored_after_ns: Option<u64>,
    /// Ordered pairs of hosts that the subnet manager knew no way between meanwhile, at most; none where it has not routed
    /// meanwhile.
    pub pairs_lost: Option<u64>,
}

/// What many faults cost together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultCost {
    /// Faults that somebody noticed.
    pub detected: u64,
    /// The longest time until that, in nanoseconds; none where no process remembers any, as in what follows.
    pub detected_after_ns_max: Option<u64>,
    /// The longest time until the fabric was routed round a fault.
    pub rerouted_after_ns_max: Option<u64>,
    /// The longest time from a fault's end until all was as before.
    pub restored_after_ns_max: Option<u64>,
    /// The most pairs of hosts that were lost at once.
    pub pairs_lost_max: Option<u64>,
}

impl FaultCost {
    /// Of these faults.
    pub fn of<Key>(faults: &[FaultTimes<Key>]) -> Self {
        let most = |time: fn(&FaultTimes<Key>) -> Option<u64>| faults.iter().filter_map(time).max();
        Self {
            detected: faults.iter().filter(|times| times.detected_after_ns.is_some()).count() as u64,
            detected_after_ns_max: most(|times| times.detected_after_ns),
            rerouted_after_ns_max: most(|times| times.rerouted_after_ns),
            restored_after_ns_max: most(|times| times.restored_after_ns),
            pairs_lost_max: most(|times| times.pairs_lost),
        }
    }

    /// With a later account of the same faults, of which some may be forgotten.
    #[must_use]
    pub fn later(self, other: Self) -> Self {
        Self { detected: self.detected.max(other.detected), ..self.and(other) }
    }

    /// With others.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            detected: self.detected + other.detected,
            detected_after_ns_max: self.detected_after_ns_max.max(other.detected_after_ns_max),
            rerouted_after_ns_max: self.rerouted_after_ns_max.max(other.rerouted_after_ns_max),
            restored_after_ns_max: self.restored_after_ns_max.max(other.restored_after_ns_max),
            pairs_lost_max: self.pairs_lost_max.max(other.pairs_lost_max),
        }
    }
}

/// Two processes' news of the same moment come at most so far apart, in nanoseconds: a second.
const NEWS_NS: u64 = 1_000_000_000;

/// Links go down by one fault at most so far apart, in nanoseconds: ten seconds, longer than a link's timeout. What goes down later is
/// another fault's, unless that link has gone down by this one before.
const DOWNS_NS: u64 = 10_000_000_000;

/// Ends of links that are remembered of a fault: all that a few switches have.
const ENDS_MAX: usize = 1024;

/// What is routed.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    hosts: u32,
    cables: u32,
}

impl Extent {
    fn has(self, other: Self) -> bool {
        self.hosts >= other.hosts && self.cables >= other.cables
    }

    fn or(self, other: Self) -> Self {
        Self { hosts: self.hosts.max(other.hosts), cables: self.cables.max(other.cables) }
    }
}

/// What each fault cost, in the order of their beginnings. `signs` are in the order of their times.
pub fn fault_times<Key: Clone + PartialEq>(
    signs: impl IntoIterator<Item = (u64, Sign<Key>)>,
) -> Vec<FaultTimes<Key>> {
    let mut clock = FaultClock::default();
    signs.into_iter().for_each(|(at, sign)| clock.see(at, sign));
    clock.all.into_iter().map(|one| one.times).collect()
}

/// The same for signs that come one by one.
#[derive(Debug)]
pub struct FaultClock<Key> {
    all: Vec<Running<Key>>,
    /// What was routed last.
    last: Extent,
    /// When all that was due was routed.
    whole_at: u64,
}

impl<Key> Default for FaultClock<Key> {
    fn default() -> Self {
        Self { all: Vec::new(), last: Extent::default(), whole_at: 0 }
    }
}

impl<Key: Clone + PartialEq> FaultClock<Key> {
    /// Something was seen.
    pub fn see(&mut self, at: u64, sign: Sign<Key>) {
        match sign {
            Sign::Begun { key, takes_links } => {
                if takes_links {
                    self.explains(at);
                }
                let lasts = |one: &Running<Key>| one.times.fault == key && one.times.lasted_ns.is_none();
                if !self.all.iter().any(lasts) {
                    self.all.push(Running::new(at, key, takes_links, self.due()));
                }
            }
            Sign::Ended(key) => {
                if let Some(one) = self.all.iter_mut().rev().find(|one| one.times.fault == key) {
                    one.times.lasted_ns = Some(at.saturating_sub(one.times.began_ns));
                }
            }
            Sign::Noticed => self.all.iter_mut().for_each(|one| one.noticed(at)),
            Sign::Down(end) => self.goes_down(at, end),
            Sign::Up(end) => {
                self.all.iter_mut().filter(|one| one.ends.contains(&end)).for_each(|one| one.is_up(at));
            }
            Sign::Recabled => {
                self.explains(at);
                self.last = Extent::default();
                self.all.iter_mut().for_each(|one| one.before = Extent::default());
            }
            Sign::Routed { hosts, cables } => {
                let found = Extent { hosts, cables };
                if found.has(self.due()) {
                    self.whole_at = at;
                }
                self.last = found;
                self.all.iter_mut().for_each(|one| one.routed(at, found));
            }
        }
    }

    /// What happens now accounts for links that have just gone down: its own news may be later than theirs.
    fn explains(&mut self, at: u64) {
        let is_news = |one: &Running<Key>| at.saturating_sub(one.times.began_ns) < NEWS_NS;
        self.all.retain(|one| one.outside.is_none() || !is_news(one));
    }

    /// All that there is to route when nothing else happens: what is routed, and what faults that have ended had taken. Nothing that
    /// is gone for good is waited for.
    fn due(&self) -> Extent {
        let returning = self.all.iter().filter(|one| one.is_returning());
        returning.fold(self.last, |due, one| due.or(one.before))
    }

    fn goes_down(&mut self, at: u64, end: Key) {
        // News of a process that was cut off come late: what was whole since is not down.
        let is_news = self.last.hosts > 0 && at > self.whole_at;
        let accounts = self.all.iter_mut().find(|one| one.accounts_for(at, &end));
        match accounts {
            Some(one) => one.took(at, end),
            None if is_news => {
                let mut one = Running::new(at, end.clone(), true, self.due());
                one.outside = Some(0);
                one.took(at, end);
                self.all.push(one);
            }
            None => {}
        }
        self.all.iter_mut().for_each(|one| one.noticed(at));
    }

    /// Takes out faults that have ended and whose cost is known, and the oldest ones where more than `most` are left.
    pub fn take_over(&mut self, most: usize) -> Vec<FaultTimes<Key>> {
        let surplus = self.all.len().saturating_sub(most);
        drop(self.all.drain(..surplus));
        self.all.extract_if(.., |one| one.is_over()).map(|one| one.times).collect()
    }
}

#[derive(Debug)]
struct Running<Key> {
    times: FaultTimes<Key>,
    before: Extent,
    takes_links: bool,
    /// No routing is remembered from before it began: where another subnet manager than weft's routes, or no process remembers what
    /// the manager did, nothing tells when all was as before.
    is_unrouted: bool,
    /// All was routed again after its end, whether it had been noticed or not.
    whole: bool,
    /// When as much was routed as before, last.
    whole_at: u64,
    /// Of a fault from outside, which no verb ordered: when an end of a link was last up again; 0 before.
    outside: Option<u64>,
    /// Ends of links that went down by it, and when the last one did.
    ends: Vec<Key>,
    last_down: u64,
}

impl<Key: PartialEq> Running<Key> {
    /// Whether a link's end is down because of it.
    fn accounts_for(&self, at: u64, end: &Key) -> bool {
        let is_soon = at.saturating_sub(self.last_down) < DOWNS_NS;
        self.takes_links && !self.is_over() && (is_soon || self.ends.contains(end))
    }

    fn took(&mut self, at: u64, end: Key) {
        self.last_down = at.max(self.last_down);
        if self.ends.len() < ENDS_MAX && !self.ends.contains(&end) {
            self.ends.push(end);
        }
    }
}

impl<Key> Running<Key> {
    fn new(at: u64, fault: Key, takes_links: bool, before: Extent) -> Self {
        let times = FaultTimes {
            fault,
            began_ns: at,
            lasted_ns: None,
            detected_after_ns: None,
            rerouted_after_ns: None,
            restored_after_ns: None,
            pairs_lost: None,
        };
        Self {
            times,
            before,
            takes_links,
            is_unrouted: before.hosts == 0,
            whole: false,
            whole_at: 0,
            outside: None,
            ends: Vec::new(),
            last_down: at,
        }
    }

    fn is_over(&self) -> bool {
        self.times.lasted_ns.is_some() && (!self.takes_links || self.whole || self.is_unrouted)
    }

    /// It has ended, as far as that is known, and what it took is not routed yet.
    fn is_returning(&self) -> bool {
        let has_ended = self.times.lasted_ns.is_some() || self.outside.is_some_and(|last_up| last_up > 0);
        has_ended && self.takes_links && !self.whole
    }

    fn noticed(&mut self, at: u64) {
        let times = &mut self.times;
        // The beginning of one from outside is not known: its times are from the first sign.
        let is_ordered = self.outside.is_none();
        if is_ordered
            && self.takes_links
            && times.rerouted_after_ns.is_none()
            && times.restored_after_ns.is_none()
        {
            times.detected_after_ns.get_or_insert(at.saturating_sub(times.began_ns));
        }
    }

    fn routed(&mut self, at: u64, found: Extent) {
        let is_whole = found.has(self.before);
        if is_whole {
            self.whole_at = at;
        }
        self.account(at, found, is_whole);
        self.settle();
    }

    fn account(&mut self, at: u64, found: Extent, is_whole: bool) {
        let times = &mut self.times;
        self.whole |= is_whole && times.lasted_ns.is_some();
        let is_known = times.detected_after_ns.is_some() || self.outside.is_some();
        // Without a routing from before, the first that is remembered may be much later than the one that mended it.
        if !is_known || self.is_unrouted || times.restored_after_ns.is_some() {
            return;
        }
        times.rerouted_after_ns.get_or_insert(at.saturating_sub(times.began_ns));
        let pairs = |hosts: u32| u64::from(hosts) * u64::from(hosts.saturating_sub(1));
        let lost = pairs(self.before.hosts).saturating_sub(pairs(found.hosts));
        times.pairs_lost = times.pairs_lost.max(Some(lost));
        let ended = times.lasted_ns.map(|lasted| times.began_ns + lasted);
        if let (Some(ended), true) = (ended, is_whole) {
            times.restored_after_ns = Some(at.saturating_sub(ended));
        }
    }

    /// An end of a link is up. The news may be later than that of the subnet manager, which has routed over it.
    fn is_up(&mut self, at: u64) {
        if let Some(last_up) = &mut self.outside {
            *last_up = at.max(*last_up);
            self.settle();
        }
    }

    /// A fault from outside ended when the last link was up, if all has been routed since.
    fn settle(&mut self) {
        let Some(last_up) = self.outside else { return };
        if self.whole || last_up == 0 || self.whole_at < last_up {
            return;
        }
        self.whole = true;
        self.times.lasted_ns = Some(last_up.saturating_sub(self.times.began_ns));
        self.times.restored_after_ns = Some(self.whole_at - last_up);
    }
}

#[cfg(test)]
mod tests;
