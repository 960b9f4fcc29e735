//! Hosts' commands and reports, as the control protocol says them and as hosts know them.

use weft_control::HexGuid;
use weft_control::traffic as control;
use weft_host::traffic as host;
use weft_machine::Time;

/// Both ways between enums whose variants have the same names.
macro_rules! same_names {
    ($name:ident { $($variant:ident),* }) => {
        impl Same<host::$name> for control::$name {
            fn to_host(self) -> host::$name {
                match self { $( Self::$variant => host::$name::$variant, )* }
            }

            fn of_host(told: host::$name) -> Self {
                match told { $( host::$name::$variant => Self::$variant, )* }
            }
        }
    };
}

trait Same<H> {
    fn to_host(self) -> H;
    fn of_host(told: H) -> Self;
}

same_names!(Transport { ReliableConnection, UnreliableDatagram });
same_names!(Work { Stream, PingPong });
same_names!(PathSource { PathRecord, Unasked });
same_names!(MoveBy { Drain, Migrate });

/// A command as a host knows it.
pub fn to_host(command: control::HostCommand) -> host::Command {
    use control::HostCommand;
    match command {
        HostCommand::Open(spec) => host::Command::Open(spec_to_host(spec)),
        HostCommand::Expect { flow, from, transport, work, message_bytes } => host::Command::Expect {
            flow: host::FlowId(flow),
            from: from.map(|from| from.0),
            transport: transport.to_host(),
            work: work.to_host(),
            message_bytes,
        },
        HostCommand::Stop { flow } => host::Command::Stop(host::FlowId(flow)),
        HostCommand::Close { flow } => host::Command::Close(host::FlowId(flow)),
        HostCommand::LearnPaths(paths) => {
            host::Command::LearnPaths(paths.into_iter().map(path_to_host).collect())
        }
        HostCommand::HeedRepath(heeds) => host::Command::HeedRepath(heeds),
    }
}

/// A host's command as the control protocol says it.
pub fn of_host(command: &host::Command) -> control::HostCommand {
    use control::HostCommand;
    match command {
        host::Command::Open(spec) => HostCommand::Open(spec_of_host(spec)),
        host::Command::Expect { flow, from, transport, work, message_bytes } => HostCommand::Expect {
            flow: flow.0,
            from: from.map(HexGuid),
            transport: Same::of_host(*transport),
            work: Same::of_host(*work),
            message_bytes: *message_bytes,
        },
        host::Command::Stop(flow) => HostCommand::Stop { flow: flow.0 },
        host::Command::Close(flow) => HostCommand::Close { flow: flow.0 },
        host::Command::LearnPaths(paths) => HostCommand::LearnPaths(paths.iter().map(path_of_host).collect()),
        host::Command::HeedRepath(heeds) => HostCommand::HeedRepath(*heeds),
    }
}

fn spec_to_host(spec: control::FlowSpec) -> host::FlowSpec {
    let to = match spec.to {
        control::Destination::One(to) => host::Destination::One(to.0),
        control::Destination::Mix { hot_spot, hot_permille, others, seed } => host::Destination::Mix {
            hot_spot: hot_spot.map(|port| port.0),
            hot_permille,
            others: others.into_iter().map(|port| port.0).collect(),
            seed,
        },
    };
    host::FlowSpec {
        flow: host::FlowId(spec.flow),
        to,
        transport: spec.transport.to_host(),
        work: spec.work.to_host(),
        message_bytes: spec.message_bytes,
        packet_bytes: spec.packet_bytes,
        bytes_per_second: spec.bytes_per_second,
        bytes_max: spec.bytes_max,
        paths: spec.paths.to_host(),
        move_by: spec.move_by.to_host(),
    }
}

fn spec_of_host(spec: &host::FlowSpec) -> control::FlowSpec {
    let to = match &spec.to {
        host::Destination::One(to) => control::Destination::One(HexGuid(*to)),
        host::Destination::Mix { hot_spot, hot_permille, others, seed } => control::Destination::Mix {
            hot_spot: hot_spot.map(HexGuid),
            hot_permille: *hot_permille,
            others: others.iter().copied().map(HexGuid).collect(),
            seed: *seed,
        },
    };
    control::FlowSpec {
        flow: spec.flow.0,
        to,
        transport: Same::of_host(spec.transport),
        work: Same::of_host(spec.work),
        message_bytes: spec.message_bytes,
        packet_bytes: spec.packet_bytes,
        bytes_per_second: spec.bytes_per_second,
        bytes_max: spec.bytes_max,
        paths: Same::of_host(spec.paths),
        move_by: Same::of_host(spec.move_by),
    }
}

fn path_to_host(path: control::LearntPath) -> host::LearntPath {
    let control::LearntPath { to, dlid, service_level, p_key, rate } = path;
    host::LearntPath { to: to.0, dlid, service_level, p_key, rate: weft_wire::PathRate::from_code(rate) }
}

