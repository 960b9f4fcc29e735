//! What faults cost, told when they are over: reckoned from all that the hub hears.

use std::sync::Arc;

use weft_control::event::{FAULT_SIGNS, LabEvent, fault_sign};
use weft_control::{Event, EventFilter, EventKind, Since, Utc};
use weft_fault::FaultClock;

use crate::shared::Shared;

/// Faults whose cost is not known yet; the oldest are forgotten.
const FAULTS_MAX: usize = 1024;

/// Goes on for as long as the hub.
pub(crate) async fn watch(shared: Arc<Shared>, began: Utc) {
    let kinds = FAULT_SIGNS.map(str::to_owned).to_vec();
    let (mut reader, _) =
        shared.log.subscribe(&EventFilter { from: Since::Start, kinds, ..EventFilter::default() });
    let mut clock = FaultClock::default();
    loop {
        let batch = reader.next().await;
        for json in batch.events {
            // One of another version has another meaning, if any.
            let Ok(event) = serde_json::from_str::<Event>(&json) else { continue };
            let Some(sign) = fault_sign(&event.source, &event.kind) else { continue };
            clock.see(event.moment().as_nanos(), sign);
            for times in clock.take_over(FAULTS_MAX) {
                // Those that ended before this hub began, an earlier one has told.
                let ended = times.began_ns.saturating_add(times.lasted_ns.unwrap_or_default());
                if ended >= began.as_nanos() {
                    shared.tell(EventKind::Lab(LabEvent::FaultCost(times)));
                }
            }
        }
    }
}
