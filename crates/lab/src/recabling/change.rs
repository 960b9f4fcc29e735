//! A change of a laboratory that runs: carried out, written down, finished where it was interrupted.

use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use weft_agent_config::AgentPart;
use weft_bundle::failure::Failure;
use weft_bundle::folder::bundle::{self, Bundle};
use weft_bundle::folder::{self, LabFolder};
use weft_bundle::identity::issue::{self, Issuer};
use weft_bundle::names::HUB;
use weft_bundle::record::LabRecord;
use weft_control::Request;
use weft_control::agent::PlacedCable;
use weft_process::ClientError;

use crate::process::Holder;
use crate::recabling::cords::{Cord, Order};
use crate::recabling::journal::{Journal, Stage, reached};
use crate::recabling::orders::{NotDone, Telling, ask, give, repeat, runs, take_back};
use crate::recabling::{Turn, revoke};
use crate::site::metrics;
use crate::{restart, teardown};

/// What changes, and what the laboratory is then.
#[derive(Debug, Serialize, Deserialize)]
pub struct Change {
    /// As the user has said it.
    pub(crate) what: String,
    pub(crate) taken_out: Vec<Cord>,
    pub(crate) put_in: Vec<Cord>,
    /// The agent that is started.
    pub(crate) added: Option<String>,
    /// The agent that is ended.
    pub(crate) removed: Option<String>,
    pub(crate) record: LabRecord,
    pub(crate) topology: String,
    /// The configurations with which agents begin, of those for which they change.
    pub(crate) parts: Vec<AgentPart>,
}

/// Where the authority's key is, which issues identities.
#[derive(Clone, Copy, Debug)]
pub struct Issue<'a> {
    /// A bundle that `weft plan` wrote; without one the laboratory's own.
    pub authority: Option<&'a Path>,
}

/// What became of a change that was interrupted.
pub(crate) enum Finished {
    /// It is made.
    Done,
    /// It is undone, and why.
    Dropped(String),
}

impl Change {
    /// As the user has said it.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The cables that are put in.
    pub fn put_in(&self) -> &[Cord] {
        &self.put_in
    }

    /// The name of the agent that is started.
    pub fn added(&self) -> Option<&str> {
        self.added.as_deref()
    }

    /// Carries it out, or changes nothing.
    pub fn carry_out(&self, turn: &Turn, issue: Issue<'_>) -> anyhow::Result<()> {
        let lab = turn.folder();
        let orders = self.orders(lab)?;
        if turn.is_written_by_hub() {
            give(lab, &orders, Telling::First).map_err(|why| match why {
                NotDone::Refused(error) => error,
                // There is no journal of it, so it is undone as far as that goes.
                NotDone::Unknown(error) => {
                    take_back(lab, &orders);
                    error
                }
            })?;
            return self.have_hub_write(lab);
        }
        self.issue(lab, issue)?;
        if let Some(part) = self.added_part() {
            self.prepare(lab, part)?;
        }
        Journal::of(lab).write(self, Stage::Telling)?;
        reached("begun");
        match self.tell(lab, &orders, Telling::First) {
            Ok(()) => {}
            Err(NotDone::Refused(error)) => {
                self.undo(lab)?;
                return Err(error);
            }
            // The journal stays: the next one tells all of them again.
            Err(NotDone::Unknown(error)) => return Err(error),
        }
        reached("told");
        // What fails from here on is tried again by the next one.
        let written = Journal::of(lab).write(self, Stage::Writing);
        written.and_then(|()| self.settle(lab, issue)).map_err(|error| {
            Failure::new(format!("the cables are as wanted, but that is not written down: {error:#}"))
                .hint("put that right, then run `weft topo diff`: it goes on from here")
        })
    }

    /// The same of a laboratory that does not run: no agent gets an order, and none is started.
    ///
    /// # Errors
    /// When files of the bundle cannot be read or written.
    pub fn carry_out_unheard(&self, turn: &Turn) -> anyhow::Result<()> {
        let (lab, issue) = (turn.folder(), Issue { authority: None });
        self.issue(lab, issue)?;
        if let Some(part) = self.added_part() {
            self.prepare(lab, part)?;
        }
        Journal::of(lab).write(self, Stage::Writing)?;
        self.settle(lab, issue)
    }

    /// Does again whatever of it may have been left undone, or undoes it where an agent refuses.
    pub(crate) fn finish(&self, lab: &LabFolder, stage: Stage) -> anyhow::Result<Finished> {
        match stage {
            Stage::Telling => match self.tell_again(lab) {
                Ok(()) => Journal::of(lab).write(self, Stage::Writing)?,
                Err(NotDone::Refused(error)) => return self.drop_it(lab, &format!("{error:#}")),
                Err(NotDone::Unknown(error)) => return Err(error),
            },
            Stage::Undoing => return self.drop_it(lab, "an agent has refused it"),
            Stage::Writing => {
                // What runs reads it when it begins again, and the new agent when it is started.
                self.write(lab)?;
                warn(lab, self.start_added(lab));
                self.proving().for_each(|agent| warn(lab, renew(lab, agent)));
            }
        }
        self.settle(lab, Issue { authority: None })?;
        Ok(Finished::Done)
    }

