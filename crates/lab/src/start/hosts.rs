//! The start of shares on several hosts: weft there starts each, and a hub here watches all.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use weft_bundle::config::hub::HubConfig;
use weft_bundle::failure::{Failure, Interrupted};
use weft_bundle::folder::{Base, LabFolder};
use weft_bundle::part::Part;
use weft_bundle::plan::wanted::Wanted;
use weft_bundle::record::LabRecord;
use weft_process::readable;
use weft_wire::count_of;

use crate::restart;
use crate::signals::Signals;
use crate::site::hosts::{Running, Shares, Ssh, ended_on, silent, wait_for_one};
use crate::site::{host_of, status};
use crate::start::{From, Planned, planned};
use crate::teardown::take_down_held;

/// How much longer than the shares' own patience a host may be silent: it is dialled, and clears up.
const LONGER_THAN_SHARES: Duration = Duration::from_secs(30);
/// How long shares have to end whose connection does.
const END_PATIENCE: Duration = Duration::from_secs(15);
/// The looks whether the hub here hears of all.
const LOOK: Duration = Duration::from_millis(50);

/// What a start on several hosts is asked for.
pub struct OnHosts<'a> {
    /// How hosts are reached.
    pub ssh: Ssh,
    /// The hub here.
    pub hub: HubConfig,
    /// Give up when nothing has moved for this long.
    pub patience: Duration,
    /// Arguments of `weft up` on each host.
    pub arguments: Vec<String>,
    /// A laboratory that does not come up is left as it is.
    pub keep: bool,
    /// Stay, and take the laboratory down when interrupted.
    pub foreground: bool,
    /// Called with what the share says that has the subnet manager, or the first one without any.
    pub summary: &'a dyn Fn(&str) -> anyhow::Result<()>,
}

/// Starts a laboratory on the hosts that it is planned for. What does not come up is taken down again, everywhere.
///
/// # Errors
/// When there is one of that name, when its bundle cannot be made, or when it does not come up.
pub fn on_hosts(base: &Base, name: &str, wanted: &Wanted<'_>, asked: &OnHosts<'_>) -> anyhow::Result<()> {
    let shares = |record: &LabRecord| Shares::planned(asked.ssh.clone(), record);
    let planned = planned(base, name, &From::Plan(wanted), |lab, record| {
        shares(record).store(lab)?;
        asked.hub.store(lab)
    })?;
    let Planned { lab, record, mut interrupt, _lock, .. } = planned;
    let shares = shares(&record);
    let start = Start { lab: &lab, record: &record, shares: &shares, asked };
    let mut untouched = shares.hosts.iter().cloned().collect();
    let stayed = match start.bring_up(&mut interrupt, &mut untouched) {
        Ok(()) if asked.foreground => {
            lab.say("press Ctrl-C to take the laboratory down");
            readable(&interrupt, None).map(drop).map_err(Into::into)
        }
        Ok(()) => return Ok(()),
        Err(error) if asked.keep && !error.is::<Interrupted>() => {
            start.remember(|host| !untouched.contains(host))?;
            let name = lab.name();
            lab.say(&format!("`{name}` is left as it is: `weft status` tells more, `weft down` ends it"));
            return Err(error);
        }
        Err(error) => Err(error),
    };
    let Some(left) = start.take_down(&untouched)? else { return stayed };
    let hint = format!("`weft down --lab {}` tries again", lab.name());
    match stayed {
        // It would say that nothing is left, and something is.
        Err(error) if error.is::<Interrupted>() => Err(left.interrupted().hint(hint)),
        Err(error) => {
            lab.front().listener.problem(&error);
            Err(left.hint(hint))
        }
        Ok(()) => Err(left.hint(hint)),
    }
}

struct Start<'a> {
    lab: &'a LabFolder,
    record: &'a LabRecord,
    shares: &'a Shares,
    asked: &'a OnHosts<'a>,
}

