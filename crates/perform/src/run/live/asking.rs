//! Requests of a live plan to its agents: all of them at the same time, so that a busy machine costs one wait and not one for each.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_control::agent::{PortEnd, PortStatus};
use weft_control::{Answer, HexGuid, Page, Request};
use weft_host::traffic::Command;
use weft_lab::agents::{PATIENCE, ask_kept, connect, further};
use weft_process::ClientError;
use weft_topology::NodeIndex;
use weft_wire::Guid;

use super::Live;

/// What an agent is still to be asked, with the host that each request is for.
type Queues = BTreeMap<String, VecDeque<(NodeIndex, Request)>>;

impl Live<'_, '_> {
    /// The agent that runs a node.
    pub(super) fn agent_of(&self, guid: Guid) -> anyhow::Result<String> {
        let (agent, _) = self.lab.record.device(guid).context("the laboratory has no such node")?;
        Ok(agent.name.clone())
    }

    /// Gives hosts their commands: each host in order, all agents at the same time. A host that is dead does nothing, as the plan may want.
    pub(super) fn command<'c>(
        &mut self,
        commands: impl IntoIterator<Item = (NodeIndex, &'c Command)>,
    ) -> anyhow::Result<()> {
        let plan = self.plan;
        let mut queues = Queues::new();
        for (node, command) in commands {
            if let Some(vm) = plan.born_in(node) {
                self.tell_machine(vm, command)?;
                continue;
            }
            let host = plan.fabric.node(node);
            let port =
                host.attach_port().with_context(|| format!("`{}` has no cable", plan.fabric.label(node)))?;
            let end = PortEnd { node: HexGuid(host.guid), port };
            let request = Request::Host { end, command: command.clone() };
            queues.entry(self.agent_of(host.guid)?).or_default().push_back((node, request));
        }
        let firsts: Vec<(String, Request)> = queues
            .iter()
            .filter_map(|(agent, queue)| Some((agent.clone(), queue.front()?.1.clone())))
            .collect();
        let asked = firsts.iter().map(|(agent, request)| (agent.as_str(), request));
        let failed = ask_kept(&self.lab.folder, Some(&mut self.clients), asked, |agent, _| {
            let queue = queues.get_mut(agent)?;
            queue.pop_front();
            queue.front().map(|(_, request)| request.clone())
        })?;
        for (agent, error) in failed {
            let refused = queues.get(agent).and_then(|queue| queue.front());
            match (error, refused) {
                (ClientError::Refused(error), Some((node, _))) => {
                    return Err(Failure::new(format!("`{}`: {error}", plan.fabric.label(*node))).into());
                }
                (error, _) => alive(agent, error)?,
            }
        }
        Ok(())
    }

    /// An agent's answer, `None` when it is dead.
    pub(super) fn ask(&mut self, agent: &str, request: Request) -> anyhow::Result<Option<Answer>> {
        if !self.clients.contains_key(agent) {
            let Some(client) = connect(&self.lab.folder, agent)? else { return Ok(None) };
            self.clients.insert(agent.to_owned(), client);
        }
        let Some(client) = self.clients.get_mut(agent) else { return Ok(None) };
        match client.ask(request, PATIENCE) {
            Ok(answer) => Ok(Some(answer)),
            Err(ClientError::Refused(error)) => Err(error.into()),
            Err(error) => {
                self.clients.remove(agent);
                alive(agent, error).map(|()| None)
            }
        }
    }

    /// Asks every agent the same. `take` says what an agent is asked next; dead ones are left out.
    pub(super) fn ask_all(
        &mut self,
        first: &Request,
        take: impl FnMut(&str, Answer) -> Option<Request>,
    ) -> anyhow::Result<()> {
        let agents: BTreeSet<String> =
            self.lab.record.agents.iter().map(|agent| agent.name.clone()).collect();
        self.ask_these(&agents, first, take)
    }

    fn ask_these(
        &mut self,
        agents: &BTreeSet<String>,
        first: &Request,
        take: impl FnMut(&str, Answer) -> Option<Request>,
    ) -> anyhow::Result<()> {
        let firsts = agents.iter().map(|agent| (agent.as_str(), first));
        let failed = ask_kept(&self.lab.folder, Some(&mut self.clients), firsts, take)?;
        failed.into_iter().try_for_each(|(agent, error)| alive(agent, error))
    }

    /// Every agent's list, page by page; dead ones are left out. `take` takes a page and gives its last item, and whether more follow.
    pub(super) fn list_all(
        &mut self,
        request: fn(Page) -> Request,
        mut take: impl FnMut(Answer) -> (Option<PortEnd>, bool),
    ) -> anyhow::Result<()> {
        self.ask_all(&request(Page::default()), |_, answer| {
            let (last, more) = take(answer);
            further(last, more).map(request)
        })
    }

    /// What agents say of their ports; nothing of a dead one's.
    pub(super) fn ports_of(
        &mut self,
        agents: &BTreeSet<String>,
    ) -> anyhow::Result<BTreeMap<PortEnd, PortStatus>> {
        let mut all = BTreeMap::new();
        self.ask_these(agents, &Request::Ports(Page::default()), |_, answer| {
            let Answer::Ports { ports, more } = answer else { return None };
            let next = further(ports.last().map(|port| port.end), more);
            all.extend(ports.into_iter().map(|port| (port.end, port)));
            next.map(Request::Ports)
        })?;
        Ok(all)
    }
}

/// An error, unless it is that of an agent that is dead.
fn alive(agent: &str, error: ClientError) -> anyhow::Result<()> {
    match error {
        ClientError::Io(_) | ClientError::Closed | ClientError::Connect { .. } => Ok(()),
        ClientError::Refused(error) => Err(error.into()),
        error => Err(error).with_context(|| format!("the agent {agent} does not answer")),
    }
}