    /// Has agents use their new identities, starts a new agent, and tells all of them.
    fn tell(&self, lab: &LabFolder, orders: &[Order], telling: Telling) -> Result<(), NotDone> {
        let renewed = self.proving().try_for_each(|agent| renew(lab, agent));
        renewed.and_then(|()| self.start_added(lab)).map_err(NotDone::Refused)?;
        reached("started");
        give(lab, orders, telling)
    }

    /// The same where an earlier process may have done some of it.
    fn tell_again(&self, lab: &LabFolder) -> Result<(), NotDone> {
        if let Some(part) = self.added_part() {
            self.prepare(lab, part).map_err(NotDone::Unknown)?;
        }
        self.tell(lab, &self.all_orders(), Telling::Again)
    }

    /// Undoes what an earlier process may have done of it.
    fn drop_it(&self, lab: &LabFolder, why: &str) -> anyhow::Result<Finished> {
        let new = |order: &Order| self.added.as_ref() == Some(&order.agent);
        let orders: Vec<Order> = self.all_orders().into_iter().filter(|order| !new(order)).collect();
        take_back(lab, &orders);
        self.undo(lab)?;
        Ok(Finished::Dropped(why.to_owned()))
    }

    /// Writes down what the laboratory is now, once its agents know.
    fn settle(&self, lab: &LabFolder, issue: Issue<'_>) -> anyhow::Result<()> {
        reached("noted");
        if let Some(removed) = &self.removed {
            teardown::stop(Holder::of(&lab.agent_lock(removed))?.into_iter().collect())?;
            reached("stopped");
        }
        self.write(lab)?;
        // One that has begun again meanwhile has read what was written before.
        repeat(lab, &self.all_orders());
        reached("repeated");
        if let Some(removed) = &self.removed {
            revoke::of_removed(lab, &self.record, removed, issue.authority)?;
            reached("revoked");
            forget(lab, removed)?;
            reached("forgotten");
        }
        if self.added.is_some() || self.removed.is_some() {
            tell_hub(lab);
        }
        Journal::of(lab).remove()
    }

    /// Writes it down alone: its agents know.
    pub(crate) fn note(&self, turn: &Turn) -> anyhow::Result<()> {
        self.write(turn.folder())
    }

    /// Has the hub write it down.
    fn have_hub_write(&self, lab: &LabFolder) -> anyhow::Result<()> {
        let taken_out = self.taken_out.iter().map(Cord::port_ends).collect();
        let placed = |cord: &Cord| PlacedCable { ends: cord.port_ends(), delay_ns: cord.delay_ns };
        let put_in = self.put_in.iter().map(placed).collect();
        ask(lab, HUB, &Request::WriteCables { taken_out, put_in }).map_err(|error| {
            Failure::new(format!("the cables are as wanted, and the hub has not written that down: {error}"))
                .hint("`weft topo diff` tells what agents have; other verbs go by what is written down")
        })
    }

    fn all_orders(&self) -> Vec<Order> {
        let out = self.taken_out.iter().flat_map(Cord::take_out);
        out.chain(self.put_in.iter().flat_map(Cord::put_in)).collect()
    }

    /// The orders to agents. All must run, but for one that is removed and one that is new.
    fn orders(&self, lab: &LabFolder) -> anyhow::Result<Vec<Order>> {
        let mut orders = self.all_orders();
        if let Some(removed) = &self.removed
            && !runs(lab, removed)?
        {
            orders.retain(|order| order.agent != *removed);
        }
        for order in &orders {
            if self.added.as_ref() == Some(&order.agent) || runs(lab, &order.agent)? {
                continue;
            }
            let agent = self.record.agents.iter().find(|agent| agent.name == order.agent);
            let device = agent.and_then(|agent| agent.devices.first());
            let label = device.map_or(order.agent.as_str(), |device| device.label.as_str());
            return Err(Failure::new(format!("the agent of `{label}` is not running"))
                .hint(format!("start it with `weft fault restart {label}` first")));
        }
        Ok(orders)
    }

    fn added_part(&self) -> Option<&AgentPart> {
        let added = self.added.as_ref()?;
        self.parts.iter().find(|part| part.name == *added)
    }

