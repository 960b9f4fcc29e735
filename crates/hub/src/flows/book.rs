//! The flows of a laboratory by name: which there are, what their ends report, and what follows from that. Knows no socket and no clock.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use weft_control::agent::PortEnd;
use weft_control::flow::{FlowChoice, FlowEnd, FlowLine, FlowOrder, FlowShape, FlowState};
use weft_control::traffic::{
    Command, Destination, FlowId, FlowReport, FlowSpec, HostFlows, MoveBy, PathSource, Transport,
};
use weft_control::{Error, ErrorCode, NamePage, Utc};

use crate::gone::GoneVms;

/// The most flows of a laboratory.
pub(crate) const FLOWS_MAX: usize = 16_384;
/// The most that begin with one request.
pub(crate) const ORDERS_MAX: usize = 1024;
/// The most ends that agents are still to forget: two of each flow.
const DEBTS_MAX: usize = 2 * FLOWS_MAX;
/// The longest message, in bytes.
const MESSAGE_MAX: u32 = 1 << 30;
/// The smallest and the largest packet, in bytes of body (IBA 7.1: the largest MTU).
const PACKETS: std::ops::RangeInclusive<u16> = 16..=4096;
const NANOS: u64 = 1_000_000_000;

/// All flows.
#[derive(Debug, Default)]
pub(crate) struct Book {
    flows: BTreeMap<String, Flow>,
    by_number: BTreeMap<u32, String>,
    last: u32,
    debts: BTreeSet<Debt>,
}

/// An end of a flow that its agent is still to forget: it did not answer when it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Debt {
    pub(crate) process: String,
    at: PortEnd,
    flow: u32,
}

impl Debt {
    /// What the agent is to do.
    pub(crate) fn order(&self) -> Order {
        let (process, at) = (self.process.clone(), self.at);
        let flow = FlowId(self.flow);
        Order { flow: format!("{process} {at} {}", self.flow), process, at, command: Command::Close { flow } }
    }
}

/// What a hub writes down for the one after it.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Kept {
    flows: Vec<FlowLine>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    debts: BTreeSet<Debt>,
    /// The highest number that a flow had: an agent that was silent may still know it.
    #[serde(default)]
    last: u32,
}

/// The same as it is read; hubs of before wrote the flows alone.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Journal {
    /// All of it.
    Whole(Kept),
    /// The flows.
    Flows(Vec<FlowLine>),
}

impl Default for Journal {
    fn default() -> Self {
        Self::Flows(Vec::new())
    }
}

/// A flow and what the last looks at it have shown.
#[derive(Debug)]
struct Flow {
    line: FlowLine,
    /// Bytes that had come to the receiver, and when that was looked at.
    seen: Option<(Utc, u64)>,
    /// No more has come between the last two looks.
    is_quiet: bool,
    /// Whether each end was reported in the look that goes on.
    found: [bool; 2],
}

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The one that sends.
    Sender,
    /// The other one.
    Receiver,
}

/// What an agent is to do for a flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) flow: String,
    pub(crate) process: String,
    pub(crate) at: PortEnd,
    pub(crate) command: Command,
}

/// How a look at an agent went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It said what flows it has.
    Said,
    /// It runs, and did not answer.
    Silent,
    /// It does not run.
    Gone,
}

fn refused(code: ErrorCode, message: String, hint: &str) -> Error {
    Error::new(code, message).hint(hint)
}

/// Whether a text can name a flow or a set: as faults are named.
fn check_name(name: &str) -> Result<(), Error> {
    match name.parse::<weft_fault::FaultId>() {
        Ok(_) => Ok(()),
        Err(_) => Err(refused(
            ErrorCode::InvalidRequest,
            format!("`{}` cannot name a flow", name.escape_debug()),
            "use 1 to 64 letters, digits, `-`, `_` and `.`",
        )),
    }
}

fn check_shape(shape: &FlowShape) -> Result<(), Error> {
    let invalid = |message: String, hint: &str| Err(refused(ErrorCode::InvalidRequest, message, hint));
    if shape.message_bytes == 0 || shape.message_bytes > MESSAGE_MAX {
        let message = format!("a message of {} bytes is not possible", shape.message_bytes);
        return invalid(message, "use 1 to 1073741824 bytes");
    }
    if !PACKETS.contains(&shape.packet_bytes) || !shape.packet_bytes.is_multiple_of(4) {
        let message = format!("packets of {} bytes are not possible", shape.packet_bytes);
        return invalid(message, "use a multiple of 4 from 16 to the path's MTU, 4096 at most");
    }
    for (value, what) in [
        (shape.bytes_per_second, "a rate of 0"),
        (shape.bytes_max, "a flow of 0 bytes"),
        (shape.for_ms, "a flow of 0 ms"),
    ] {
        if value == Some(0) {
            return invalid(format!("{what} is not possible"), "leave it out, or use a positive number");
        }
    }
    Ok(())
}

