//! Events as they come: no more of one is read than is needed to put it in order, so that events of another version of weft
//! go through.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use weft_bundle::names::HUB;
use weft_control::event::EventHead;
use weft_control::process::Subscribed;
use weft_control::{Event, EventKind, Incarnation, Since, Utc};

/// An event as a process sent it.
#[derive(Clone, Debug)]
pub struct Told {
    /// Who sent it, and when.
    pub head: EventHead,
    /// When, by the clock of the process that asked: what orders events of machines whose clocks differ.
    pub moment: Utc,
    /// All of it.
    pub json: String,
}

impl Told {
    /// Reads an event; `None` where this version cannot read when it happened.
    ///
    /// # Errors
    /// When the text has no head of an event.
    pub fn of(json: String) -> serde_json::Result<Option<Self>> {
        let head: EventHead = serde_json::from_str(&json)?;
        Ok(head.moment().map(|moment| Self { head, moment, json }))
    }

    /// What happened, if this version of weft knows the kind.
    pub fn kind(&self) -> Option<EventKind> {
        Event::parse(&self.json).ok().map(|event| event.kind)
    }

    /// That events were lost before this moment: of which source and life, up to which number, and how many.
    pub(crate) fn lost(time: Utc, source: &str, told: Subscribed, count: u64) -> Self {
        let event = Event::lost(time, source, told.incarnation, told.next.saturating_sub(1), count);
        Self::of(event.to_json()).ok().flatten().expect("an event has a head and a time")
    }

    /// Whether it tells of a gap in the hub's stream: then its number is not the hub's last.
    fn is_gap_of_hub(&self) -> bool {
        self.head.source == HUB && self.head.place.is_some() && self.head.event == "events-lost"
    }
}

/// One line of a process that was asked for events.
#[derive(Debug)]
pub(crate) enum Line {
    /// What its clock shows.
    Hello(Utc),
    /// From where on it tells.
    Subscribed(Subscribed),
    /// Something happened.
    Event(Box<Told>),
    /// That was all that it remembers.
    Ended,
    /// It will not tell: why.
    Refused(String),
    /// A line that this version cannot read; the next one may be right.
    Nonsense,
}

#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow)]
    answer: Option<&'a RawValue>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    error: Option<Trouble>,
}

#[derive(Deserialize)]
struct Trouble {
    message: String,
}

#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(rename = "type", borrow)]
    name: std::borrow::Cow<'a, str>,
    time: Option<Utc>,
}

/// Reads one line.
pub(crate) fn read(line: &[u8]) -> Line {
    let parsed = serde_json::from_slice::<Written<'_>>(line).and_then(|line| read_parsed(&line));
    parsed.unwrap_or(Line::Nonsense)
}

fn read_parsed(line: &Written<'_>) -> Result<Line, serde_json::Error> {
    if let Some(event) = line.event {
        let told = Told::of(event.get().to_owned())?;
        return Ok(told.map_or(Line::Nonsense, |told| Line::Event(Box::new(told))));
    }
    if let Some(error) = &line.error {
        return Ok(Line::Refused(error.message.clone()));
    }
    let answer = line.answer.map_or("{}", RawValue::get);
    let typed = serde_json::from_str::<Typed<'_>>(answer)?;
    match (typed.name.as_ref(), typed.time) {
        ("events-ended", _) => Ok(Line::Ended),
        ("hello", Some(time)) => Ok(Line::Hello(time)),
        _ => Ok(Line::Subscribed(serde_json::from_str(answer)?)),
    }
}

/// The events that have been taken, so that none is taken twice, whoever sends it.
#[derive(Debug, Default)]
pub(crate) struct Seen(BTreeMap<String, (Incarnation, u64)>);

impl Seen {
    /// Whether an event is new. From then on it is known.
    pub(crate) fn takes(&mut self, told: &Told) -> bool {
        let EventHead { source, incarnation, sequence, .. } = &told.head;
        if told.is_gap_of_hub() {
            return true;
        }
        let behind = (*incarnation, sequence.saturating_add(1));
        match self.0.get_mut(source) {
            // Of the same life in order, and nothing of a life before it.
            Some(known) if behind <= *known => false,
            Some(known) => {
                *known = behind;
                true
            }
            None => {
                self.0.insert(source.clone(), behind);
                true
            }
        }
    }