    /// Issues identities: a new agent's, and those of agents that are to prove to be nodes that their own does not name.
    fn issue(&self, lab: &LabFolder, issue: Issue<'_>) -> anyhow::Result<()> {
        let own = lab.bundle();
        let mut wanting = Vec::new();
        for part in &self.parts {
            let is_new = self.added.as_ref() == Some(&part.name);
            if is_new || !issue::covers(&own, part)? {
                wanting.push(part);
            }
        }
        if wanting.is_empty() {
            return Ok(());
        }
        let bundle = issue.authority.map_or_else(|| own.clone(), Bundle::at);
        let issuer = Issuer::resume(&bundle, &self.record.lab).map_err(|error| {
            let names: Vec<&str> = wanting.iter().map(|part| part.name.as_str()).collect();
            let message = format!("no identity can be issued for {}: {error:#}", names.join(", "));
            Failure::new(message)
                .hint("name the folder that `weft plan` wrote, which has the key, with --in DIR")
        })?;
        let issuer = issuer.into_bundle(&own)?;
        wanting.iter().try_for_each(|part| issuer.issue_more(part))
    }

    /// The agents that run and have several devices to prove to be, some of them perhaps by an identity that was issued for
    /// this change, or for one that failed.
    fn proving(&self) -> impl Iterator<Item = &str> {
        let faces_others = |part: &AgentPart| part.cables.iter().any(|cable| cable.remote_addr.is_some());
        let run = self.parts.iter().filter(|part| self.added.as_ref() != Some(&part.name));
        run.filter(move |part| part.devices.len() > 1 && faces_others(part)).map(|part| part.name.as_str())
    }

    /// Writes what a new agent reads when it begins.
    fn prepare(&self, lab: &LabFolder, part: &AgentPart) -> anyhow::Result<()> {
        lab.make_locks([part.name.clone()])?;
        store(&lab.bundle(), part)
    }

    /// Starts a new agent, unless it runs.
    fn start_added(&self, lab: &LabFolder) -> anyhow::Result<()> {
        let Some(added) = &self.added else { return Ok(()) };
        if Holder::of(&lab.agent_lock(added))?.is_some() {
            return Ok(());
        }
        // It goes on when this process has ended.
        restart::start(lab, weft_bundle::names::AGENT, added).map(drop)
    }

    /// No cable was changed, or none is any more: a new agent goes again, and nothing is under way.
    fn undo(&self, lab: &LabFolder) -> anyhow::Result<()> {
        reached("refused");
        Journal::of(lab).write(self, Stage::Undoing)?;
        reached("undoing");
        if let Some(added) = &self.added {
            let ended = Holder::of(&lab.agent_lock(added))
                .and_then(|holder| teardown::stop(holder.into_iter().collect()))
                .and_then(|_| forget(lab, added));
            if let Err(error) = ended {
                lab.say(&format!("warning: agent {added} is left behind: {error:#}"));
            }
            reached("given-up");
        }
        Journal::of(lab).remove()
    }

    fn write(&self, lab: &LabFolder) -> anyhow::Result<()> {
        let bundle = lab.bundle();
        self.parts.iter().try_for_each(|part| store(&bundle, part))?;
        reached("parts");
        folder::replace(&bundle.topology(), self.topology.as_bytes())?;
        reached("topology");
        // Last, since it names what is to be there.
        bundle::replace(&bundle.record(), &self.record)?;
        reached("record");
        metrics::write_scrape_file(lab, &self.record)
    }
}

/// Has the front end hear of what could not be done.
fn warn(lab: &LabFolder, done: anyhow::Result<()>) {
    if let Err(error) = done {
        lab.say(&format!("warning: {error:#}; restart it with `weft fault restart`"));
    }
}

/// Has an agent use the identity that is there for it. One that does not run reads it when it begins.
fn renew(lab: &LabFolder, agent: &str) -> anyhow::Result<()> {
    match ask(lab, agent, &Request::RenewIdentity) {
        Ok(()) | Err(ClientError::Connect { .. }) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("agent {agent} does not take its new identity")),
    }
}

fn store(bundle: &Bundle, part: &AgentPart) -> anyhow::Result<()> {
    bundle::replace(&bundle.agent(&part.name), part)
}

/// Removes what an agent leaves behind, but for its log.
fn forget(lab: &LabFolder, agent: &str) -> anyhow::Result<()> {
    let bundle = lab.bundle();
    let sockets = [lab.control(agent), lab.agent_socket(agent), lab.umad_socket(agent)];
    let files = [bundle.agent(agent), bundle.identity(agent), lab.faults(agent), lab.slots(agent)];
    // The lock stays: it tells the hub how the agent has ended.
    sockets.iter().chain(&files).try_for_each(|file| folder::remove(file))
}

/// Has the hub read of which processes the laboratory consists. Without a hub the next one does.
fn tell_hub(lab: &LabFolder) {
    match ask(lab, HUB, &Request::ReadPlan) {
        Ok(()) | Err(ClientError::Connect { .. }) => {}
        Err(error) => lab.say(&format!("warning: the hub does not count by the new plan yet: {error}")),
    }
}
