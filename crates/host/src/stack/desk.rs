//! Times of a host's software: it heeds notices one at a time, in their order (paper 004, lines 787–803 and 1165–1189).
//!
//! ```text
//!   a level is another ─▶ waits for earlier ones ─▶ notice + queue pairs x query_qp + moved x migrate ─▶ heeded
//!   ask for all paths  ─▶ …  ─▶ notice ─▶ ask ─▶ GetTable … table ─▶ queue pairs x query_qp + moved x migrate ─▶ taken
//! ```
//!
//! The paper's t1 is `ask`, t3 `query_qp` and t4 `migrate`; t2 and t5 come of the subnet manager. A Report is answered at once, as the
//! kernel does before the handler runs. Without times everything is heeded at once.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::{Details, PathRecord, RepathDetails, RepathKind, ServiceLevel, trap};

use super::Stack;
use super::sa::path_of;
use super::sender::Target;

/// Notices and tables that wait at most. One more, and the oldest is heeded before its time: their order stays.
const JOBS_MAX: usize = 4096;
/// Reconfigurations that are kept: the latest.
const KEPT_MAX: usize = 64;

/// Times of the software that heeds notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HandlerTimes {
    /// To take any notice and to note what it says: all of the time of a port that is in service.
    pub notice: Time,
    /// To make the question for all paths (t1).
    pub ask: Time,
    /// To look at one queue pair, `ib_query_qp` (t3).
    pub query_qp: Time,
    /// To bring one queue pair to its new level, automatic path migration (t4).
    pub migrate: Time,
}

/// A stretch in which a host heeded notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reconfiguration {
    /// When the first notice came.
    pub began: Time,
    /// When nothing was left to do: every queue pair has its path.
    pub ended: Time,
    /// Queue pairs looked at, each time counted.
    pub queried: u64,
    /// Queue pairs brought to another level.
    pub moved: u64,
}

/// Something to heed.
#[derive(Debug)]
pub(super) enum Job {
    Notice(Details),
    Table(Vec<PathRecord>),
}

/// What is to be heeded, and what was.
#[derive(Debug, Default)]
pub(super) struct Desk {
    /// What is being heeded, and until when.
    current: Option<(Time, Job)>,
    waiting: VecDeque<Job>,
    open: Option<Reconfiguration>,
    done: VecDeque<Reconfiguration>,
}

impl Desk {
    /// When what is being heeded is done.
    pub(super) fn due(&self) -> Option<Time> {
        self.current.as_ref().map(|(until, _)| *until)
    }
}

impl Stack {
    /// Stretches in which it heeded notices and that are over, the latest last.
    pub fn reconfigurations(&self) -> impl Iterator<Item = &Reconfiguration> {
        self.desk.done.iter()
    }

    /// Something to heed has come.
    pub(super) fn take_job(&mut self, now: Time, job: Job) {
        self.desk.open.get_or_insert(Reconfiguration { began: now, ended: now, ..Default::default() });
        if self.desk.waiting.len() >= JOBS_MAX {
            self.finish_job(now, now);
        }
        self.desk.waiting.push_back(job);
        if self.desk.current.is_none() {
            self.begin_job(now);
        }
        self.work(now);
    }

    /// Heeds what is due.
    pub(super) fn work(&mut self, now: Time) {
        while let Some(until) = self.desk.due().filter(|until| *until <= now) {
            self.finish_job(now, until);
        }
    }

    /// Heeds everything, before its time.
    pub(super) fn work_off(&mut self, now: Time) {
        while self.desk.current.is_some() {
            self.finish_job(now, now);
        }
        self.note_end(now);
    }

    /// Tables came from a manager, or from an address, that is another now.
    pub(super) fn forget_tables(&mut self, now: Time) {
        self.desk.waiting.retain(|job| matches!(job, Job::Notice(_)));
        if self.desk.current.take_if(|(_, job)| matches!(job, Job::Table(_))).is_some() {
            self.begin_job(now);
        }
    }

    /// Notes the end of a stretch, where nothing is left to heed and no table is to come.
    pub(super) fn note_end(&mut self, now: Time) {
        let desk = &mut self.desk;
        if desk.current.is_some() || self.sa.bulk.is_asking() {
            return;
        }
        if let Some(open) = desk.open.take() {
            if desk.done.len() >= KEPT_MAX {
                desk.done.pop_front();
            }
            desk.done.push_back(Reconfiguration { ended: now, ..open });
        }
    }

    fn begin_job(&mut self, at: Time) {
        let Some(job) = self.desk.waiting.pop_front() else { return };
        let times = self.options.handler_times;
        let (queried, moved) = self.load(&job);
        let each = |count: u64, time: Time| Time::from_nanos(count.saturating_mul(time.as_nanos()));
        let notice = if matches!(job, Job::Notice(_)) { times.notice } else { Time::ZERO };
        let until = at + notice + each(queried, times.query_qp) + each(moved, times.migrate);
        if let Some(open) = &mut self.desk.open {
            (open.queried, open.moved) = (open.queried + queried, open.moved + moved);
        }
        self.desk.current = Some((until, job));
    }

    /// The next one begins at `ended`.
    fn finish_job(&mut self, now: Time, ended: Time) {
        match self.desk.current.take() {
            Some((_, Job::Notice(details))) => {
                self.heed(now, &details);
                self.asks_due = true;
            }
            Some((_, Job::Table(records))) => self.take_table(now, &records),
            None => {}
        }
        self.begin_job(ended);
    }

    /// Queue pairs to look at, and those of them to bring to another level.
    fn load(&mut self, job: &Job) -> (u64, u64) {
        let levels: BTreeMap<_, ServiceLevel> = match job {
            Job::Notice(Details::Repath(trap::REPATH, details)) if self.heeds_path(details) => {
                let is_meant = self.has(details.slid);
                let to = self.paths.to_lid(details.dlid).filter(|_| is_meant);
                to.into_iter().map(|guid| (guid, details.service_level)).collect()
            }
            Job::Notice(_) => return (0, 0),
            Job::Table(records) => {
                let level = |record: &PathRecord| Some((record.dgid.guid, path_of(record)?.0.service_level));
                records.iter().filter_map(level).collect()
            }
        };
        let (mut queried, mut moved) = (0, 0);
        for flow in self.flows.in_order() {
            let Some(sender) = &flow.sender else { continue };
            queried += 1;
            let Target::One(place) = sender.target else { continue };
            let Some(path) = self.paths.get(place) else { continue };
            let level = levels.get(&path.to).map(|level| path.level_by(*level));
            moved += u64::from(level.is_some_and(|level| level != sender.address.service_level));
        }
        (queried, moved)
    }

    fn heeds_path(&self, details: &RepathDetails) -> bool {
        self.heeds_repath && details.kind == RepathKind::PATH
    }
}