    /// A source is known up to here, whether or not its events were read.
    pub(crate) fn skip_to(&mut self, source: &str, incarnation: Incarnation, next: u64) {
        let known = self.0.entry(source.to_owned()).or_insert((incarnation, next));
        *known = (*known).max((incarnation, next));
    }

    /// From where on a source is to tell.
    pub(crate) fn resume(&self, source: &str) -> Since {
        self.0.get(source).map_or(Since::Start, |known| Since::behind(known.0, known.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_control::event::ProcessEvent;

    fn told(source: &str, life: u64, sequence: u64, place: Option<u64>, event: &str) -> Told {
        let head = EventHead {
            source: source.into(),
            incarnation: Incarnation(life),
            sequence,
            place: place.map(Into::into),
            event: event.into(),
            ..EventHead::default()
        };
        Told { moment: Utc::from_nanos(life), head, json: "{}".into() }
    }

    #[test]
    fn nothing_is_taken_twice_whoever_tells_it() {
        let mut seen = Seen::default();
        let mut takes = |told: Told| seen.takes(&told);
        assert!(takes(told("sm", 7, 3, Some(90), "x")) && takes(told("sm", 7, 4, None, "x")));
        assert!(!takes(told("sm", 7, 3, None, "x")) && !takes(told("sm", 7, 4, Some(2), "x")));
        assert!(takes(told("pm", 7, 3, None, "x")), "another source");
        assert!(takes(told("sm", 8, 0, None, "x")), "another life");
        assert!(!takes(told("sm", 7, 9, None, "x")), "the life before");
        // A gap in the hub's stream has the number that the hub's next event gets.
        assert!(takes(told(HUB, 7, 5, Some(80), "events-lost")) && takes(told(HUB, 7, 5, Some(81), "x")));
        assert_eq!(seen.resume("sm"), Since::After { incarnation: Incarnation(8), sequence: 0 });
        assert_eq!(seen.resume("a0"), Since::Start);
        seen.skip_to("a0", Incarnation(2), 0);
        assert_eq!(seen.resume("a0"), Since::Start);
        seen.skip_to("sm", Incarnation(8), 0);
        assert!(!seen.takes(&told("sm", 8, 0, None, "x")), "what is known stays known");
    }

    #[test]
    fn lines_are_read_no_further_than_needed() {
        let event = r#"{"time":"2030-01-01T00:00:00.000000000Z","source":"x","incarnation":"0000000000000007","sequence":3,
            "monotonic_ns":1,"area":"weather","event":"rain"}"#;
        let line = format!("{{\"v\":1,\"id\":1,\"event\":{event}}}");
        let Line::Event(told) = read(line.as_bytes()) else { panic!("{line}") };
        assert_eq!((told.head.event.as_str(), told.json.as_str(), told.kind()), ("rain", event, None));
        assert_eq!(Some(told.moment), told.head.time());
        let ahead = line.replace("\"sequence\"", "\"ahead_ns\":3600000000000,\"sequence\"");
        let Line::Event(told) = read(ahead.as_bytes()) else { panic!("{ahead}") };
        assert_eq!(told.moment.to_string(), "2029-12-31T23:00:00.000Z");
        let hello = br#"{"v":1,"id":1,"answer":{"type":"hello","time":"2030-01-01T00:00:00.000000000Z","mood":"good"}}"#;
        assert!(matches!(read(hello), Line::Hello(time) if Some(time) == told.head.time()));
        assert!(matches!(read(br#"{"v":1,"id":1,"answer":{"type":"events-ended"}}"#), Line::Ended));
        let answer = br#"{"v":1,"id":1,"answer":{"type":"subscribed","incarnation":"0000000000000007","next":3,"forgotten":2}}"#;
        let Line::Subscribed(told) = read(answer) else { panic!("an answer") };
        assert_eq!((told.next, told.forgotten), (3, 2));
        let lost = Told::lost(Utc::from_nanos(5), "sm", told, 2);
        assert_eq!((lost.head.sequence, lost.head.source.as_str()), (2, "sm"));
        assert_eq!(lost.kind(), Some(EventKind::Process(ProcessEvent::EventsLost { count: 2 })));
        let refused = br#"{"v":1,"id":null,"error":{"code":"moody","message":"too many clients"}}"#;
        assert!(matches!(read(refused), Line::Refused(why) if why == "too many clients"));
        for nonsense in [&b"\xff"[..], b"{}", b"[]", br#"{"v":1,"event":{}}"#] {
            assert!(matches!(read(nonsense), Line::Nonsense));
        }
    }
}