impl Start<'_> {
    /// `untouched`: hosts where nothing can run, as nothing was started or they are out of reach.
    fn bring_up(&self, interrupt: &mut Signals, untouched: &mut BTreeSet<String>) -> anyhow::Result<()> {
        drop(restart::start_hub(self.lab)?);
        let summary = self.start_shares(interrupt, untouched)?;
        self.await_all(interrupt)?;
        (self.asked.summary)(&summary)
    }

    /// Starts all shares, which wait for each other, and returns what the one says that manages the subnet.
    fn start_shares(
        &self,
        interrupt: &mut Signals,
        untouched: &mut BTreeSet<String>,
    ) -> anyhow::Result<String> {
        let mut running = Vec::new();
        // While these live, so does standard input of each share.
        let mut lines = Vec::new();
        for host in &self.shares.hosts {
            let part = Part::read(&self.lab.bundle(), host)?;
            let mut arguments = vec!["--lab", self.lab.name(), "up", "--part", host, "--bound", "--json"];
            arguments.extend(self.asked.arguments.iter().map(String::as_str));
            // What stands for standard input.
            arguments.extend(["--", "-"]);
            let mut started = self.shares.ssh.start(host, &arguments)?;
            untouched.remove(host);
            lines.extend(started.input().map(|input| feed(part, input)));
            running.push(started);
        }
        let manager = self.record.sm.as_ref().map(|sm| &sm.agent);
        let manager = manager.or(self.record.opensms.first().map(|opensm| &opensm.agent));
        let chief = manager.and_then(|manager| host_of(self.record, manager));
        let chief = chief.or_else(|| self.shares.hosts.first().cloned()).unwrap_or_default();
        let mut summary = String::new();
        let mut ended = |one: Running| {
            let host = one.host.clone();
            let said = one.finish().map_err(|failed| {
                untouched.extend(failed.untouched.then(|| host.clone()));
                failed.failure
            })?;
            let hosts = self.record.agents.iter().map(|agent| host_of(self.record, &agent.name));
            let agents = hosts.filter(|other| other.as_ref() == Some(&host)).count();
            let verb = if agents == 1 { "is" } else { "are" };
            self.lab.say(&format!("{host}: {} {verb} up", count_of(agents, "agent")));
            if host == chief {
                summary = said;
            }
            anyhow::Ok(())
        };
        let came_up = self.await_shares(&mut running, interrupt, &mut ended);
        // Shares that are not up notice that `up` has gone, and end.
        drop(lines);
        if came_up.is_err() {
            let until = Instant::now() + END_PATIENCE;
            while !running.is_empty() {
                let Some(one) = wait_for_one(&mut running, until, None)? else { break };
                // The first failure is the one that is reported.
                let _ = ended(one);
            }
        }
        came_up.map(|()| summary)
    }

    fn await_shares(
        &self,
        running: &mut Vec<Running>,
        interrupt: &mut Signals,
        ended: &mut impl FnMut(Running) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let patience = self.asked.patience + LONGER_THAN_SHARES;
        let mut until = Instant::now() + patience;
        while !running.is_empty() {
            let one = wait_for_one(running, until, Some(interrupt))?;
            if interrupt.arrived() {
                running.extend(one);
                return Err(Interrupted::NOTHING_RUNS.into());
            }
            let Some(one) = one else {
                return Err(running.first().map_or_else(|| silent("a host"), |one| silent(&one.host)));
            };
            ended(one)?;
            until = Instant::now() + patience;
        }
        Ok(())
    }

    /// Waits until the hub here hears of all processes.
    fn await_all(&self, interrupt: &mut Signals) -> anyhow::Result<()> {
        let until = Instant::now() + self.asked.patience;
        loop {
            let Err(missing) = status::is_up(self.lab) else { return Ok(()) };
            if Instant::now() >= until {
                let message = format!("the hub here does not hear of all processes: {missing:#}");
                return Err(Failure::new(message).hint(
                    "UDP must come through from this machine to the hosts' ports, which `lab.json` names",
                ));
            }
            if readable(&*interrupt, Some(LOOK))? && interrupt.arrived() {
                return Err(Interrupted::NOTHING_RUNS.into());
            }
        }
    }

    /// Notes on which hosts something may run, for `weft down`: one that never had any need not be reached.
    fn remember(&self, has_some: impl Fn(&String) -> bool) -> anyhow::Result<()> {
        let hosts = self.shares.hosts.iter().filter(|host| has_some(host)).cloned().collect();
        Shares { ssh: self.shares.ssh.clone(), hosts }.store(self.lab)
    }

    /// Ends all that was started. As long as something cannot be ended, the laboratory stays known here for `weft down`.
    fn take_down(&self, untouched: &BTreeSet<String>) -> anyhow::Result<Option<Failure>> {
        let hosts = self.shares.hosts.iter().filter(|host| !untouched.contains(*host)).cloned();
        let left = ended_on(self.shares, self.lab.name(), &hosts.collect::<Vec<_>>())?;
        let Some((host, why)) = left.first() else {
            return take_down_held(self.lab).map(|()| None);
        };
        self.remember(|host| left.iter().any(|(other, _)| other == host))?;
        let others = match left.len() - 1 {
            0 => String::new(),
            1 => " and 1 more host".to_owned(),
            more => format!(" and {more} more hosts"),
        };
        Ok(Some(Failure::new(format!("what has come up on {host}{others} is left: {why}"))))
    }
}

/// The other end of a share's standard input: dropped, it ends that.
type Line = Sender<()>;

/// Sends a share in a thread, and keeps the connection open as long as the line lives.
fn feed(part: Part, mut input: ChildStdin) -> Line {
    let (line, ends): (Line, Receiver<()>) = channel();
    std::thread::spawn(move || {
        // One that does not take it all says why when it ends.
        let _ = part.send(&mut input).and_then(|()| input.flush());
        let _ = ends.recv();
    });
    line
}