impl Book {
    /// The flows that a hub before this one wrote down, and the names of those that it did not get to begin.
    pub(crate) fn recall(journal: Journal) -> (Self, Vec<String>) {
        let Kept { flows, debts, last } = match journal {
            Journal::Whole(kept) => kept,
            Journal::Flows(flows) => Kept { flows, ..Kept::default() },
        };
        let mut book = Self { debts, last, ..Self::default() };
        for line in flows {
            book.last = book.last.max(line.flow);
            book.by_number.insert(line.flow, line.name.clone());
            book.flows
                .insert(line.name.clone(), Flow { line, seen: None, is_quiet: false, found: [false; 2] });
        }
        let starting = book.in_state(FlowState::Starting);
        (book, starting)
    }

    /// What the next hub is to know.
    pub(crate) fn kept(&self) -> Kept {
        let kept = |flow: &Flow| FlowLine { sender: None, receiver: None, ..flow.line.clone() };
        Kept { flows: self.flows.values().map(kept).collect(), debts: self.debts.clone(), last: self.last }
    }

    /// An agent did not answer when it was to forget a flow.
    pub(crate) fn owe(&mut self, order: &Order) {
        if let (Command::Close { flow }, true) = (&order.command, self.debts.len() < DEBTS_MAX) {
            let (process, at) = (order.process.clone(), order.at);
            self.debts.insert(Debt { process, at, flow: flow.0 });
        }
    }

    /// Ends that agents are still to forget.
    pub(crate) fn debts(&self) -> impl Iterator<Item = &Debt> {
        self.debts.iter()
    }

    /// An agent has forgotten an end, or is gone with it.
    pub(crate) fn settled(&mut self, debt: &Debt) {
        self.debts.remove(debt);
    }

