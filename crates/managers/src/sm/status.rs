//! Changes of the subnet manager's status by its events.

use weft_control::sm::SmStatus;
use weft_sm::{Event, Reason, SmState, SweepKind};

/// Takes an event.
pub(crate) fn take(status: &mut SmStatus, event: &Event) {
    match event {
        Event::SweepStarted { kind: kind @ (SweepKind::Heavy | SweepKind::Repair), reason } => {
            // Another repair gives no keys.
            if *kind == SweepKind::Heavy || *reason == Reason::Partitions {
                status.p_keys_left_out.clear();
                status.p_keys_waiting.clear();
                status.p_keys_kept.clear();
            }
            status.heavy_sweeps += 1;
            status.subnet_up = false;
            status.locked.clear();
            status.own_port_silent = false;
        }
        Event::SweepStarted { kind: SweepKind::Light, .. } => status.light_sweeps += 1,
        Event::PhaseStarted { phase } => status.phase = Some(*phase),
        Event::NodeFound { guid, .. } => {
            status.nodes += 1;
            status.cut_off.remove(&guid.to_string());
        }
        Event::NodeLost { .. } => status.nodes = status.nodes.saturating_sub(1),
        Event::HostCutOff { guid, description } => {
            status.nodes = status.nodes.saturating_sub(1);
            status.cut_off.insert(guid.to_string(), description.clone());
        }
        Event::OwnPortSilent => status.own_port_silent = true,
        Event::KeyUnknown { guid, port, description } => {
            status.locked.insert(format!("{guid} port {port}"), description.clone());
        }
        Event::PartitionsLeftOut { port_guid, partitions } => {
            status.p_keys_left_out.insert(port_guid.to_string(), *partitions);
        }
        Event::PartitionsWait { port_guid, partitions } => {
            status.p_keys_waiting.insert(port_guid.to_string(), *partitions);
        }
        Event::PartitionsKept { port_guid, is_cut_off, .. } => {
            status.p_keys_kept.insert(port_guid.to_string(), *is_cut_off);
        }
        Event::TrapReceived { .. } => status.traps += 1,
        Event::SmState { state, .. } if *state != SmState::Master => {
            (status.subnet_up, status.phase) = (false, None);
        }
        Event::ManagementLane { lane } => {
            let shared = || "none: a link has no second lane".to_owned();
            status.management_lane = Some(lane.map_or_else(shared, |lane| lane.to_string()));
        }
        Event::Repath { .. } => status.repaths += 1,
        Event::Routed(report) => {
            status.routing = Some(report.clone());
            status.not_routed = None;
        }
        Event::RouteFailed { message } => status.not_routed = Some(message.clone()),
        Event::SubnetUp(summary) | Event::SweepIncomplete(summary) => {
            status.phase = None;
            status.subnet_up = summary.complete;
            status.last = Some(summary.clone());
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use weft_control::HexGuid;
    use weft_control::agent::NodeKind;
    use weft_wire::Guid;

    use super::*;

    #[test]
    fn ports_without_room_for_their_keys_are_named() {
        let mut status = SmStatus::default();
        assert!(!status.to_string().contains("P_Key"));
        take(&mut status, &Event::PartitionsLeftOut { port_guid: HexGuid(Guid(0x21)), partitions: 63 });
        take(&mut status, &Event::PartitionsLeftOut { port_guid: HexGuid(Guid(0x31)), partitions: 63 });
        let line = "partitions: 2 ports have no room for all P_Keys of their partitions, such as 0x0000000000000021, which lacks 63; \
                    more fit with a higher --p-key-capacity\n";
        assert!(status.to_string().contains(line), "{status}");
        take(&mut status, &Event::SweepStarted { kind: SweepKind::Heavy, reason: weft_sm::Reason::Start });
        assert_eq!(status.p_keys_left_out.len(), 0, "the next sweep finds them again");
    }

    #[test]
    fn ports_that_are_not_as_the_partitions_say_are_named() {
        let mut status = SmStatus::default();
        let port_guid = || HexGuid(Guid(0x21));
        take(&mut status, &Event::PartitionsWait { port_guid: port_guid(), partitions: 2 });
        take(&mut status, &Event::PartitionsKept { port_guid: port_guid(), partitions: 1, is_cut_off: true });
        let lines = "partitions: 2 P_Keys of 0x0000000000000021 wait until places that other keys have left are free\n\
                     partitions: 0x0000000000000021 has not acknowledged that it has left some: its switch drops its packets\n";
        assert!(status.to_string().contains(lines), "{status}");
        let again = Event::SweepStarted { kind: SweepKind::Repair, reason: Reason::Partitions };
        take(&mut status, &again);
        assert!(!status.to_string().contains("partitions:"), "{status}");
    }

    #[test]
    fn a_node_that_goes_and_returns_counts_once() {
        let mut status = SmStatus::default();
        let description = || "node".to_owned();
        for (guid, kind) in [(HexGuid(Guid(1)), NodeKind::Switch), (HexGuid(Guid(2)), NodeKind::Hca)] {
            let found = Event::NodeFound { guid, kind, description: description() };
            let gone = match kind {
                NodeKind::Hca => Event::HostCutOff { guid, description: description() },
                _ => Event::NodeLost { guid, kind, description: description() },
            };
            take(&mut status, &found);
            let all = status.nodes;
            for _ in 0..3 {
                take(&mut status, &gone);
                assert_eq!(status.nodes, all - 1, "{gone:?}");
                take(&mut status, &found);
                assert_eq!(status.nodes, all, "{found:?}");
            }
        }
        assert_eq!(status.nodes, 2);
    }
}
