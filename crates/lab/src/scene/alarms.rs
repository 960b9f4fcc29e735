//! Alarms: what somebody should look at, by the rules that `contrib/prometheus/weft.alerts.yml` has for Prometheus, from what the page
//! knows.

use std::collections::BTreeMap;

use weft_control::hub::{EndKind, ProcessLine, ProcessState};
use weft_page::State;
use weft_page::state::{Alarm, Table};

use crate::scene::act::Acknowledged;

/// Alarms of one kind beyond which they are shown as one.
const EACH_MAX: usize = 20;

/// Since when each alarm is there.
#[derive(Debug, Default)]
pub(super) struct Alarms(BTreeMap<String, u64>);

impl Alarms {
    /// The alarms of a state.
    pub(super) fn of(
        &mut self,
        state: &State,
        processes: &BTreeMap<String, ProcessLine>,
        now_ms: u64,
        acknowledged: &Acknowledged,
    ) -> Table<Alarm> {
        let mut all: Table<Alarm> = BTreeMap::new();
        let kinds = [processes_of(processes), cables(state), managers(state), hot(state), flows(state)];
        for kind in kinds {
            let more = kind.len().saturating_sub(EACH_MAX);
            let rest = kind.get(EACH_MAX).map(|(id, alarm)| {
                let id = format!("{}:more", id.split(':').next().unwrap_or_default());
                (
                    id,
                    Alarm { text: format!("{more} more like this"), r#where: String::new(), ..alarm.clone() },
                )
            });
            all.extend(kind.into_iter().take(EACH_MAX).chain(rest));
        }
        self.0.retain(|id, _| all.contains_key(id));
        for (id, alarm) in &mut all {
            alarm.since_ms = *self.0.entry(id.clone()).or_insert(now_ms);
            alarm.acknowledged = acknowledged.has(id);
        }
        acknowledged.keep(|id| all.contains_key(id));
        all
    }
}

type Found = Vec<(String, Alarm)>;

fn alarm(severity: &str, place: &str, text: String, cause: impl Into<String>) -> Alarm {
    let (severity, place, cause) = (severity.to_owned(), place.to_owned(), cause.into());
    Alarm { severity, r#where: place, text, cause, ..Alarm::default() }
}

fn processes_of(processes: &BTreeMap<String, ProcessLine>) -> Found {
    let bad = processes.values().filter(|line| {
        line.is_expected
            && matches!(line.state, ProcessState::Ended | ProcessState::Silent | ProcessState::OtherProtocol)
    });
    bad.map(|line| {
        let name = &line.name;
        let how = match line.last_end.map(|end| end.how).filter(|_| line.state == ProcessState::Ended) {
            Some(EndKind::KilledOnPurpose) => "it was killed on purpose".to_owned(),
            Some(EndKind::InOrder) => "it ended in order".to_owned(),
            Some(EndKind::Failed) => "it crashed, or something else killed it".to_owned(),
            None => line.problem.clone().unwrap_or_else(|| "it does not answer".to_owned()),
        };
        let text = format!("process {name} is {}", line.state.name());
        let cause = format!("{how}; `weft fault restart {name}` starts it again");
        (format!("process:{name}"), alarm("critical", name, text, cause))
    })
    .collect()
}

fn cables(state: &State) -> Found {
    let name = |id: &str| state.nodes.get(id).map_or("", |node| node.name.as_str());
    let is_dead = |id: &str| state.nodes.get(id).is_some_and(|node| node.state != "up");
    let mut found = Found::new();
    for (id, cable) in &state.cables {
        let ends =
            [(&cable.a, cable.ap), (&cable.b, cable.bp)].map(|(node, port)| format!("{}:{port}", name(node)));
        let [a, b] = ends;
        // A cable of a dead node is that node's alarm.
        if cable.state == "down" && !is_dead(&cable.a) && !is_dead(&cable.b) {
            let cause = match cable.faults.first() {
                Some(fault) => format!("fault {fault}"),
                None => "`weft links` and `weft events --kind link-down` say more".to_owned(),
            };
            let text = format!("no link between {a} and {b}");
            found.push((format!("link-down:{id}"), alarm("warning", &a, text, cause)));
        } else if let Some(planned) = &cable.planned {
            let text = format!("the cable between {a} and {b} is {planned}");
            found.push((format!("cabling:{id}"), alarm("warning", &a, text, "it differs from the plan")));
        }
    }
    found
}

fn managers(state: &State) -> Found {
    let of_kind =
        |kind: &str| state.managers.iter().filter(|(_, manager)| manager.kind == kind).collect::<Vec<_>>();
    let (mut found, sms) = (Found::new(), of_kind("sm"));
    if !sms.is_empty() && !sms.iter().any(|(_, manager)| manager.state == "master") {
        let text = "no subnet manager is master".to_owned();
        let cause = "nothing repairs the fabric; `weft status` says what managers do";
        found.push(("sm:none".to_owned(), alarm("critical", "", text, cause)));
    }
    let incomplete =
        sms.iter().filter(|(_, manager)| manager.state == "master" && manager.text.contains("not up"));
    found.extend(incomplete.map(|(name, _)| {
        let text = "the subnet is not complete".to_owned();
        (
            format!("sm:{name}"),
            alarm("warning", name, text, "`weft status` and `weft check` say what is missing"),
        )
    }));
    found
}

fn hot(state: &State) -> Found {
    let one = |(host, _): (&String, _)| {
        let text = format!("{host} is a hot spot");
        (format!("hot:{host}"), alarm("warning", host, text, "it receives more than it can take"))
    };
    state.hot.iter().map(one).collect()
}

fn flows(state: &State) -> Found {
    let failed = state.flows.values().filter(|flow| flow.state == "failed");
    let one = |flow: &weft_page::state::Flow| {
        let text = format!("flow {} has failed", flow.name);
        let cause = flow.why.clone().unwrap_or_default();
        (format!("flow:{}", flow.name), alarm("warning", &flow.from, text, cause))
    };
    failed.map(one).collect()
}