    fn in_state(&self, state: FlowState) -> Vec<String> {
        let flows = self.flows.iter().filter(|(_, flow)| flow.line.state == state);
        flows.map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &FlowLine> {
        self.flows.values().map(|flow| &flow.line)
    }

    /// Whether a look at agents can show anything new.
    pub(crate) fn is_idle(&self) -> bool {
        self.flows.values().all(|flow| flow.line.state != FlowState::Running)
    }

    /// Takes flows in that are to begin; all of them or none. Gives their names.
    pub(crate) fn begin(&mut self, orders: Vec<FlowOrder>, now: Utc) -> Result<Vec<String>, Error> {
        if orders.len() > ORDERS_MAX {
            let message = format!("{} flows cannot begin at once", orders.len());
            return Err(refused(ErrorCode::TooMany, message, "begin 1024 at a time"));
        }
        if self.flows.len() + orders.len() > FLOWS_MAX {
            let message = format!("the laboratory would have more than {FLOWS_MAX} flows");
            return Err(refused(ErrorCode::TooMany, message, "`weft flow stop` ends some"));
        }
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let mut named = Vec::new();
        let mut last = self.last;
        for order in orders {
            check_shape(&order.shape)?;
            if order.from.guid == order.to.guid {
                let message = format!("a flow cannot go from {} to itself", order.from.name);
                return Err(refused(ErrorCode::InvalidRequest, message, "name two hosts"));
            }
            last += 1;
            let name = order.name.clone().unwrap_or_else(|| self.free_name(last));
            check_name(&name)?;
            order.set.as_deref().map_or(Ok(()), check_name)?;
            if self.flows.contains_key(&name) || !taken.insert(name.clone()) {
                let message = format!("a flow is called `{name}` already");
                let hint = "choose another name, or end that one with `weft flow stop`";
                return Err(refused(ErrorCode::Conflict, message, hint));
            }
            named.push((name, last, order));
        }
        self.last = last;
        Ok(named.into_iter().map(|(name, number, order)| self.insert(name, number, order, now)).collect())
    }

    fn free_name(&self, number: u32) -> String {
        let mut names = (number..).map(|number| format!("flow-{number}"));
        names.find(|name| !self.flows.contains_key(name)).unwrap_or_default()
    }

    fn insert(&mut self, name: String, flow: u32, order: FlowOrder, now: Utc) -> String {
        let FlowOrder { name: _, set, from, to, shape } = order;
        let line =
            FlowLine { name: name.clone(), flow, set, from, to, shape, began: now, ..FlowLine::default() };
        self.by_number.insert(flow, name.clone());
        self.flows.insert(name.clone(), Flow { line, seen: None, is_quiet: false, found: [false; 2] });
        name
    }

    /// What an end is to be asked to begin.
    pub(crate) fn beginning(&self, name: &str, side: Side) -> Option<Order> {
        let line = &self.flows.get(name)?.line;
        let FlowLine { from, to, shape, .. } = line;
        let flow = FlowId(line.flow);
        let command = match side {
            Side::Receiver => Command::Expect {
                flow,
                from: (shape.transport == Transport::ReliableConnection).then_some(from.guid.0),
                transport: shape.transport,
                work: shape.work,
                message_bytes: shape.message_bytes,
            },
            Side::Sender => Command::Open(FlowSpec {
                flow,
                to: match to.machine().filter(|_| to.by_name) {
                    Some(vm) => Destination::Named(vm.to_owned()),
                    None => Destination::One(to.guid.0),
                },
                transport: shape.transport,
                work: shape.work,
                message_bytes: shape.message_bytes,
                packet_bytes: shape.packet_bytes,
                bytes_per_second: shape.bytes_per_second,
                bytes_max: shape.bytes_max,
                paths: PathSource::PathRecord,
                move_by: MoveBy::Drain,
            }),
        };
        self.order(name, side, command)
    }

    /// What an end is to be asked to send nothing new, or to forget the flow.
    pub(crate) fn ending(&self, name: &str, side: Side, at_once: bool) -> Option<Order> {
        let flow = FlowId(self.flows.get(name)?.line.flow);
        let command = if at_once { Command::Close { flow } } else { Command::Stop { flow } };
        self.order(name, side, command)
    }

    fn order(&self, name: &str, side: Side, command: Command) -> Option<Order> {
        let line = &self.flows.get(name)?.line;
        let FlowEnd { process, at, .. } = if side == Side::Sender { &line.from } else { &line.to };
        Some(Order { flow: name.to_owned(), process: process.clone(), at: *at, command })
    }

    /// Both ends know it.
    pub(crate) fn begun(&mut self, name: &str) {
        if let Some(flow) = self.flows.get_mut(name) {
            flow.line.state = FlowState::Running;
        }
    }

    pub(crate) fn line(&self, name: &str) -> Option<&FlowLine> {
        self.flows.get(name).map(|flow| &flow.line)
    }

    /// Forgets a flow.
    pub(crate) fn remove(&mut self, name: &str) -> Option<FlowLine> {
        let flow = self.flows.remove(name)?;
        self.by_number.remove(&flow.line.flow);
        Some(flow.line)
    }

    /// The names of flows that are chosen.
    pub(crate) fn chosen(&self, choice: &FlowChoice) -> Result<Vec<String>, Error> {
        let unknown = |what: &str, name: &str| {
            let message = format!("no {what} is called `{}`", name.escape_debug());
            refused(ErrorCode::NotFound, message, "`weft flow ls` lists them")
        };
        if let Some(name) = choice.names.iter().find(|name| !self.flows.contains_key(*name)) {
            return Err(unknown("flow", name));
        }
        let is_of = |flow: &Flow, set: &String| flow.line.set.as_ref() == Some(set);
        let has = |set: &&String| self.flows.values().any(|flow| is_of(flow, set));
        if let Some(set) = choice.sets.iter().find(|set| !has(set)) {
            return Err(unknown("set of flows", set));
        }
        let is_chosen = |name: &String, flow: &Flow| {
            choice.all || choice.names.contains(name) || choice.sets.iter().any(|set| is_of(flow, set))
        };
        let chosen = self.flows.iter().filter(|(name, flow)| is_chosen(name, flow));
        Ok(chosen.map(|(name, _)| name.clone()).collect())
    }

    /// A page of the list.
    pub(crate) fn page(&self, page: &NamePage) -> (Vec<FlowLine>, bool) {
        let after = page.after.as_deref().unwrap_or_default();
        let mut lines = self.iter().skip_while(|line| line.name.as_str() <= after).peekable();
        let listed = lines.by_ref().take(page.items_max()).cloned().collect();
        (listed, lines.peek().is_some())
    }

    /// The agents of flows that run.
    pub(crate) fn agents(&self) -> BTreeSet<String> {
        let running = self.iter().filter(|line| line.state == FlowState::Running);
        running.flat_map(|line| [line.from.process.clone(), line.to.process.clone()]).collect()
    }

    /// A look begins.
    pub(crate) fn look(&mut self) {
        self.flows.values_mut().for_each(|flow| flow.found = [false; 2]);
    }

    /// An agent says what its hosts know of flows. One whose end was at another agent has moved with its virtual machine.
    pub(crate) fn hear(&mut self, process: &str, now: Utc, hosts: Vec<HostFlows>) {
        for HostFlows { end, flows, .. } in hosts {
            for report in flows {
                let Some(name) = self.by_number.get(&report.flow.0) else { continue };
                if let Some(flow) = self.flows.get_mut(name) {
                    flow.hear(process, end, now, report);
                }
            }
        }
    }

    /// Flows of virtual machines of which an end was not found where it was.
    pub(crate) fn has_lost_vms(&self) -> bool {
        self.flows.values().any(|flow| {
            let FlowLine { from, to, state, .. } = &flow.line;
            let is_lost = |side: usize, end: &FlowEnd| !flow.found[side] && end.is_vm();
            *state == FlowState::Running && (is_lost(0, from) || is_lost(1, to))
        })
    }

    /// What follows from a look: the flows that have ended, whose ends are still to forget them.
    pub(crate) fn settle(&mut self, now: Utc, looks: impl Fn(&str) -> Look, gone: &GoneVms) -> Vec<String> {
        let running = self.flows.iter_mut().filter(|(_, flow)| flow.line.state == FlowState::Running);
        running.filter_map(|(name, flow)| flow.settle(now, &looks, gone).then(|| name.clone())).collect()
    }
}

impl Flow {
    fn hear(&mut self, process: &str, at: PortEnd, now: Utc, report: FlowReport) {
        let (end, side) = match report.sender {
            true => (&mut self.line.from, Side::Sender),
            false => (&mut self.line.to, Side::Receiver),
        };
        if end.process != process || end.by_name && end.at != at {
            if !end.is_vm() {
                return;
            }
            (end.process, end.at) = (process.to_owned(), at);
        }
        self.found[side as usize] = true;
        if side == Side::Sender {
            self.line.sender = Some(report);
            return;
        }
        if let Some((then, bytes)) = self.seen {
            let nanos = now.as_nanos().saturating_sub(then.as_nanos()).max(1);
            self.is_quiet = report.bytes == bytes;
            let more = u128::from(report.bytes.saturating_sub(bytes)) * u128::from(NANOS);
            self.line.delivered_bytes_per_second =
                u64::try_from(more / u128::from(nanos)).unwrap_or(u64::MAX);
        }
        self.seen = Some((now, report.bytes));
        self.line.receiver = Some(report);
    }

