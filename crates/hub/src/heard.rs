//! A process's lines, read no further than the hub needs: a process of another version has more to say.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use weft_control::event::EventHead;
use weft_control::hub::Links;
use weft_control::process::{ProcessKind, Subscribed};
use weft_control::{EventFilter, Incarnation, Request, RequestLine, Since, Utc, VERSION};

const HELLO: u64 = 1;
const EVENTS: u64 = 2;
/// A start needs the events of the first; the answers to the others are left out.
const LITTLE: u64 = 3;
const ORDERS: u64 = 4;
const REVOKED: u64 = 5;

/// What a start needs to hear of an agent.
const LITTLE_KINDS: [&str; 2] = [READY, LINKS];
pub(crate) const READY: &str = "process-ready";
pub(crate) const LINKS: &str = "links";

fn line(id: u64, request: Request) -> String {
    RequestLine { id, request }.to_line()
}

/// The lines with which the hub begins a conversation: who are you, and what happens.
pub fn greeting(from: Since) -> String {
    line(HELLO, Request::Hello) + &line(EVENTS, events(from, &[]))
}

/// The same for an agent while its laboratory starts: only what a start needs, and all that when it was before.
pub fn brief_greeting() -> String {
    line(HELLO, Request::Hello) + &line(LITTLE, events(Since::Start, &LITTLE_KINDS))
}

/// The lines after a brief greeting, once all that happens is to be heard.
pub fn full_events(from: Since) -> String {
    line(ORDERS, Request::Cancel { request: LITTLE }) + &line(EVENTS, events(from, &[]))
}

/// The line that tells a process to begin.
pub fn begin() -> String {
    line(ORDERS, Request::Begin)
}

/// The line that tells a process which identities are revoked.
pub fn revoke(list: &str) -> String {
    line(ORDERS, Request::Revoke { list: list.to_owned() })
}

/// The line that asks a process which identities it knows to be revoked.
pub fn ask_revoked() -> String {
    line(REVOKED, Request::RevokedIdentities)
}

fn events(from: Since, kinds: &[&str]) -> Request {
    let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    Request::Events(EventFilter { from, kinds, ..EventFilter::default() })
}

/// A process's own word of what it is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Greeting {
    /// Its name.
    pub name: String,
    /// What it is; a kind that this version does not know is none.
    #[serde(deserialize_with = "if_known")]
    pub kind: Option<ProcessKind>,
    /// The version of weft that it runs.
    pub version: String,
    /// Its number.
    pub pid: u32,
    /// This life of it.
    pub incarnation: Incarnation,
    /// The versions of the protocol that it speaks.
    pub protocols: Vec<u32>,
    /// What its wall clock shows.
    #[serde(default, deserialize_with = "if_known")]
    pub time: Option<Utc>,
}

fn if_known<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

/// The links that an event of that name tells.
pub fn links_of(json: &str) -> Option<Links> {
    serde_json::from_str(json).ok()
}

/// The nodes of a subnet that an event says is up and whole.
pub fn nodes_of(json: &str) -> Option<u32> {
    #[derive(Deserialize)]
    struct Summary {
        complete: bool,
        switches: u32,
        hosts: u32,
        #[serde(default)]
        others: u32,
    }
    let summary: Summary = serde_json::from_str(json).ok()?;
    // Routers count as hosts do.
    let nodes = [summary.switches, summary.hosts, summary.others];
    summary.complete.then(|| nodes.into_iter().fold(0, u32::saturating_add))
}

/// How far an event says that a subnet manager is: nodes, tables and ports that it is done with.
pub fn progress_of(json: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Far {
        nodes: u32,
        tables_done: u32,
        ports_active: u32,
    }
    let far: Far = serde_json::from_str(json).ok()?;
    Some(u64::from(far.nodes) + u64::from(far.tables_done) + u64::from(far.ports_active))
}

/// The virtual machine that an event is about.
pub fn vm_of(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct About {
        vm: String,
    }
    serde_json::from_str::<About>(json).ok().map(|about| about.vm)
}

