//! Real lines against the published schema, by a validator that knows nothing of these types, and lines that are none.

use serde_json::{Value, json};
use weft_control::agent::{CountedPort, LaneCount, NodeKind, PortCounts, PortEnd, PortState, PortStatus};
use weft_control::event::{
    AgentEvent, EventKind, LabEvent, PmEvent, ProcessEvent, Question, RepathUse, SmEvent, SweepReason,
};
use weft_control::fault::Word;
use weft_control::hub::{EndKind, LabStatus, Links, ProcessEnd, ProcessLine, ProcessState, RestartPolicy};
use weft_control::pm::{HotSpot, PmPort, PmStatus};
use weft_control::process::{Clients, Condition, Health, Hello, Identity, ProcessKind, Subscribed};
use weft_control::schema::{samples, schema};
use weft_control::sm::{
    EngineReport, Instructed, ManagerStatus, PhaseTime, Signalled, SmState, SmStatus, Summary, SweepKind,
    SweepPhase,
};
use weft_control::traffic::{Command, Destination, FlowId, FlowSpec, MoveBy, PathSource, Transport, Work};
use weft_control::vm::{Departed, ImagePart, Slot, VmIdentity, VmOrder, VmStep};
use weft_control::vmm::VmMoveCounts;
use weft_control::{
    Answer, Error, ErrorCode, Event, EventFilter, HexBytes, HexGuid, Incarnation, KeyBlock, PartitionsTaken,
    PlannedRoutes, ReplyBody, ReplyLine, Request, RequestLine, Role, Since, Utc,
};
use weft_machine::Time;
use weft_wire::{Guid, Lid, PKey, PortNum, ServiceLevel, TrapNumber, VirtualLane};

const GUID: HexGuid = HexGuid(Guid(0x0008_f105_0010_8098));
const END: PortEnd = PortEnd { node: GUID, port: PortNum(3) };

/// A validator of one kind of line.
fn validator(kind: &str) -> jsonschema::Validator {
    let mut schema = schema();
    schema.as_object_mut().unwrap().remove("anyOf");
    schema["$ref"] = format!("#/$defs/{kind}").into();
    jsonschema::draft202012::new(&schema).unwrap()
}

