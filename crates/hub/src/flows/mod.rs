//! Traffic between hosts of a running laboratory: the hub begins flows at both of their ends, looks at them once a second while any
//! runs, ends them, and keeps them in a journal, so that a hub after it goes on.
//!
//! ```text
//!   flow-start ─▶ Starting ── expect at the receiver, open at the sender ─▶ Running ── flow-stop ─▶ forgotten
//!                    │ an end refuses, or the hub dies                        │ done, in error, an end is gone
//!                    └─▶ undone at both ends                                  └─▶ Done, Failed: listed until flow-stop
//! ```

mod book;
mod metrics;

use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Notify, Semaphore};
use tokio::task::JoinSet;
use weft_control::event::LabEvent;
use weft_control::flow::{FlowChoice, FlowLine, FlowOrder, FlowRefused, FlowState};
use weft_control::hub::ProcessState;
use weft_control::process::ProcessKind;
use weft_control::{Answer, Error, ErrorCode, EventKind, NamePage, Page, Request};
use weft_process::utc_now;

use crate::shared::Shared;
use crate::talk::ask;
use crate::tend::socket;
use book::{Book, Debt, Journal, Look, Order, Side};
pub(crate) use metrics::FlowMetrics;

/// How often agents of flows that run are asked how these are.
const LOOK: Duration = Duration::from_secs(1);
/// How long an agent has to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Agents that are asked at the same time.
const AT_ONCE: usize = 64;
/// How long what is under way when a flow is stopped has to arrive, and the pause between two looks.
const DRAIN: Duration = Duration::from_secs(2);
const DRAIN_LOOK: Duration = Duration::from_millis(50);

/// The flows of the laboratory.
pub(crate) struct Flows {
    shared: Arc<Shared>,
    folder: PathBuf,
    book: RefCell<Book>,
    /// Held by whoever begins or ends flows.
    turn: Mutex<()>,
    /// Rings when a flow begins.
    begun: Notify,
}

/// What became of orders, by flow: why not, where an agent did not do it.
type Failures = BTreeMap<String, Failure>;

/// Why an agent did not do something.
#[derive(Clone, Debug)]
struct Failure {
    reason: String,
    /// It runs, and did not answer: it may have done it, or do it later.
    is_silent: bool,
}

impl Failure {
    fn of(reason: String) -> Self {
        Self { reason, is_silent: false }
    }

    fn silent(reason: String) -> Self {
        Self { reason, is_silent: true }
    }
}

impl Flows {
    /// Those that a hub before this one has left.
    pub(crate) fn new(shared: Arc<Shared>, folder: PathBuf) -> (Rc<Self>, Vec<String>) {
        let kept = shared.lab.kept_flows().unwrap_or_default();
        let journal = serde_json::from_str::<Journal>(&kept).unwrap_or_else(|error| {
            if !kept.is_empty() {
                tracing::warn!(%error, "the journal of flows cannot be read: flows of before are not known");
            }
            Journal::default()
        });
        let (book, starting) = Book::recall(journal);
        let book = RefCell::new(book);
        (Rc::new(Self { shared, folder, book, turn: Mutex::default(), begun: Notify::new() }), starting)
    }

