//! The published description: a JSON schema, and the tables of `docs/control.md`.

use std::fmt::Write as _;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};
use weft_wire::{Guid, PortNum};

use crate::agent::{CountsPage, PlacedCable, PortEnd, Tap};
use crate::event::{AgentEvent, LabEvent, PmEvent, ProcessEvent, SmEvent, VmEvent};
use crate::fault::{Damage, Word};
use crate::flow::{FlowChoice, FlowEnd, FlowOrder, FlowShape};
use crate::message::WrittenRequest;
use crate::sm::Instruction;
use crate::traffic::{Command, FlowId};
use crate::vm::{VmOrder, VmStep};
use crate::vmm::{VmCreate, VmMigrate, VmWay};
use crate::{
    Answer, ErrorCode, EventFilter, HexGuid, Incarnation, NamePage, Page, PastPlace, ReplyLine, Request,
    Role, VERSION,
};

/// The schema of all lines: `$defs/RequestLine` to a process, `$defs/ReplyLine` from it.
pub fn schema() -> Value {
    let mut generator = SchemaGenerator::default();
    let request = generator.subschema_for::<WrittenRequest<Request>>().to_value();
    let reply = generator.subschema_for::<ReplyLine>().to_value();
    let definitions = generator.take_definitions(true);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("weft's control protocol, version {VERSION}"),
        "description": "One JSON object per line. Lines to a process are RequestLine, lines from it ReplyLine.",
        "anyOf": [request, reply],
        "$defs": definitions,
    })
}

/// The tables of `docs/control.md`, in Markdown.
pub fn tables() -> String {
    let mut text = String::from("### Requests\n\n| `type` | role | what | fields |\n|---|---|---|---|\n");
    let roles: Vec<_> =
        samples().into_iter().map(|request| (request.name(), Role::needed_for(&request))).collect();
    for variant in variants::<Request>("type") {
        let role = roles.iter().find(|(name, _)| *name == variant.name).map(|(_, role)| *role);
        let role = match role {
            Some(Role::Operator) => "operator",
            Some(Role::VmManager) => "VM manager",
            Some(Role::Viewer) | None => "viewer",
        };
        let _ =
            writeln!(text, "| `{}` | {role} | {} | {} |", variant.name, variant.description, variant.fields);
    }
    text += "\n### Answers\n\n| `type` | what | fields |\n|---|---|---|\n";
    write_rows::<Answer>(&mut text, "type");
    text += "\n### Error codes\n\n| `code` | what |\n|---|---|\n";
    for variant in variants::<ErrorCode>("") {
        let _ = writeln!(text, "| `{}` | {} |", variant.name, variant.description);
    }
    for (area, title) in [
        ("sm", "Subnet manager"),
        ("pm", "Performance manager"),
        ("vm", "Manager of virtual machines"),
        ("agent", "Agent"),
        ("process", "Every process"),
        ("lab", "Laboratory"),
    ] {
        let _ = write!(
            text,
            "\n### Events: {title} (`area`: `{area}`)\n\n| `event` | what | fields |\n|---|---|---|\n"
        );
        match area {
            "sm" => write_rows::<SmEvent>(&mut text, "event"),
            "pm" => write_rows::<PmEvent>(&mut text, "event"),
            "vm" => write_rows::<VmEvent>(&mut text, "event"),
            "agent" => write_rows::<AgentEvent>(&mut text, "event"),
            "process" => write_rows::<ProcessEvent>(&mut text, "event"),
            _ => write_rows::<LabEvent>(&mut text, "event"),
        }
    }
    text
}

fn write_rows<T: JsonSchema>(text: &mut String, tag: &str) {
    for variant in variants::<T>(tag) {
        let _ = writeln!(text, "| `{}` | {} | {} |", variant.name, variant.description, variant.fields);
    }
}

/// A variant of an enum, as its schema has it.
struct Variant {
    name: String,
    description: String,
    fields: String,
}

/// The variants of an enum that is tagged by `tag`, or of one without fields, from its schema.
fn variants<T: JsonSchema>(tag: &str) -> Vec<Variant> {
    let schema = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    let variant = |value: &Value| {
        let name = value["properties"][tag]["const"].as_str().or_else(|| value["const"].as_str())?;
        let description = value["description"].as_str().unwrap_or_default().replace('\n', " ");
        Some(Variant { name: name.to_owned(), description, fields: fields(value, &schema, tag) })
    };
    schema["oneOf"].as_array().into_iter().flatten().filter_map(variant).collect()
}