fn path_of_host(path: &host::LearntPath) -> control::LearntPath {
    let host::LearntPath { to, dlid, service_level, p_key, rate } = *path;
    control::LearntPath { to: HexGuid(to), dlid, service_level, p_key, rate: rate.code() }
}

/// What became of a flow, as the control protocol says it.
pub fn told(report: host::FlowReport) -> control::FlowReport {
    let moves = report.moves.iter().map(|moved| control::LaneMove {
        at_ns: moved.at.as_nanos(),
        pause_ns: moved.pause.as_nanos(),
        from: moved.from,
        to: moved.to,
    });
    let host::Latency { count, sum_ns, min_ns, max_ns } = report.latency;
    control::FlowReport {
        flow: report.flow.0,
        sender: report.sender,
        moves: moves.collect(),
        state: report.state,
        service_level: report.service_level,
        packets: report.packets,
        bytes: report.bytes,
        repeated: report.repeated,
        timeouts: report.timeouts,
        out_of_order: report.out_of_order,
        missing: report.missing,
        disorder: report.disorder,
        notifications: report.notifications,
        shed: report.shed,
        moves_total: report.moves_total,
        latency: control::Latency { count, sum_ns, min_ns, max_ns },
        error: report.error,
    }
}

/// What became of a flow, as hosts say it.
pub fn report(told: control::FlowReport) -> host::FlowReport {
    let moves = told.moves.iter().map(|moved| host::Move {
        at: Time::from_nanos(moved.at_ns),
        pause: Time::from_nanos(moved.pause_ns),
        from: moved.from,
        to: moved.to,
    });
    let control::Latency { count, sum_ns, min_ns, max_ns } = told.latency;
    host::FlowReport {
        flow: host::FlowId(told.flow),
        sender: told.sender,
        moves: moves.collect(),
        state: told.state,
        service_level: told.service_level,
        packets: told.packets,
        bytes: told.bytes,
        repeated: told.repeated,
        timeouts: told.timeouts,
        out_of_order: told.out_of_order,
        missing: told.missing,
        disorder: told.disorder,
        notifications: told.notifications,
        shed: told.shed,
        moves_total: told.moves_total,
        latency: host::Latency { count, sum_ns, min_ns, max_ns },
        error: told.error,
    }
}

#[cfg(test)]
mod tests {
    use weft_control::traffic::{Destination, FlowSpec, HostCommand, LearntPath};
    use weft_wire::{Guid, Lid, PKey, ServiceLevel};

    use super::*;

    fn spec(to: Destination) -> FlowSpec {
        FlowSpec {
            flow: 3,
            to,
            transport: control::Transport::UnreliableDatagram,
            work: control::Work::PingPong,
            message_bytes: 4096,
            packet_bytes: 2048,
            bytes_per_second: Some(1_000_000),
            bytes_max: Some(7),
            paths: control::PathSource::Unasked,
            move_by: control::MoveBy::Migrate,
        }
    }

    #[test]
    fn commands_are_the_same_both_ways() {
        let guid = |number| HexGuid(Guid(number));
        let mix =
            Destination::Mix { hot_spot: Some(guid(1)), hot_permille: 250, others: vec![guid(2)], seed: 9 };
        let path = LearntPath {
            to: guid(5),
            dlid: Lid(6),
            service_level: ServiceLevel(2),
            p_key: PKey(0x8001),
            rate: 7,
        };
        for command in [
            HostCommand::Open(spec(Destination::One(guid(4)))),
            HostCommand::Open(spec(mix)),
            HostCommand::Expect {
                flow: 1,
                from: Some(guid(8)),
                transport: control::Transport::ReliableConnection,
                work: control::Work::Stream,
                message_bytes: 64,
            },
            HostCommand::Stop { flow: 2 },
            HostCommand::Close { flow: 3 },
            HostCommand::LearnPaths(vec![path]),
            HostCommand::HeedRepath(false),
        ] {
            assert_eq!(of_host(&to_host(command.clone())), command);
        }
    }

    #[test]
    fn reports_are_the_same_both_ways() {
        let moved = control::LaneMove { at_ns: 1, pause_ns: 2, from: ServiceLevel(3), to: ServiceLevel(4) };
        let before = control::FlowReport {
            flow: 1,
            sender: true,
            state: "sending".into(),
            service_level: Some(ServiceLevel(1)),
            packets: 2,
            bytes: 3,
            repeated: 4,
            timeouts: 5,
            out_of_order: 6,
            missing: 7,
            disorder: 8,
            notifications: 9,
            shed: 10,
            moves: vec![moved],
            moves_total: 11,
            latency: control::Latency { count: 12, sum_ns: 13, min_ns: 14, max_ns: 15 },
            error: Some("none".into()),
        };
        assert_eq!(told(report(before.clone())), before);
    }
}
