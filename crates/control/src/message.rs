//! A request and a reply as lines.

use serde::Serialize;
use serde::de::Error as _;
use serde_json::Value;
use weft_vocabulary::fields::Fields;

use crate::agent::Captured;
use crate::{Answer, Error, ErrorCode, Event, Request, VERSION};

/// A request with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLine {
    /// Chosen by the client, and repeated in everything that answers it.
    pub id: u64,
    /// The request.
    pub request: Request,
}

/// [`RequestLine`] as it is written.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "RequestLine"))]
pub(crate) struct WrittenRequest<R> {
    /// The version of the protocol: 1.
    v: u32,
    /// Chosen by the client, and repeated in everything that answers it.
    id: u64,
    /// The request.
    request: R,
}

/// A line that is no request, with the number that it has if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRequest {
    /// Its number.
    pub id: Option<u64>,
    /// What is wrong with it.
    pub error: Error,
}

impl RequestLine {
    /// The request as a line with its end.
    pub fn to_line(&self) -> String {
        written(&WrittenRequest { v: VERSION, id: self.id, request: &self.request })
    }

    /// Reads a line without its end.
    ///
    /// # Errors
    /// Says what the line lacks. The connection lives on: the next line may be right.
    pub fn parse(line: &[u8]) -> Result<Self, BadRequest> {
        let bad = |id, code, message: String| BadRequest { id, error: Error::new(code, message) };
        let text = std::str::from_utf8(line)
            .map_err(|error| bad(None, ErrorCode::InvalidUtf8, format!("the line is not UTF-8: {error}")))?;
        let mut line = Fields::parse(text)
            .map_err(|error| bad(number_of(text), ErrorCode::Malformed, format!("invalid JSON: {error}")))?;
        let id = line.get("id").and_then(Value::as_u64);
        match line.get("v").map(Value::as_u64) {
            Some(Some(version)) if version == u64::from(VERSION) => {}
            Some(Some(version)) => {
                let message = format!("version {version} of the protocol is not spoken here");
                let hint = format!("send \"v\":{VERSION}");
                return Err(BadRequest {
                    id,
                    error: Error::new(ErrorCode::UnknownVersion, message).hint(hint),
                });
            }
            _ => return Err(bad(id, ErrorCode::Malformed, "no version: `v` must be a number".into())),
        }
        let Some(number) = id else {
            return Err(bad(None, ErrorCode::Malformed, "no number: `id` must be a whole number".into()));
        };
        let request = line.object("request").ok().flatten();
        let named = request.and_then(|request| Some((request.get("type")?.as_str()?.to_owned(), request)));
        let Some((name, request)) = named else {
            return Err(bad(id, ErrorCode::Malformed, "no request: `request.type` must be a text".into()));
        };
        if !Request::NAMES.contains(&name.as_str()) {
            let message = format!("unknown request `{}`", shortened(&name));
            let error = Error::new(ErrorCode::UnknownRequest, message).hint("docs/control.md lists all");
            return Err(BadRequest { id, error });
        }
        Request::read(request)
            .map(|request| Self { id: number, request })
            .map_err(|error| bad(id, ErrorCode::InvalidRequest, format!("invalid request `{name}`: {error}")))
    }
}

/// The number of a line that is refused as a whole, as one with a field twice.
fn number_of(text: &str) -> Option<u64> {
    serde_json::from_str::<Value>(text).ok()?.get("id")?.as_u64()
}

/// What a client wrote, so far as it is worth repeating.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

/// A line to a client.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplyLine {
    /// The version of the protocol: 1.
    pub v: u32,
    /// The number of the request that this is about; none for a line that had no readable number.
    pub id: Option<u64>,
    /// The reply.
    #[serde(flatten)]
    pub body: ReplyBody,
}

/// The kinds of lines to a client.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ReplyBody {
    /// The request is carried out.
    Answer(Box<Answer>),
    /// It is not.
    Error(Error),
    /// Something happened that the request subscribed to.
    Event(Box<Event>),
    /// A packet crossed a cable that the request captures.
    Captured(Box<Captured>),
}

impl ReplyLine {
    /// An answer or an error.
    pub fn new(id: Option<u64>, result: Result<Answer, Error>) -> Self {
        let body = match result {
            Ok(answer) => ReplyBody::Answer(Box::new(answer)),
            Err(error) => ReplyBody::Error(error),
        };
        Self { v: VERSION, id, body }
    }

    /// An event.
    pub fn event(id: u64, event: Event) -> Self {
        Self { v: VERSION, id: Some(id), body: ReplyBody::Event(Box::new(event)) }
    }

    /// A captured packet.
    pub fn captured(id: u64, packet: Captured) -> Self {
        Self { v: VERSION, id: Some(id), body: ReplyBody::Captured(Box::new(packet)) }
    }

    /// The reply as a line with its end.
    pub fn to_line(&self) -> String {
        written(self)
    }

    /// An event that is JSON already as a line with its end: a thousand clients share one text.
    pub fn event_line(id: u64, event: &str) -> String {
        format!("{{\"v\":{VERSION},\"id\":{id},\"event\":{event}}}\n")
    }

    /// Reads a line without its end.
    ///
    /// # Errors
    /// When it is no reply of this version.
    pub fn parse(line: &[u8]) -> Result<Self, serde_json::Error> {
        let text = std::str::from_utf8(line).map_err(serde_json::Error::custom)?;
        let mut fields = Fields::parse(text)?;
        let (v, id) = (fields.take("v")?, fields.take("id")?);
        let body = if let Some(answer) = fields.object("answer")? {
            ReplyBody::Answer(Box::new(Answer::read(answer)?))
        } else if let Some(error) = fields.find("error")? {
            ReplyBody::Error(error)
        } else if let Some(event) = fields.object("event")? {
            ReplyBody::Event(Box::new(Event::read(event)?))
        } else if let Some(packet) = fields.find("captured")? {
            ReplyBody::Captured(packet)
        } else {
            return Err(serde_json::Error::custom("no `answer`, `error`, `event` or `captured`"));
        };
        Ok(Self { v, id, body })
    }
}

fn written<T: Serialize>(message: &T) -> String {
    let text = serde_json::to_string(message).expect("messages hold nothing that JSON cannot say");
    let mut line = weft_wire::printable_json(&text).into_owned();
    line.push('\n');
    line
}