/// The fields of a variant: its own, and those of the structure that it holds.
fn fields(variant: &Value, schema: &Value, tag: &str) -> String {
    let reference = variant["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    let held = reference.and_then(|pointer| schema.pointer(pointer));
    let properties = [Some(variant), held].into_iter().flatten();
    let properties = properties.filter_map(|part| part["properties"].as_object()).flatten();
    let names = properties.map(|(name, _)| name).filter(|name| *name != tag);
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// One request of each kind, in the order of [`Request::NAMES`].
pub fn samples() -> Vec<Request> {
    let guid = HexGuid(Guid(0x0008_f105_0010_8098));
    let end = PortEnd { node: guid, port: PortNum(1) };
    let peer = PortEnd { port: PortNum(2), ..end };
    let page = Page { after: Some(end), limit: Some(100) };
    let fault = || "f1".parse().expect("it is one");
    let host = Some("host-0".into());
    let way = VmWay { vm: "web1".into(), host: "host-3".into(), ..VmWay::default() };
    let of_processes = vec![
        Request::Hello,
        Request::Health,
        Request::Events(EventFilter::default()),
        Request::Cancel { request: 7 },
        Request::Metrics,
        Request::LogFilter,
        Request::SetLogFilter { filter: "warn,weft_link=debug".into() },
        Request::Clients,
        Request::NoteFault { fault: Word::Kill, target: "leaf1".into() },
        Request::RenewIdentity,
        Request::Revoke { list: "-----BEGIN X509 CRL-----".into() },
        Request::RevokedIdentities,
        Request::Shutdown,
        Request::Kill,
        Request::SmStatus,
        Request::SmSweep,
        Request::SmInstruct { guid, instruction: Instruction::Disable },
        Request::ReadPartitions,
        Request::PlanPartitions { text: "web=0x8 : 0x1=full ;\n".into() },
        Request::RoutingOptions,
        Request::PmStatus,
        Request::PmPorts(page),
        Request::PmRefresh,
        Request::AgentStatus,
        Request::Devices(page),
        Request::Ports(Page::default()),
        Request::LaneCounts(CountsPage { known: Some(7), ..CountsPage::default() }),
        Request::SetFault { id: fault(), damage: Damage::Unplugged(end), for_ms: Some(30_000) },
        Request::ClearFault { id: fault() },
        Request::Faults,
        Request::ConnectCable { end, peer, peer_address: Some("127.0.0.1:20001".into()), delay_ns: 0 },
        Request::DisconnectCable { end, peer },
        Request::Capture { tap: Tap::Everything },
        Request::Host { end, command: Command::Stop { flow: FlowId(3) } },
        Request::Flows(page),
        Request::Account(page),
        Request::Slots(page),
        Request::Vm(Box::new(VmOrder {
            incarnation: Incarnation(0x1876),
            generation: 3,
            manager: String::new(),
            slot: guid,
            vm: "web1".into(),
            epoch: 2,
            step: VmStep::Freeze,
        })),
        Request::VmGeneration { generation: 3, manager: "vmm-2".into() },
        Request::VmmStatus,
        Request::Vms(NamePage::default()),
        Request::VmCreate(VmCreate { name: "web1".into(), host, ..VmCreate::default() }),
        Request::VmDestroy { vm: "web1".into() },
        Request::VmMigrate(VmMigrate { way: way.clone(), cold: true, ..VmMigrate::default() }),
        Request::VmPlan(way),
        Request::VmForget { vm: "web1".into(), force: true },
        Request::ResetLateness,
        Request::Begin,
    ];
    of_processes.into_iter().chain(hub_samples(end, peer)).collect()
}

/// The same for a hub.
fn hub_samples(end: PortEnd, peer: PortEnd) -> Vec<Request> {
    vec![
        Request::LabStatus(NamePage::default()),
        Request::ReadPlan,
        Request::WriteCables {
            taken_out: vec![[end, peer]],
            put_in: vec![PlacedCable { ends: [end, peer], delay_ns: 5000 }],
        },
        Request::FlowStart { flows: vec![flow_order(end)] },
        Request::FlowStop(FlowChoice { names: vec!["web".into()], ..FlowChoice::default() }),
        Request::LabFlows(NamePage::default()),
        Request::Past(PastPlace { line: 7, offset: 0 }),
        Request::StartProcess { process: "a0007".into() },
        Request::Relay { process: "sm".into(), request: Box::new(Request::SmStatus) },
    ]
}

fn flow_order(at: PortEnd) -> FlowOrder {
    let to =
        |name: &str| FlowEnd { name: name.into(), process: "a0".into(), at, guid: at.node, by_name: false };
    let (from, to) = (to("host-1"), to("vm:web"));
    FlowOrder { name: Some("web".into()), set: Some("load".into()), from, to, shape: FlowShape::default() }
}