/// One line of a process.
#[derive(Debug)]
pub enum Heard<'a> {
    /// Its identity.
    Hello(Greeting),
    /// From where on it tells what happens.
    Subscribed(Subscribed),
    /// The same after a brief greeting.
    EarlySubscribed(Subscribed),
    /// Something happened: what the hub needs of it, and all of it.
    Event(EventHead, &'a str),
    /// The same after a brief greeting: it will come again.
    Early(EventHead, &'a str),
    /// An order was taken, or not: a process of another version may not know it.
    Ordered,
    /// The list of revoked identities that it has, if it has one.
    Revoked(Option<String>),
    /// It speaks another version of the protocol: which, if it says so.
    OtherProtocol(Option<u32>),
    /// It will not answer: why.
    Refused(String),
    /// The line makes no sense: why.
    Nonsense(String),
}

#[derive(Deserialize)]
struct Line<'a> {
    v: u32,
    id: Option<u64>,
    #[serde(borrow)]
    answer: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Trouble {
    code: String,
    message: String,
}

#[derive(Deserialize)]
struct Known {
    list: Option<String>,
}

/// Reads one line.
pub fn read(line: &[u8]) -> Heard<'_> {
    let parsed = std::str::from_utf8(line).map_err(|error| error.to_string());
    let parsed =
        parsed.and_then(|text| serde_json::from_str::<Line<'_>>(text).map_err(|error| error.to_string()));
    match parsed {
        Ok(line) => read_parsed(&line).unwrap_or_else(|error| Heard::Nonsense(error.to_string())),
        Err(error) => Heard::Nonsense(error),
    }
}

fn read_parsed<'a>(line: &Line<'a>) -> Result<Heard<'a>, serde_json::Error> {
    Ok(match (line.id, line.answer, line.error, line.event) {
        (Some(ORDERS), ..) | (Some(REVOKED), None, ..) => Heard::Ordered,
        (_, _, Some(error), _) => {
            let trouble: Trouble = serde_json::from_str(error.get())?;
            match trouble.code.as_str() {
                "unknown-version" => Heard::OtherProtocol(Some(line.v).filter(|version| *version != VERSION)),
                _ => Heard::Refused(trouble.message),
            }
        }
        _ if line.v != VERSION => Heard::OtherProtocol(Some(line.v)),
        (Some(HELLO), Some(answer), ..) => {
            let greeting: Greeting = serde_json::from_str(answer.get())?;
            match greeting.protocols.contains(&VERSION) {
                true => Heard::Hello(greeting),
                false => Heard::OtherProtocol(greeting.protocols.first().copied()),
            }
        }
        (Some(REVOKED), Some(answer), ..) => {
            let Known { list } = serde_json::from_str(answer.get())?;
            Heard::Revoked(list)
        }
        (Some(EVENTS), Some(answer), ..) => Heard::Subscribed(serde_json::from_str(answer.get())?),
        (Some(LITTLE), Some(answer), ..) => Heard::EarlySubscribed(serde_json::from_str(answer.get())?),
        (Some(EVENTS), _, _, Some(event)) => Heard::Event(serde_json::from_str(event.get())?, event.get()),
        (Some(LITTLE), _, _, Some(event)) => Heard::Early(serde_json::from_str(event.get())?, event.get()),
        _ => Heard::Nonsense("a line that answers nothing".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use weft_control::event::{AgentEvent, ProcessEvent};
    use weft_control::{Event, EventKind, ReplyLine};

    use super::*;

    #[test]
    fn a_brief_greeting_tells_how_much_is_forgotten() {
        let told = Subscribed { incarnation: Incarnation(7), next: 9, forgotten: 5 };
        let answer = serde_json::to_string(&told).unwrap();
        let line = format!("{{\"v\":1,\"id\":{LITTLE},\"answer\":{answer}}}");
        let Heard::EarlySubscribed(heard) = read(line.as_bytes()) else {
            panic!("{:?}", read(line.as_bytes()))
        };
        assert_eq!(heard, told);
        let progress = r#"{"nodes":3,"lids":3,"tables_done":4,"tables":9,"ports_active":5,"ports":6}"#;
        assert_eq!((progress_of(progress), progress_of("{}")), (Some(12), None));
    }

    #[test]
    fn events_of_kinds_and_areas_that_are_not_known_are_heard() {
        let line = br#"{"v":1,"id":2,"event":{"time":"2030-01-01T00:00:00Z","source":"x","incarnation":"0000000000000007",
            "sequence":3,"monotonic_ns":1,"area":"weather","event":"rain","count":"many"}}"#;
        let Heard::Event(head, json) = read(line) else { panic!("{:?}", read(line)) };
        assert_eq!((head.source.as_str(), head.sequence, head.event.as_str()), ("x", 3, "rain"));
        assert_eq!(head.lost(), None);
        assert!(json.starts_with("{\"time\"") && json.ends_with("\"many\"}"), "{json}");
    }

    #[test]
    fn a_process_of_a_kind_that_is_not_known_is_met() {
        let hello = r#"{"v":1,"id":1,"answer":{"type":"hello","lab":"l","name":"x","kind":"oracle","version":"9.1.0",
            "pid":7,"incarnation":"0000000000000007","protocols":[2,1],"role":"king","time":"?","monotonic_ns":0}}"#;
        let Heard::Hello(greeting) = read(hello.as_bytes()) else { panic!("{:?}", read(hello.as_bytes())) };
        assert_eq!((greeting.kind, greeting.version.as_str()), (None, "9.1.0"));
        let later = hello.replace("[2,1]", "[3,2]");
        assert!(matches!(read(later.as_bytes()), Heard::OtherProtocol(Some(3))));
    }

    #[test]
    fn another_protocol_is_recognised_however_it_refuses() {
        let refusal = br#"{"v":2,"id":1,"error":{"code":"unknown-version","message":"no","mood":"bad"}}"#;
        assert!(matches!(read(refusal), Heard::OtherProtocol(Some(2))));
        assert!(matches!(read(br#"{"v":2,"id":1,"answer":{}}"#), Heard::OtherProtocol(Some(2))));
        let own = br#"{"v":1,"id":1,"error":{"code":"unknown-version","message":"no"}}"#;
        assert!(matches!(read(own), Heard::OtherProtocol(None)));
        let many = br#"{"v":1,"id":null,"error":{"code":"too-many","message":"too many clients"}}"#;
        assert!(matches!(read(many), Heard::Refused(why) if why == "too many clients"));
    }

    #[test]
    fn nonsense_is_said_to_be_that() {
        for line in [
            &b"\xff"[..],
            b"{",
            b"[]",
            b"{\"v\":1}",
            b"{\"v\":1,\"id\":1,\"answer\":7}",
            b"{\"v\":1,\"id\":2,\"event\":{}}",
        ] {
            assert!(matches!(read(line), Heard::Nonsense(_)), "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn the_real_lines_are_heard() {
        let event = Event {
            time: Utc::from_nanos(7),
            source: "sm".into(),
            incarnation: Incarnation(9),
            sequence: 4,
            place: None,
            ahead_ns: None,
            monotonic_ns: 1,
            kind: EventKind::Process(ProcessEvent::EventsLost { count: 3 }),
        };
        let line = ReplyLine::event(EVENTS, event).to_line();
        let Heard::Event(head, _) = read(line.trim_end().as_bytes()) else { panic!("{line}") };
        assert_eq!((head.incarnation, head.lost()), (Incarnation(9), Some(3)));
        let early = line.replace("\"id\":2", "\"id\":3");
        assert!(matches!(read(early.trim_end().as_bytes()), Heard::Early(..)), "{early}");
        let orders = [greeting(Since::Start), brief_greeting(), full_events(Since::Start), begin()];
        for line in orders.iter().flat_map(|lines| lines.lines()) {
            RequestLine::parse(line.as_bytes()).unwrap();
        }
    }

    #[test]
    fn an_order_that_is_not_known_is_no_refusal_of_the_hub() {
        let unknown =
            br#"{"v":1,"id":4,"error":{"code":"unknown-request","message":"unknown request `begin`"}}"#;
        assert!(matches!(read(unknown), Heard::Ordered));
        assert!(matches!(read(br#"{"v":1,"id":4,"answer":{"type":"done"}}"#), Heard::Ordered));
    }

    #[test]
    fn links_and_the_subnet_are_read_from_events() {
        let links = AgentEvent::Links { up: 1, total: 2, to_dial: 1 };
        let json = serde_json::to_string(&EventKind::Agent(links)).unwrap();
        assert_eq!(links_of(&json), Some(Links { up: 1, total: 2, to_dial: 1 }));
        assert_eq!(links_of("{\"up\":\"much\"}"), None);
        assert_eq!(nodes_of("{\"complete\":true,\"switches\":2,\"hosts\":3,\"others\":9}"), Some(14));
        assert_eq!(nodes_of("{\"complete\":false,\"switches\":2,\"hosts\":3}"), None);
    }
}