fn assert_valid(validator: &jsonschema::Validator, line: &str) {
    assert!(line.ends_with('\n') && line.matches('\n').count() == 1, "{line:?} is one line");
    let value: Value = serde_json::from_str(line).unwrap();
    let wrong: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{line}\n{wrong:#?}");
}

fn requests() -> Vec<Request> {
    let flow = FlowSpec {
        flow: FlowId(1),
        to: Destination::Mix { hot_spot: Some(GUID.0), hot_permille: 500, others: vec![GUID.0], seed: 7 },
        transport: Transport::UnreliableDatagram,
        work: Work::Stream,
        message_bytes: 4096,
        packet_bytes: 2048,
        bytes_per_second: Some(1_000_000),
        bytes_max: None,
        paths: PathSource::Unasked,
        move_by: MoveBy::Drain,
    };
    let after = Since::After { incarnation: Incarnation(3), sequence: 4 };
    let mut requests = samples().to_vec();
    requests.extend([
        Request::Host { end: END, command: Command::Open(flow) },
        Request::Host { end: END, command: Command::HeedRepath(false) },
        Request::Events(EventFilter {
            from: after,
            kinds: vec!["subnet-up".into()],
            sources: vec!["sm".into()],
            past_only: true,
        }),
        Request::Events(EventFilter { from: Since::Start, ..EventFilter::default() }),
    ]);
    requests.extend(vm_steps().map(|step| {
        let (incarnation, vm) = (Incarnation(9), "web1".to_owned());
        Request::Vm(Box::new(VmOrder {
            incarnation,
            generation: 1,
            manager: String::new(),
            slot: GUID,
            vm,
            epoch: 2,
            step,
        }))
    }));
    requests
}

/// One step of each kind.
fn vm_steps() -> [VmStep; 9] {
    let identity = || VmIdentity { node: GUID, port: GUID, weight: 1, ..VmIdentity::default() };
    [
        VmStep::Boot { identity: identity() },
        VmStep::Freeze,
        VmStep::Export { offset: 0 },
        VmStep::Part { offset: 4, bytes: HexBytes(vec![0, 255]) },
        VmStep::Import { identity: identity(), from_epoch: 1, image_bytes: 6 },
        VmStep::Activate,
        VmStep::Release { leave: Some(identity()) },
        VmStep::Resume,
        VmStep::Unplug { leave: None },
    ]
}

fn lane_counts() -> Answer {
    let lanes = vec![LaneCount { lane: VirtualLane(3), rcv_words: 9, xmit_wait: 0 }];
    let ports = vec![CountedPort { end: END, xmit_wait: 2, lanes }];
    Answer::LaneCounts(PortCounts { dilation: 1, now_ns: 5, sum: 11, ports, more: false })
}

fn summary() -> Summary {
    let phase = PhaseTime { phase: SweepPhase::Discover, took: Time::from_nanos(80_000_000), smps: 500 };
    Summary { switches: 11, hosts: 89, complete: true, phases: vec![phase], ..Summary::default() }
}

fn sm_events() -> Vec<SmEvent> {
    let reason = SweepReason::Trap { number: TrapNumber(128), lid: Lid(7) };
    vec![
        SmEvent::SweepStarted { kind: SweepKind::Heavy, reason },
        SmEvent::SweepStarted { kind: SweepKind::Light, reason: SweepReason::Interval },
        SmEvent::Quiet,
        SmEvent::PhaseDone(PhaseTime { phase: SweepPhase::Route, took: Time::from_nanos(5), smps: 0 }),
        SmEvent::NodeFound { guid: GUID, kind: NodeKind::Switch, description: "a \"b\"\n\u{1b}c".into() },
        SmEvent::LidAssigned { port_guid: GUID, lid: Lid(7), before: Lid(0) },
        SmEvent::ManagementLane { lane: Some(VirtualLane(7)) },
        SmEvent::ManagementLane { lane: None },
        SmEvent::Repath {
            number: TrapNumber(69),
            from: Lid(1),
            kind: RepathUse::HotSpot,
            service_level: ServiceLevel(1),
            slid: Lid(2),
            dlid: Lid(3),
            target: Lid(0),
            told: 5,
        },
        SmEvent::SubnetUp(summary()),
        SmEvent::PortRefused {
            guid: GUID,
            port: PortNum(3),
            wanted: PortState::Armed,
            state: PortState::Initialize,
            status: 0x1c,
        },
        SmEvent::DuplicateGuid { guid: GUID, first: vec![PortNum(1), PortNum(2)], second: Vec::new() },
        SmEvent::SmState { state: SmState::Master, master: GUID },
        SmEvent::Routed(EngineReport { engine: "ftree".into(), lanes: 1, ..EngineReport::default() }),
        SmEvent::RouteFailed { message: "no".into() },
        SmEvent::MoveStarted { guid: GUID, lid: Lid(7), kind: "Swap".into(), rounds: 5, smps: 22 },
        SmEvent::MoveDone { guid: GUID, lid: Lid(7), physical: 20, vswitches: 2, smps: 22, took_ns: 400_000 },
        SmEvent::MoveRefused { guid: GUID, lid: Lid(7), reason: "no".into() },
        SmEvent::MoveLate { guid: GUID, lid: Lid(7), switches: 2, wait_ns: 5_000_000_000 },
        SmEvent::MoveFinished { lids: 1, smps: 2 },
        SmEvent::MoveHeld {
            guid: GUID,
            lid: Lid(7),
            told: 4,
            untold: 1,
            wait_ns: 6_442_450_944,
            circle: "a -> b".into(),
        },
        SmEvent::MoveBroken { guid: GUID, lid: Lid(7), reason: "no".into() },
        SmEvent::ReceivedWeighed { hosts: 4, before: 500_000_000, after: Some(333_333_333), is_taken: true },
        SmEvent::ReceivedWeighed { hosts: 1, before: 500_000_000, after: None, is_taken: false },
        SmEvent::Rebalanced { lids: 3, smps: 12, kept: 1, before: 741, after: Some(902) },
        SmEvent::Rebalanced { lids: 3, smps: 12, kept: 0, before: 741, after: None },
    ]
}

fn events() -> Vec<EventKind> {
    let mut events: Vec<EventKind> = sm_events().into_iter().map(EventKind::Sm).collect();
    events.extend([
        EventKind::Pm(PmEvent::Learned { nodes: 3, ports: 4 }),
        EventKind::Pm(PmEvent::NotLearned { question: Question::OwnPort, status: None }),
        EventKind::Pm(PmEvent::AskedAgain),
        EventKind::Pm(PmEvent::ReceivedReported),
        EventKind::Pm(PmEvent::ReceivedNotReported { status: Some(0x200) }),
        EventKind::Pm(PmEvent::ReceivedNotReported { status: None }),
        EventKind::Agent(AgentEvent::LinkUp {
            guid: GUID,
            node: "s".into(),
            port: PortNum(1),
            peer: Some(END),
        }),
        EventKind::Agent(AgentEvent::PeerRefused {
            address: "127.0.0.1:7".into(),
            reason: "no".into(),
            count: 1,
            end: None,
            node: None,
        }),
        EventKind::Agent(AgentEvent::PacketDropped {
            guid: GUID,
            node: "leaf".into(),
            port: PortNum(3),
            reason: "no_route".into(),
            slid: Lid(1),
            dlid: Lid(2),
            service_level: ServiceLevel(0),
            p_key: Some(PKey::DEFAULT_FULL),
            more: 7,
        }),
        EventKind::Agent(AgentEvent::CableConnected {
            guid: GUID,
            node: "s".into(),
            port: PortNum(1),
            peer: END,
        }),
        EventKind::Process(ProcessEvent::Ready),
        EventKind::Process(ProcessEvent::Started { kind: ProcessKind::Pm, version: "0.1.0".into(), pid: 7 }),
        EventKind::Lab(LabEvent::Fault { fault: Word::LinkDown, target: "s:1".into() }),
        EventKind::Lab(LabEvent::ProgramAttached { slot: 1, node: "h".into(), pid: 7 }),
        EventKind::Lab(LabEvent::ProcessEnded {
            process: "a0".into(),
            how: EndKind::Failed,
            code: None,
            signal: Some(9),
        }),
        EventKind::Lab(LabEvent::ProcessRestarted { process: "a0".into(), restarts: 2 }),
        EventKind::Lab(LabEvent::RestartFailed { process: "a0".into(), reason: "no".into(), retry_ms: 100 }),
        EventKind::Lab(LabEvent::StartProgress { agents_ready: 1, agents: 2, links_up: 3, cable_ends: 4 }),
        EventKind::Lab(LabEvent::StartFailed { process: "a0".into(), reason: "no".into() }),
        EventKind::Lab(LabEvent::LabStarted),
        EventKind::Lab(LabEvent::FlowStarted {
            flow: "web".into(),
            set: None,
            from: "host-1".into(),
            to: "vm:web".into(),
        }),
        EventKind::Lab(LabEvent::FlowStopped { flow: "web".into() }),
        EventKind::Lab(LabEvent::FlowEnded { flow: "web".into(), done: true, reason: "all is sent".into() }),
    ]);
    events
}

fn event(kind: EventKind) -> Event {
    Event {
        time: Utc::from_nanos(1_795_181_395_012_000_000),
        source: "sm".into(),
        incarnation: Incarnation(0x1234_5678_9abc_def0),
        sequence: 41,
        place: None,
        ahead_ns: None,
        monotonic_ns: 1_234_567_890,
        kind,
    }
}

fn answers() -> Vec<Answer> {
    let identity = Identity {
        lab: "default".into(),
        name: "sm".into(),
        kind: ProcessKind::Sm,
        version: "0.1.0".into(),
        pid: 77,
        incarnation: Incarnation(9),
    };
    let time = Utc::from_nanos(7);
    let hello = Hello { identity, protocols: vec![1], role: Role::Operator, time, monotonic_ns: 5 };
    let manager =
        ManagerStatus { guid: GUID.0, state: SmState::Standby, is_self: true, ..ManagerStatus::default() };
    let sm = SmStatus {
        managers: vec![manager],
        last: Some(summary()),
        phase: Some(SweepPhase::Verify),
        signalled: Signalled { reports: 6, acks: 12, ..Signalled::default() },
        ..SmStatus::default()
    };
    let spot = HotSpot { lid: Lid(9), port_guid: GUID, since_sweep: 3, contributors: vec![GUID] };
    let pm = PmStatus { hot_spots: vec![spot], ..PmStatus::default() };
    let port = PmPort { utilisation: 0.25, ..PmPort::default() };
    let clients = Clients { requests: [("hello".to_owned(), 3)].into_iter().collect(), ..Clients::default() };
    vec![
        Answer::Done,
        Answer::Hello(hello),
        Answer::Health(Health { condition: Condition::Ready, busy_ms: 0, descriptors: 12, memory_kib: 9000 }),
        Answer::Subscribed(Subscribed { incarnation: Incarnation(1), next: 0, forgotten: 2 }),
        Answer::EventsEnded,
        Answer::Metrics { text: "# HELP a b\n".into() },
        Answer::Clients(clients),
        Answer::RevokedIdentities { list: None },
        Answer::SmStatus(Box::new(sm)),
        Answer::SmInstruct { outcome: Instructed::NotMaster },
        Answer::ReadPartitions(PartitionsTaken {
            in_charge: true,
            smps: 2,
            left_out: 1,
            ..PartitionsTaken::default()
        }),
        Answer::PlanPartitions {
            writes: vec![KeyBlock { node: HexGuid(Guid(7)), port: PortNum(1), block: 0 }],
            routes: Some(PlannedRoutes { engine: "pftree".into(), rows: 3, ..PlannedRoutes::default() }),
        },
        Answer::RoutingOptions { engine: r#"{"lanes":8}"#.into(), management_lane: true },
        Answer::PmStatus(Box::new(pm)),
        Answer::PmPorts { ports: vec![port], more: true },
        Answer::LabStatus(Box::new(lab_status())),
        lane_counts(),
        Answer::Ports { ports: vec![PortStatus { peer: Some(END), ..PortStatus::default() }], more: false },
        Answer::Slots {
            generation: 3,
            others: [("vmm-2".to_owned(), 1)].into(),
            slots: vec![Slot::default()],
            more: false,
        },
        Answer::Vm {
            slot: Box::new(Slot { left: Some(Departed::default()), ..Slot::default() }),
            image: Some(ImagePart { total: 2, offset: 0, bytes: HexBytes(vec![1, 2]) }),
        },
    ]
}

fn lab_status() -> LabStatus {
    let last_end =
        ProcessEnd { time: Utc::from_nanos(6), how: EndKind::KilledOnPurpose, code: None, signal: Some(9) };
    let line = ProcessLine {
        name: "sm".into(),
        kind: Some(ProcessKind::Sm),
        is_expected: true,
        version: Some("0.1.0".into()),
        pid: Some(7),
        incarnation: Some(Incarnation(3)),
        state: ProcessState::Ready,
        since: Utc::from_nanos(7),
        restarts: 1,
        restart_in_ms: None,
        last_end: Some(last_end),
        events: 5,
        events_lost: 0,
        links: Some(Links { up: 1, total: 2, to_dial: 1 }),
        problem: None,
    };
    let states = ProcessState::ALL.map(|state| (state.name().to_owned(), 1));
    LabStatus {
        starting: false,
        lab: "default".into(),
        restart: RestartPolicy::OnFailure,
        states: states.into_iter().collect(),
        processes: vec![line],
        ..LabStatus::default()
    }
}

#[test]
fn requests_fit_the_schema_and_are_read_back() {
    let validator = validator("RequestLine");
    for (id, request) in (0..).zip(requests()) {
        let line = RequestLine { id, request };
        assert_valid(&validator, &line.to_line());
        assert_eq!(RequestLine::parse(line.to_line().trim_end().as_bytes()), Ok(line));
    }
}

#[test]
fn replies_fit_the_schema_and_are_read_back() {
    let validator = validator("ReplyLine");
    let error = Error::new(ErrorCode::NotFound, "no port 99").hint("`weft ps` lists the ports");
    let mut replies = vec![
        ReplyLine::new(None, Err(Error::new(ErrorCode::Malformed, "invalid JSON"))),
        ReplyLine::new(Some(7), Err(error)),
    ];
    replies.extend(answers().into_iter().map(|answer| ReplyLine::new(Some(1), Ok(answer))));
    replies.extend(events().into_iter().map(|kind| ReplyLine::event(2, event(kind))));
    for reply in replies {
        let line = reply.to_line();
        assert_valid(&validator, &line);
        assert_eq!(ReplyLine::parse(line.trim_end().as_bytes()).unwrap(), reply);
    }
}

#[test]
fn lines_outside_the_schema_are_rejected() {
    let [requests, replies] = ["RequestLine", "ReplyLine"].map(validator);
    for wrong in [
        json!({ "v": 1, "id": 7 }),
        json!({ "v": 1, "id": -7, "request": { "type": "hello" } }),
        json!({ "v": 1, "id": 7, "request": { "type": "make-coffee" } }),
        json!({ "v": 1, "id": 7, "request": { "type": "cancel" } }),
        json!({ "v": 1, "id": 7, "request": { "type": "set-cable", "up": true, "end": { "node": 5, "port": 1 } } }),
    ] {
        assert!(!requests.is_valid(&wrong), "{wrong}");
        assert!(RequestLine::parse(wrong.to_string().as_bytes()).is_err(), "{wrong}");
    }
    let good = ReplyLine::event(1, event(EventKind::Sm(SmEvent::Quiet))).to_line();
    let good: Value = serde_json::from_str(&good).unwrap();
    assert!(replies.is_valid(&good));
    for (field, wrong) in
        [("time", json!("yesterday")), ("area", json!("kitchen")), ("event", json!("link-up"))]
    {
        let mut value = good.clone();
        value["event"][field] = wrong;
        assert!(!replies.is_valid(&value), "{value}");
    }
}

/// A hub adds the place in its own stream.
#[test]
fn an_event_of_a_hub_has_a_place() {
    let told = Event { place: Some(77), ..event(EventKind::Process(ProcessEvent::Ready)) };
    let line = ReplyLine::event(1, told).to_line();
    assert_valid(&validator("ReplyLine"), &line);
    assert!(line.contains("\"place\":77"), "{line}");
}

/// What every line of an event has, by name: readers that know no kinds rely on it.
#[test]
fn an_event_is_flat() {
    let kind = EventKind::Sm(SmEvent::LidAssigned { port_guid: GUID, lid: Lid(7), before: Lid(0) });
    assert_eq!(kind.name(), "lid-assigned");
    assert_eq!(
        serde_json::to_value(event(kind)).unwrap(),
        json!({
            "time": "2026-11-20T13:29:55.012000000Z", "source": "sm", "incarnation": "123456789abcdef0", "sequence": 41,
            "monotonic_ns": 1_234_567_890_u64, "area": "sm", "event": "lid-assigned",
            "port_guid": "0x0008f10500108098", "lid": 7, "before": 0
        })
    );
}

#[test]
fn a_shared_event_makes_the_same_line() {
    let event = event(EventKind::Pm(PmEvent::Forgotten));
    let text = serde_json::to_string(&event).unwrap();
    assert_eq!(ReplyLine::event_line(5, &text), ReplyLine::event(5, event).to_line());
}

#[test]
fn sentences_hold_nothing_that_a_terminal_obeys() {
    for kind in events() {
        let (name, line) = (kind.name(), event(kind).to_string());
        assert!(!line.contains(char::is_control), "{line:?}");
        assert!(line.starts_with("2026-11-20T13:29:55.012Z sm     "), "{line}");
        assert!(line.len() > 32, "{name} has a sentence: {line}");
    }
}

/// Managers of earlier versions do not tell of them.
#[test]
fn a_plan_without_silent_switches_is_read() {
    let answer = Answer::VmPlan { counts: VmMoveCounts::default(), writes: Vec::new(), silent: Vec::new() };
    let reply = ReplyLine::new(Some(1), Ok(answer));
    let mut line: Value = serde_json::from_str(&reply.to_line()).unwrap();
    assert!(line["answer"].as_object_mut().unwrap().remove("silent").is_some());
    assert_eq!(ReplyLine::parse(line.to_string().as_bytes()).unwrap(), reply);
}

#[test]
fn fields_that_a_later_version_adds_are_left_out() {
    let line = br#"{"v":1,"id":7,"trace":"x","request":{"type":"hello","lang":"de"}}"#;
    assert_eq!(RequestLine::parse(line).unwrap().request, Request::Hello);
}

#[test]
fn viewers_only_look() {
    let changes = [
        "set-log-filter",
        "note-fault",
        "shutdown",
        "kill",
        "sm-sweep",
        "sm-instruct",
        "read-partitions",
        "pm-refresh",
        "set-fault",
        "revoke",
    ];
    let changes = changes.iter().chain(&["clear-fault", "capture", "host", "reset-lateness", "begin", "vm"]);
    let of_vms = ["renew-identity", "vm-generation", "vm-create", "vm-destroy", "vm-migrate", "vm-forget"];
    let of_cables = [
        "connect-cable",
        "disconnect-cable",
        "read-plan",
        "write-cables",
        "flow-start",
        "flow-stop",
        "start-process",
    ];
    let changes: Vec<&str> = changes.copied().chain(of_vms).chain(of_cables).collect();
    for request in samples() {
        assert_eq!(Role::Operator.check(&request), Ok(()));
        let refused = Role::Viewer.check(&request).is_err();
        assert_eq!(refused, changes.contains(&request.name()), "{}", request.name());
        let relayed = Request::Relay { process: "sm".into(), request: Box::new(request.clone()) };
        assert_eq!(Role::Viewer.check(&relayed).is_err(), refused, "{relayed:?}");
        let error = Role::Viewer.check(&request).err();
        assert!(error.is_none_or(|error| error.code == ErrorCode::Forbidden));
    }
}

#[test]
fn names_are_those_of_json() {
    for (request, name) in samples().iter().zip(Request::NAMES.iter().copied()) {
        assert_eq!(request.name(), name);
        assert_eq!(serde_json::to_value(request).unwrap()["type"], name);
    }
    for reply in answers() {
        let ReplyBody::Answer(_) = ReplyLine::new(None, Ok(reply)).body else { panic!("an answer") };
    }
    for kind in events() {
        let name = kind.name();
        assert_eq!(serde_json::to_value(event(kind)).unwrap()["event"], name);
    }
}
