//! The thread that gathers what the page shows, and gives it to the stage: once a second, and at each event.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use weft_bundle::folder::LabFolder;
use weft_bundle::names::HUB;
use weft_control::hub::ProcessState;
use weft_control::{Request, Role};
use weft_page::{Mark, Stage};
use weft_process::{Client, utc_now};
use weft_topology::PortRef;

use crate::agents::read_ports;
use crate::events::{Follower, Told};
use crate::flows;
use crate::scene::act::quiet;
use crate::scene::events::Due;
use crate::scene::facts::Facts;
use crate::scene::paths::Wanted;
use crate::scene::plan::Plan;
use crate::scene::slow::{self, Desk, Slow};
use crate::scene::{Guests, Seen};
use crate::signals::Signals;
use crate::site::status::lab_status;
use crate::view::Lab;

/// From one look to the next.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The same while no one reads.
const IDLE_EVERY: Duration = Duration::from_secs(5);
/// Events that come within this time are worked off together.
const TOGETHER: Duration = Duration::from_millis(100);
/// The hub's list of processes is read at least this often.
const STATUS_EVERY: Duration = Duration::from_secs(5);
/// Looks until the ports of all agents have been read again, in case an event was lost.
const ROUND: usize = 60;
/// Looks in which the counters of all agents are read once where nothing flows.
const QUIET_ROUND: usize = 5;
/// Agents whose counters are read in every look at least.
const QUIET_LEAST: usize = 64;
/// Events of before that are looked through.
const PAST_MAX: usize = 2000;
/// News that wait to be taken.
const NEWS_MAX: usize = 256;
/// Flows that are read each second; of more, the list is read less often.
const FLOWS_EACH_SECOND: usize = 500;

/// What other threads tell this one.
pub(super) enum News {
    /// Something happened.
    Events(Vec<Told>),
    /// What happened before this process looked.
    Past(Vec<Told>),
    /// Something was found out that takes long.
    Slow(Box<Slow>),
    /// The laboratory has ended.
    Ended,
}

pub(super) struct Gatherer {
    folder: LabFolder,
    stage: Arc<Stage>,
    facts: Facts,
    desk: Arc<Desk>,
    news: Receiver<News>,
    due: Due,
    /// When what is due is to be asked.
    due_at: Option<Instant>,
    marks: Vec<Mark>,
    status_at: Option<Instant>,
    flows_at: Option<Instant>,
    /// How far the round through all agents is.
    round: usize,
    /// The connection by which the hub is asked whether it lives.
    hub: Option<Client>,
    /// When the file of the cabling was written.
    cabled_at: Option<SystemTime>,
    is_watched: bool,
    has_ended: bool,
    guests: Guests,
    /// Something may have changed since the last state.
    is_stale: bool,
    /// When it was.
    shown_at: Option<Instant>,
}