    /// Reads the list.
    pub(crate) fn book(&self) -> Ref<'_, Book> {
        self.book.borrow()
    }

    /// A page of the list.
    pub(crate) fn list(&self, page: &NamePage) -> Answer {
        let (flows, more) = self.book.borrow().page(page);
        Answer::LabFlows { flows, more, dilation: self.shared.lab.dilation() }
    }

    /// Begins flows. What is wrong with one of them keeps all from beginning; what an agent refuses, that one alone.
    pub(crate) async fn start(&self, orders: Vec<FlowOrder>) -> Result<Answer, Error> {
        let _turn = self.turn.lock().await;
        let names = self.book.borrow_mut().begin(orders, utc_now())?;
        if let Err(error) = self.keep() {
            names.iter().for_each(|name| drop(self.book.borrow_mut().remove(name)));
            return Err(error);
        }
        let mut refused = Failures::new();
        for side in [Side::Receiver, Side::Sender] {
            let left = names.iter().filter(|name| !refused.contains_key(*name));
            let orders = left.filter_map(|name| self.book.borrow().beginning(name, side)).collect();
            refused.append(&mut self.give(orders).await);
        }
        let failed: Vec<String> = refused.keys().cloned().collect();
        self.forget(&failed).await;
        let mut begun = names;
        begun.retain(|name| !refused.contains_key(name));
        for name in &begun {
            let mut book = self.book.borrow_mut();
            book.begun(name);
            if let Some(FlowLine { set, from, to, .. }) = book.line(name) {
                let (flow, set) = (name.clone(), set.clone());
                let (from, to) = (from.name.clone(), to.name.clone());
                self.shared.tell(EventKind::Lab(LabEvent::FlowStarted { flow, set, from, to }));
            }
        }
        self.keep()?;
        self.begun.notify_one();
        Ok(Answer::FlowStart { begun, refused: listed(refused) })
    }

    /// Ends flows: senders stop, what is under way arrives, both ends forget them.
    pub(crate) async fn stop(&self, choice: &FlowChoice) -> Result<Answer, Error> {
        let _turn = self.turn.lock().await;
        let names = self.book.borrow().chosen(choice)?;
        let running = |name: &&String| {
            self.book.borrow().line(name).is_some_and(|line| line.state == FlowState::Running)
        };
        let running: Vec<String> = names.iter().filter(running).cloned().collect();
        let stops = running.iter().filter_map(|name| self.book.borrow().ending(name, Side::Sender, false));
        let stops = stops.collect();
        self.give(stops).await;
        self.drain(&running).await;
        let unheard = self.forget(&names).await;
        self.keep()?;
        // Ends of which an agent did not hear are looked after when it answers.
        self.begun.notify_one();
        for flow in &names {
            self.shared.tell(EventKind::Lab(LabEvent::FlowStopped { flow: flow.clone() }));
        }
        Ok(Answer::FlowStop { stopped: names.len() as u64, unheard: listed(unheard) })
    }

    /// Waits until what was sent has come, as long as more comes.
    async fn drain(&self, names: &[String]) {
        let until = tokio::time::Instant::now() + DRAIN;
        loop {
            self.look().await;
            let is_under_way = |name: &String| {
                let book = self.book.borrow();
                let line = book.line(name)?;
                let (sender, receiver) = (line.sender.as_ref()?, line.receiver.as_ref()?);
                Some(sender.error.is_none() && sender.bytes > receiver.bytes + receiver.missing)
            };
            if tokio::time::Instant::now() >= until
                || !names.iter().any(|name| is_under_way(name) == Some(true))
            {
                return;
            }
            tokio::time::sleep(DRAIN_LOOK).await;
        }
    }

    /// Has both ends forget flows, and forgets them. Those of which an agent did not answer.
    async fn forget(&self, names: &[String]) -> Failures {
        let unheard = self.close(names).await;
        names.iter().for_each(|name| drop(self.book.borrow_mut().remove(name)));
        unheard
    }

    async fn close(&self, names: &[String]) -> Failures {
        let mut unheard = Failures::new();
        for side in [Side::Sender, Side::Receiver] {
            let orders = names.iter().filter_map(|name| self.book.borrow().ending(name, side, true));
            let orders: Vec<Order> = orders.collect();
            let mut failures = self.give(orders.clone()).await;
            let is_silent = |order: &&Order| failures.get(&order.flow).is_some_and(|why| why.is_silent);
            orders.iter().filter(is_silent).for_each(|order| self.book.borrow_mut().owe(order));
            unheard.append(&mut failures);
        }
        // An agent that has ended, or has forgotten the flow, has done what it was to do.
        unheard.retain(|_, failure| failure.is_silent);
        unheard
    }

    /// Gives agents their orders, many agents at a time.
    async fn give(&self, orders: Vec<Order>) -> Failures {
        let mut by_agent: BTreeMap<String, Vec<Order>> = BTreeMap::new();
        for order in orders {
            by_agent.entry(order.process.clone()).or_default().push(order);
        }
        let asked = by_agent.iter().map(|(agent, orders)| {
            let requests =
                orders.iter().map(|order| Request::Host { end: order.at, command: order.command.clone() });
            (agent.clone(), requests.collect())
        });
        let mut failures = Failures::new();
        for (agent, answers) in self.ask_all(asked.collect()).await {
            let orders = by_agent.remove(&agent).unwrap_or_default();
            match answers {
                Ok(answers) => {
                    let refused = orders.iter().zip(answers).filter_map(|(order, answer)| {
                        Some((order.flow.clone(), Failure::of(answer.err()?.message)))
                    });
                    failures.extend(refused);
                }
                Err(why) => failures.extend(orders.into_iter().map(|order| (order.flow, why.clone()))),
            }
        }
        failures
    }

    /// Asks agents; each one's answers, or why there are none.
    async fn ask_all(
        &self,
        asked: Vec<(String, Vec<Request>)>,
    ) -> Vec<(String, Result<Vec<Result<Answer, Error>>, Failure>)> {
        let places = Arc::new(Semaphore::new(AT_ONCE));
        let mut tasks = JoinSet::new();
        let mut all = Vec::new();
        for (agent, requests) in asked {
            match self.shared.state().roster.state(&agent) {
                None | Some(ProcessState::Ended) => {
                    let why = Failure::of(format!("the agent {agent} does not run"));
                    all.push((agent, Err(why)));
                    continue;
                }
                // A hub that has just begun has not heard of those that ran before it.
                Some(ProcessState::Expected) => {
                    let why = Failure::silent(format!("the agent {agent} has not been heard of yet"));
                    all.push((agent, Err(why)));
                    continue;
                }
                Some(_) => {}
            }
            let (path, places) = (socket(&self.folder, &agent), places.clone());
            tasks.spawn_local(async move {
                let _place = places.acquire().await;
                let answers = match tokio::time::timeout(PATIENCE, ask(&path, requests)).await {
                    Ok(Ok(answers)) => Ok(answers),
                    Ok(Err(error)) => {
                        Err(Failure::silent(format!("the agent {agent} does not answer: {error}")))
                    }
                    Err(_) => Err(Failure::silent(format!("the agent {agent} does not answer"))),
                };
                (agent, answers)
            });
        }
        while let Some(done) = tasks.join_next().await {
            all.extend(done);
        }
        all
    }

    /// Asks the agents of flows that run, and of all agents where a virtual machine has moved. How each look went.
    async fn look(&self) -> BTreeMap<String, Look> {
        self.book.borrow_mut().look();
        let mut looks = BTreeMap::new();
        let agents = self.book.borrow().agents();
        self.look_at(agents, &mut looks).await;
        if self.book.borrow().has_lost_vms() {
            let all: BTreeSet<String> = {
                let state = self.shared.state();
                let ready = state.roster.in_state(ProcessState::Ready).into_iter();
                ready.filter(|name| state.roster.kind(name) == Some(ProcessKind::Agent)).collect()
            };
            let others = all.into_iter().filter(|agent| !looks.contains_key(agent)).collect();
            self.look_at(others, &mut looks).await;
        }
        looks
    }

    async fn look_at(&self, agents: BTreeSet<String>, looks: &mut BTreeMap<String, Look>) {
        let mut due: BTreeMap<String, Page> =
            agents.into_iter().map(|agent| (agent, Page::default())).collect();
        while !due.is_empty() {
            let asked = std::mem::take(&mut due).into_iter();
            let asked = asked.map(|(agent, page)| (agent, vec![Request::Flows(page)])).collect();
            for (agent, answers) in self.ask_all(asked).await {
                let answer = answers.map(|mut answers| answers.pop());
                let Ok(Some(Ok(Answer::Flows { hosts, more }))) = answer else {
                    let state = self.shared.state().roster.state(&agent);
                    let is_gone = matches!(state, None | Some(ProcessState::Ended));
                    looks.insert(agent, if is_gone { Look::Gone } else { Look::Silent });
                    continue;
                };
                if let (true, Some(last)) = (more, hosts.last()) {
                    due.insert(agent.clone(), Page { after: Some(last.end), limit: None });
                }
                self.book.borrow_mut().hear(&agent, utc_now(), hosts);
                looks.insert(agent, Look::Said);
            }
        }
    }

    /// Looks at flows for as long as any runs. `starting`: flows that a hub before this one did not get to begin.
    pub(crate) async fn watch(self: Rc<Self>, starting: Vec<String>) {
        if !starting.is_empty() {
            let _turn = self.turn.lock().await;
            self.forget(&starting).await;
            self.note();
        }
        loop {
            let owes = || self.book.borrow().debts().next().is_some();
            while self.book.borrow().is_idle() && !owes() {
                self.begun.notified().await;
            }
            tokio::time::sleep(LOOK).await;
            if owes() {
                self.collect_debts().await;
            }
            let _turn = self.turn.lock().await;
            let looks = self.look().await;
            let look = |agent: &str| looks.get(agent).copied().unwrap_or(Look::Silent);
            let ended = {
                let state = self.shared.state();
                self.book.borrow_mut().settle(utc_now(), look, &state.gone_vms)
            };
            if ended.is_empty() {
                continue;
            }
            self.close(&ended).await;
            for name in &ended {
                if let Some(line) = self.book.borrow().line(name) {
                    let (flow, done) = (name.clone(), line.state == FlowState::Done);
                    let reason = line.reason.clone().unwrap_or_default();
                    self.shared.tell(EventKind::Lab(LabEvent::FlowEnded { flow, done, reason }));
                }
            }
            self.note();
        }
    }

    /// Has agents that answer again forget ends of flows which they kept while they were silent. No one waits for it: it takes no turn
    /// while an agent is asked.
    async fn collect_debts(&self) {
        let debts: Vec<Debt> = self.book.borrow().debts().cloned().collect();
        let failures = self.give(debts.iter().map(Debt::order).collect()).await;
        let is_settled = |debt: &&Debt| !failures.get(&debt.order().flow).is_some_and(|why| why.is_silent);
        let settled: Vec<&Debt> = debts.iter().filter(is_settled).collect();
        if settled.is_empty() {
            return;
        }
        let _turn = self.turn.lock().await;
        settled.iter().for_each(|debt| self.book.borrow_mut().settled(debt));
        self.note();
    }

    /// Writes the journal.
    fn keep(&self) -> Result<(), Error> {
        let kept = self.book.borrow().kept();
        let json = serde_json::to_string(&kept).expect("a flow holds nothing that JSON cannot say");
        self.shared.lab.keep_flows(&json).map_err(|error| {
            let message = format!("the hub cannot write its journal of flows: {error}");
            Error::new(ErrorCode::Failed, message)
                .hint("make room on the disk, and run the same command again")
        })
    }

    /// The same where no client waits for it.
    fn note(&self) {
        if let Err(error) = self.keep() {
            tracing::warn!(%error, "the hub after this one will not know which flows have ended");
        }
    }
}

fn listed(failures: Failures) -> Vec<FlowRefused> {
    failures.into_iter().map(|(name, failure)| FlowRefused { name, reason: failure.reason }).collect()
}
