//! Requests to the agents of a laboratory, many at a time.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use weft_bundle::folder::LabFolder;
use weft_control::agent::{PortEnd, PortStatus};
use weft_control::{Answer, Page, ReplyBody, Request};
use weft_process::{Client, ClientError, poll_for};

/// Agents that are asked at once: enough to keep all cores busy, and few descriptors.
pub const WIDTH: usize = 64;

/// How long an agent has to answer.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Connects to an agent's control socket; `None` when it does not run.
pub fn connect(folder: &LabFolder, agent: &str) -> Result<Option<Client>, ClientError> {
    match Client::connect(&folder.control(agent)) {
        Err(ClientError::Connect { .. }) => Ok(None),
        connected => connected.map(Some),
    }
}

/// One agent that has been asked and has not said everything.
struct Asked<'a> {
    agent: &'a str,
    client: Client,
    until: Instant,
}

/// Asks agents the same, and gives each answer to `take`, which says what that agent is asked next. Agents that do not
/// answer are given back, with the reason.
pub fn ask_agents<'a>(
    folder: &LabFolder,
    agents: impl IntoIterator<Item = &'a str>,
    first: &Request,
    take: impl FnMut(&'a str, Answer) -> Option<Request>,
) -> anyhow::Result<BTreeMap<&'a str, ClientError>> {
    ask_each(folder, agents.into_iter().map(|agent| (agent, first)), take)
}

/// The same of processes of any kind, each of which is asked something of its own first.
pub fn ask_each<'a, 'r>(
    folder: &LabFolder,
    processes: impl IntoIterator<Item = (&'a str, &'r Request)>,
    take: impl FnMut(&'a str, Answer) -> Option<Request>,
) -> anyhow::Result<BTreeMap<&'a str, ClientError>> {
    ask_kept(folder, None, processes, take)
}

/// The same over connections that may be kept, by the process's name, for whoever asks again soon.
pub fn ask_kept<'a, 'r>(
    folder: &LabFolder,
    mut kept: Option<&mut BTreeMap<String, Client>>,
    processes: impl IntoIterator<Item = (&'a str, &'r Request)>,
    mut take: impl FnMut(&'a str, Answer) -> Option<Request>,
) -> anyhow::Result<BTreeMap<&'a str, ClientError>> {
    let mut waiting: VecDeque<(&str, &Request)> = processes.into_iter().collect();
    let (total, mut work) = (waiting.len(), folder.front().listener.work());
    let (mut asked, mut failed): (Vec<Asked<'a>>, _) = (Vec::new(), BTreeMap::new());
    loop {
        while asked.len() < WIDTH
            && let Some((agent, first)) = waiting.pop_front()
        {
            let known = kept.as_mut().and_then(|kept| kept.remove(agent));
            let connected = known.map_or_else(|| Client::connect(&folder.control(agent)), Ok);
            let posted = connected.and_then(|mut client| client.post(first.clone()).map(|_| client));
            match posted {
                Ok(client) => asked.push(Asked { agent, client, until: Instant::now() + PATIENCE }),
                Err(error) => drop(failed.insert(agent, error)),
            }
        }
        let Some(until) = asked.iter().map(|asked| asked.until).min() else { return Ok(failed) };
        work.is_at(&|| format!("asking processes: {} of {total}", total - waiting.len() - asked.len()));
        let mut fds: Vec<PollFd<'_>> =
            asked.iter().map(|asked| PollFd::new(&asked.client, PollFlags::IN)).collect();
        poll_for(&mut fds, Some(until.saturating_duration_since(Instant::now())))?;
        for mut one in std::mem::take(&mut asked) {
            match (one.hear(&mut take), &mut kept) {
                (Ok(true), _) => asked.push(one),
                (Ok(false), Some(kept)) => drop(kept.insert(one.agent.to_owned(), one.client)),
                (Ok(false), None) => {}
                (Err(error), _) => drop(failed.insert(one.agent, error)),
            }
        }
    }
}

impl<'a> Asked<'a> {
    /// Takes what has come; whether more is to come.
    fn hear(
        &mut self,
        take: &mut impl FnMut(&'a str, Answer) -> Option<Request>,
    ) -> Result<bool, ClientError> {
        while let Some(line) = self.client.next_line(Duration::ZERO)? {
            match line.body {
                ReplyBody::Answer(answer) => match take(self.agent, *answer) {
                    None => return Ok(false),
                    Some(next) => {
                        self.client.post(next)?;
                        self.until = Instant::now() + PATIENCE;
                    }
                },
                ReplyBody::Error(error) => return Err(error.into()),
                ReplyBody::Event(_) | ReplyBody::Captured(_) => {}
            }
        }
        if self.until <= Instant::now() { Err(ClientError::TimedOut(PATIENCE)) } else { Ok(true) }
    }
}

/// The request for what is behind a page.
pub fn further(last: Option<PortEnd>, more: bool) -> Option<Page> {
    last.filter(|_| more).map(|last| Page { after: Some(last), limit: None })
}

/// What agents say of their ports.
#[derive(Debug, Default)]
pub struct Ports<'a> {
    /// By port.
    pub told: BTreeMap<PortEnd, PortStatus>,
    /// The agents that do not answer, and why.
    pub silent: BTreeMap<&'a str, ClientError>,
}

/// Asks agents for all of their ports.
pub fn read_ports<'a>(
    folder: &LabFolder,
    agents: impl IntoIterator<Item = &'a str>,
) -> anyhow::Result<Ports<'a>> {
    let mut told = BTreeMap::new();
    let silent = ask_agents(folder, agents, &Request::Ports(Page::default()), |_, answer| {
        let Answer::Ports { ports, more } = answer else { return None };
        let next = further(ports.last().map(|port| port.end), more);
        told.extend(ports.into_iter().map(|port| (port.end, port)));
        next.map(Request::Ports)
    })?;
    Ok(Ports { told, silent })
}
