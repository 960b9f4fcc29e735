//! The moment at which the agent dials, and its reports of links from then on.

use std::rc::Rc;
use std::time::Duration;

use weft_control::event::AgentEvent;

use crate::cables::LinkCounts;
use crate::core::Core;
use crate::shared::Agent;

/// Changes within this time are reported as one.
const GATHER: Duration = Duration::from_millis(10);

/// Dials, at once or when a client says so, and tells of the links as long as the agent lives.
pub(crate) async fn begin(agent: Rc<Agent>, waits: bool) {
    let signals = agent.with_core(|core| core.signals.clone());
    if waits {
        signals.begin.notified().await;
    }
    agent.with_core(Core::start_dialling);
    let mut told = None;
    loop {
        let counts = agent.with_core(|core| {
            let counts = core.link_counts();
            if told != Some(counts) {
                core.recorder.tell(links(counts));
            }
            counts
        });
        told = Some(counts);
        tokio::select! {
            () = signals.links.notified() => {}
            () = signals.begin.notified() => {
                // Another hub does not know what was reported before.
                told = None;
                continue;
            }
        }
        // The last link up, or the last dialled here, is reported at once; others are batched.
        let now = agent.with_core(|core| core.link_counts());
        let has_dialled = now.to_dial == 0 && counts.to_dial > 0;
        if now.up != now.total && !has_dialled {
            tokio::time::sleep(GATHER).await;
        }
    }
}

fn links(LinkCounts { up, total, to_dial }: LinkCounts) -> AgentEvent {
    let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
    AgentEvent::Links { up: count(up), total: count(total), to_dial: count(to_dial) }
}
