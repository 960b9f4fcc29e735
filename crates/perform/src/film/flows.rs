//! The flows of an experiment as the hub would list them, from what their ends report.

use std::collections::BTreeMap;

use weft_control::agent::PortEnd;
use weft_control::flow::{FlowEnd, FlowLine, FlowShape, FlowState};
use weft_control::{HexGuid, Utc};
use weft_experiment::{FlowPlan, Plan};
use weft_host::traffic::{FlowId, FlowReport};
use weft_machine::Time;
use weft_topology::NodeIndex;
use weft_wire::{Guid, PortNum};

/// Rows of flows at most.
const ROWS_MAX: usize = 1000;

/// A row: one sender and one receiver of a flow, or one end of a flow of many to many.
struct Row<'a> {
    flow: &'a FlowPlan,
    name: String,
    from: Option<NodeIndex>,
    to: Option<NodeIndex>,
    /// When its bytes were counted last, and how many there were.
    counted: (Time, u64),
}

/// The flows of a plan.
pub(crate) struct PlanFlows<'a> {
    plan: &'a Plan,
    rows: Vec<Row<'a>>,
}

impl<'a> PlanFlows<'a> {
    pub(crate) fn of(plan: &'a Plan) -> Self {
        let rows = plan.flows.iter().flat_map(|flow| rows(plan, flow)).take(ROWS_MAX).collect();
        Self { plan, rows }
    }

    /// How they are at a moment of the plan's clock.
    pub(crate) fn lines(&mut self, at: Time, reports: &[(NodeIndex, Vec<FlowReport>)]) -> Vec<FlowLine> {
        let mut ends: BTreeMap<(FlowId, bool, NodeIndex), &FlowReport> = BTreeMap::new();
        for (host, reports) in reports {
            ends.extend(reports.iter().map(|report| ((report.flow, report.sender, *host), report)));
        }
        let plan = self.plan;
        self.rows.iter_mut().map(|row| row.line(plan, at, &ends)).collect()
    }
}

fn rows<'a>(plan: &Plan, flow: &'a FlowPlan) -> Vec<Row<'a>> {
    let row = |name: String, from: Option<NodeIndex>, to: Option<NodeIndex>| Row {
        flow,
        name,
        from,
        to,
        counted: (Time::ZERO, 0),
    };
    let named = |node: NodeIndex| format!("{} {}", flow.name, host(plan, node));
    match (flow.senders.as_slice(), flow.receivers.as_slice()) {
        ([from], [to]) => vec![row(flow.name.clone(), Some(*from), Some(*to))],
        ([from], many) => many.iter().map(|to| row(named(*to), Some(*from), Some(*to))).collect(),
        (many, [to]) => many.iter().map(|from| row(named(*from), Some(*from), Some(*to))).collect(),
        (many, _) => many.iter().map(|from| row(named(*from), Some(*from), None)).collect(),
    }
}

/// A host as people call it; a function with a virtual machine by that.
fn host(plan: &Plan, node: NodeIndex) -> String {
    plan.born_in(node).map_or_else(|| plan.fabric.label(node), |vm| format!("vm:{}", vm.name))
}

impl Row<'_> {
    fn line(
        &mut self,
        plan: &Plan,
        at: Time,
        ends: &BTreeMap<(FlowId, bool, NodeIndex), &FlowReport>,
    ) -> FlowLine {
        let flow = self.flow;
        let report = |node: Option<NodeIndex>, sends| ends.get(&(flow.flow, sends, node?)).copied().cloned();
        let (sender, receiver) = (report(self.from, true), report(self.to, false));
        // A receiver of several senders does not tell them apart.
        let counts = if flow.senders.len() > 1 { &sender } else { &receiver };
        let bytes = counts.as_ref().map_or(self.counted.1, |report| report.bytes);
        let (since, before) = std::mem::replace(&mut self.counted, (at, bytes));
        let seconds = at.saturating_sub(since).as_secs_f64();
        let rate = if seconds > 0.0 { bytes.saturating_sub(before) as f64 / seconds } else { 0.0 };
        let error = sender.as_ref().and_then(|report| report.error.clone());
        let is = |word| sender.as_ref().is_some_and(|report| report.state == word);
        let state = match at {
            _ if is("error") => FlowState::Failed,
            at if at < flow.start => FlowState::Starting,
            at if at >= flow.stop || is("done") => FlowState::Done,
            _ => FlowState::Running,
        };
        let receiver = receiver.map(|told| FlowReport { bytes, ..told });
        FlowLine {
            name: self.name.clone(),
            flow: flow.flow.0,
            set: flow.group.clone(),
            from: end(plan, self.from, flow.senders.len()),
            to: end(plan, self.to, flow.receivers.len()),
            shape: FlowShape {
                transport: flow.transport,
                message_bytes: flow.message_bytes,
                ..FlowShape::default()
            },
            state,
            reason: error,
            began: Utc::default(),
            delivered_bytes_per_second: rate as u64,
            sender,
            receiver,
        }
    }
}

/// The end of a flow at a host; `count` of them where it is at many.
fn end(plan: &Plan, node: Option<NodeIndex>, count: usize) -> FlowEnd {
    let (mut at, mut guid) = (PortEnd { node: HexGuid(Guid(0)), port: PortNum::ZERO }, Guid(0));
    let mut name = format!("{count} hosts");
    if let Some(index) = node {
        let host = plan.fabric.node(index);
        (at.node, at.port) = (HexGuid(host.guid), host.attach_port().unwrap_or(PortNum::ZERO));
        guid = host.external_ports().next().map_or(guid, |(_, port)| port.guid);
        name = self::host(plan, index);
    }
    FlowEnd { name, at, guid: HexGuid(guid), ..FlowEnd::default() }
}
