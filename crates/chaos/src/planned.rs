use serde::{Deserialize, Serialize};
use weft_fault::Fault;
use weft_machine::Time;

/// A fault of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(bound(serialize = "Node: std::fmt::Display + Serialize, Port: Serialize"))]
#[serde(bound(deserialize = "Node: std::str::FromStr + Deserialize<'de>, Port: Deserialize<'de>"))]
pub struct Planned<Node, Port> {
    /// When, since the schedule began.
    pub at: Time,
    /// What.
    pub fault: Fault<Node, Port>,
    /// How long until [`Fault::end`]; none where it has none, or lasts.
    pub lasts: Option<Time>,
}

/// All that happens, in order: what begins a fault, and what ends it.
pub fn steps<Node: Clone, Port: Clone>(schedule: &[Planned<Node, Port>]) -> Vec<(Time, Fault<Node, Port>)> {
    let mut steps = Vec::new();
    for planned in schedule {
        steps.push((planned.at, planned.fault.clone()));
        let end = planned.lasts.and_then(|lasts| Some((planned.at + lasts, planned.fault.end()?)));
        steps.extend(end);
    }
    steps.sort_by_key(|(at, _)| *at);
    steps
}

/// When the last fault has ended.
pub fn ends_at<Node, Port>(schedule: &[Planned<Node, Port>]) -> Time {
    let ends = schedule.iter().map(|planned| planned.at + planned.lasts.unwrap_or(Time::ZERO));
    ends.max().unwrap_or(Time::ZERO)
}