impl Gatherer {
    pub(super) fn new(folder: &LabFolder, stage: Arc<Stage>, role: Role, seen: Seen) -> anyhow::Result<Self> {
        let folder = quiet(folder);
        let Seen { acknowledged, guests } = seen;
        let facts = Facts::of(Lab::load(&folder)?, role, acknowledged);
        let (send, news) = sync_channel(NEWS_MAX);
        let desk = Arc::new(Desk::default());
        let (own, tell) = (desk.clone(), send.clone());
        let start = |name: &str, run: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new()
                .name(name.into())
                .spawn(run)
                .context("cannot start a thread")
                .map(drop)
        };
        let take = move |slow| tell.send(News::Slow(Box::new(slow))).is_ok();
        start("slow", Box::new(move || slow::run(&own, take)))?;
        let followed = folder.clone();
        start("events", Box::new(move || follow(&followed, &send)))?;
        let mut gatherer = Self {
            folder,
            stage,
            facts,
            desk,
            news,
            due: Due { all: true, status: true, flows: true, ..Due::default() },
            due_at: None,
            marks: Vec::new(),
            status_at: None,
            flows_at: None,
            round: 0,
            hub: None,
            cabled_at: None,
            is_watched: false,
            has_ended: false,
            guests,
            is_stale: true,
            shown_at: None,
        };
        gatherer.cabled_at = gatherer.written_at();
        gatherer.hand_over();
        Ok(gatherer)
    }

    /// Gives the thread that may wait the cabling.
    fn hand_over(&self) {
        if let Ok(lab) = Lab::load(&self.folder) {
            let plan = Plan::of(&lab);
            self.desk.cabled(Arc::new((lab, plan)));
        }
    }

    pub(super) fn run(mut self) {
        let mut look_at = Instant::now();
        while !self.has_ended {
            let wake = self.due_at.map_or(look_at, |due| due.min(look_at));
            match self.news.recv_timeout(wake.saturating_duration_since(Instant::now())) {
                Ok(news) => self.take(news),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let is_look = look_at <= Instant::now();
                    if is_look {
                        look_at = Instant::now() + self.pause();
                        self.look();
                    }
                    self.ask();
                    self.show();
                }
            }
            // One who begins to look is not kept waiting.
            if self.stage.is_watched() && !self.is_watched {
                look_at = Instant::now();
            }
        }
        self.desk.end();
        let name = self.folder.name();
        self.stage.lose(&format!("the laboratory `{name}` was taken down"));
    }

    fn pause(&self) -> Duration {
        if self.stage.is_watched() { LOOK_EVERY } else { IDLE_EVERY }
    }

    fn take(&mut self, news: News) {
        self.is_stale = true;
        match news {
            News::Ended => self.has_ended = true,
            News::Slow(slow) => {
                self.facts.slow = *slow;
                self.show();
            }
            News::Past(events) => {
                // Older ones would be dropped at once.
                let recent = &events[events.len().saturating_sub(PAST_MAX)..];
                self.marks.extend(recent.iter().filter_map(|told| self.facts.events.take(told)));
            }
            News::Events(events) => {
                for told in &events {
                    self.due.note(told);
                    self.marks.extend(self.facts.events.take(told));
                }
                let ended = std::mem::take(&mut self.due.ended);
                for process in &ended {
                    if let Some(line) = self.facts.processes.get_mut(process) {
                        line.state = ProcessState::Ended;
                    }
                }
                // While no one looks, many ends together make one state.
                let is_soon = !self.is_watched && self.shown_at.is_some_and(|at| at.elapsed() < TOGETHER);
                if ended.is_empty() || is_soon {
                    self.due_at = self.due_at.or_else(|| Some(Instant::now() + TOGETHER));
                } else {
                    // A node that has died is seen before anybody is asked.
                    self.show();
                    self.due_at = Some(Instant::now() + TOGETHER);
                }
            }
        }
    }

    /// The look of each second.
    fn look(&mut self) {
        let watched = self.stage.is_watched();
        self.desk.watched(watched);
        if self.written_at() != self.cabled_at {
            self.recable();
        }
        if watched != self.is_watched {
            self.is_watched = watched;
            self.facts.counters.forget();
            self.desk.ask(true, false, true);
        }
        self.due.status |= !self.hub_answers();
        self.due.status |= self.status_at.is_none_or(|at| at.elapsed() >= STATUS_EVERY);
        self.due.flows |= !self.facts.flows.is_empty() && self.flows_are_older(LOOK_EVERY - TOGETHER);
        if !watched {
            return;
        }
        let agents = self.facts.live_agents();
        let each = agents.len().div_ceil(ROUND);
        let begin = (self.round * each).min(agents.len());
        self.due.agents.extend(agents[begin..(begin + each).min(agents.len())].iter().cloned());
        self.round = (self.round + 1) % ROUND;
        self.is_stale = true;
        let names = self.counted(&agents);
        // An agent that does not answer has no counters; the hub says more of it.
        let _ = self.facts.counters.read(&self.folder, &names);
    }

    /// The agents whose counters are read now: all of them where something flows, else a part of them at a time, in which what begins to
    /// flow is seen.
    fn counted<'a>(&self, agents: &'a [String]) -> Vec<&'a str> {
        let names = agents.iter().map(String::as_str);
        if self.facts.all_flows().next().is_some() || !self.facts.counters.are_quiet() {
            return names.collect();
        }
        let each = agents.len().div_ceil(QUIET_ROUND).max(QUIET_LEAST).min(agents.len());
        names.cycle().skip(each * (self.round % QUIET_ROUND)).take(each).collect()
    }

    /// Asks what is due.
    fn ask(&mut self) {
        self.due_at = None;
        let mut due = std::mem::take(&mut self.due);
        // A list that is too young stays due.
        let least = if self.is_watched { Duration::ZERO } else { IDLE_EVERY - TOGETHER };
        self.due.flows = due.flows && !self.flows_are_older(least);
        due.flows &= !self.due.flows;
        self.is_stale |= due.asks();
        self.desk.ask(due.managers, due.faults, due.paths);
        if due.status {
            self.status_at = Some(Instant::now());
            match lab_status(&self.folder) {
                Some(status) => self.is_stale |= self.facts.take_status(status),
                None => {
                    let why = "the hub does not answer; `weft hub --detached` starts another";
                    self.stage.lose(why);
                    self.status_at = None;
                    self.due.all = true;
                    return;
                }
            }
        }
        let live = self.facts.live_agents();
        let wanted: Vec<&str> = match due.all {
            true => live.iter().map(String::as_str).collect(),
            false => live.iter().filter(|name| due.agents.contains(*name)).map(String::as_str).collect(),
        };
        if let Ok(ports) = read_ports(&self.folder, wanted) {
            self.facts.take_ports(ports.told.into_values());
        }
        if due.flows {
            self.flows_at = Some(Instant::now());
            if let Ok(flows) = flows::list(&self.folder) {
                self.facts.flows = flows;
            }
        }
        self.facts.guests = self.guests.list();
        self.follow_flows();
    }

    /// Whether the list of flows was read so long ago, and longer the more flows there are.
    fn flows_are_older(&self, least: Duration) -> bool {
        let many = LOOK_EVERY * (self.facts.flows.len() / FLOWS_EACH_SECOND) as u32;
        self.flows_at.is_none_or(|at| at.elapsed() >= least + many)
    }

    /// Has the ways of flows found, where they are not known.
    fn follow_flows(&mut self) {
        let facts = &self.facts;
        let wanted = facts.all_flows().filter_map(|flow| {
            let from = facts.place_of_end(&flow.from)?;
            let to = facts.place_of_end(&flow.to)?;
            let lid = facts.ports.get(&to)?.lid;
            let level =
                flow.sender.as_ref().and_then(|report| report.service_level).map_or(0, |level| level.0);
            let name = flow.name.clone();
            lid.is_unicast().then_some(Wanted { name, from, to, lid, level })
        });
        let wanted: Vec<Wanted> = wanted.collect();
        if wanted != self.facts.followed {
            self.desk.follow(wanted.clone());
            self.facts.followed = wanted;
        }
    }

    /// Whether the hub lives: asked each second, as its list of processes is long.
    fn hub_answers(&mut self) -> bool {
        let known = self.hub.take().or_else(|| Client::connect(&self.folder.control(HUB)).ok());
        self.hub = known.and_then(|mut hub| hub.ask(Request::Health, LOOK_EVERY).is_ok().then_some(hub));
        self.hub.is_some()
    }

    fn written_at(&self) -> Option<SystemTime> {
        std::fs::metadata(self.folder.bundle().topology()).and_then(|file| file.modified()).ok()
    }

    /// Begins again with another cabling.
    fn recable(&mut self) {
        let written_at = self.written_at();
        // One that is just being written is read with the next look.
        let Ok(lab) = Lab::load(&self.folder) else { return };
        self.cabled_at = written_at;
        self.facts.plan = Plan::of(&lab);
        self.facts.lab = lab;
        self.facts.ports.clear();
        self.hand_over();
        self.due.all = true;
        self.due_at = Some(Instant::now() + TOGETHER);
    }

    fn show(&mut self) {
        // Until the hub has said which processes there are, there is nothing to show.
        if self.facts.processes.is_empty() || self.status_at.is_none() || !self.is_stale {
            return;
        }
        self.is_stale = false;
        self.shown_at = Some(Instant::now());
        let now_ms = utc_now().as_nanos() / 1_000_000;
        let state = self.facts.state(now_ms, self.is_watched);
        self.stage.show(state, std::mem::take(&mut self.marks));
    }
}

/// Tells what happens, until the laboratory ends.
fn follow(folder: &LabFolder, news: &SyncSender<News>) {
    let told = || -> anyhow::Result<()> {
        let signals = Signals::none()?;
        let (mut follower, past) = Follower::begin(folder, true)?;
        news.send(News::Past(past))?;
        while let Some(events) = follower.next(&signals)? {
            news.send(News::Events(events))?;
        }
        Ok(())
    };
    if let Err(error) = told() {
        tracing::warn!("the laboratory's events cannot be followed: {error:#}");
    }
    let _ = news.send(News::Ended);
}

impl Facts {
    /// The port of a flow's end in the cabling.
    fn place_of_end(&self, end: &weft_control::flow::FlowEnd) -> Option<PortRef> {
        let node = self.lab.fabric.by_guid(end.at.node.0)?;
        Some(PortRef::new(node, end.at.port))
    }
}