    /// Takes note of how it is. Whether it has ended.
    fn settle(&mut self, now: Utc, looks: &impl Fn(&str) -> Look, gone: &GoneVms) -> bool {
        let (state, reason) = self.judge(now, looks, gone);
        (self.line.state, self.line.reason) = (state, reason);
        let has_ended = state != FlowState::Running;
        if has_ended {
            self.line.delivered_bytes_per_second = 0;
        }
        has_ended
    }

    /// How it is by the last look, and why it has ended or what it waits for.
    fn judge(&self, now: Utc, looks: &impl Fn(&str) -> Look, gone: &GoneVms) -> (FlowState, Option<String>) {
        let FlowLine { from, to, sender, receiver, shape, began, .. } = &self.line;
        for (end, found) in [from, to].into_iter().zip(self.found) {
            let (agent, name) = (&end.process, &end.name);
            // Another machine of its name may run by now; this flow was not with that one.
            let has_ended = !found && end.machine().is_some_and(|vm| gone.has_ended_since(vm, *began));
            let (state, reason) = match looks(agent) {
                _ if has_ended => (FlowState::Failed, format!("{name} has ended")),
                Look::Silent => (FlowState::Running, format!("the agent {agent} of {name} does not answer")),
                Look::Gone => (FlowState::Failed, format!("the agent {agent} of {name} has ended")),
                Look::Said if found => continue,
                Look::Said if end.is_vm() => {
                    (FlowState::Running, format!("{name} is at no agent, as while it moves"))
                }
                Look::Said => (
                    FlowState::Failed,
                    format!("the agent {agent} of {name} began again, and knows it no more"),
                ),
            };
            return (state, Some(reason));
        }
        let error = |report: &Option<FlowReport>| report.as_ref().and_then(|report| report.error.clone());
        let is =
            |report: &Option<FlowReport>, state| report.as_ref().is_some_and(|report| report.state == state);
        let error = error(sender).or_else(|| error(receiver));
        let age_ms = now.as_nanos().saturating_sub(began.as_nanos()) / 1_000_000;
        if is(sender, "error") || is(receiver, "error") {
            (FlowState::Failed, error)
        } else if is(sender, "done") && self.is_quiet {
            (FlowState::Done, Some("all is sent".to_owned()))
        } else if shape.for_ms.is_some_and(|for_ms| age_ms >= for_ms) {
            (FlowState::Done, Some("its time is over".to_owned()))
        } else {
            (FlowState::Running, error)
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests;
