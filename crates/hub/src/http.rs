//! The hub over HTTP: metrics, health, status and events, to look at and nothing else.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use weft_control::Incarnation;
use weft_control::process::ProcessKind;
use weft_metrics::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue};
use weft_metrics::{Asked, Content, Pieces, Response, Site, StatusCode, prometheus_text, text};
use weft_process::Reader;

use crate::flows::Flows;
use crate::metrics::Metrics;
use crate::query::{self, QueryError};
use crate::shared::Shared;
use crate::targets::{Target, discovery};

/// A stream of events says at least this often that it lives.
const ALIVE_EVERY: Duration = Duration::from_secs(10);

/// The hub's pages.
pub(crate) struct Pages {
    pub(crate) shared: Arc<Shared>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) flows: Rc<Flows>,
    /// Where they are served.
    pub(crate) address: SocketAddr,
    /// Whether that takes TLS and a token.
    pub(crate) is_guarded: bool,
}

impl Site for Pages {
    async fn answer(&self, asked: &Asked) -> Response<Content> {
        self.metrics.http_requests.inc();
        let query = asked.uri().query().unwrap_or_default();
        let shown = match asked.uri().path() {
            "/metrics" => Ok(prometheus_text(self.metrics.text(&self.shared, &self.flows))),
            "/healthz" => Ok(text(StatusCode::OK, "ok\n")),
            "/status" => self.status(query),
            "/events" => self.events(query, asked),
            "/sd" => Ok(self.targets(asked)),
            _ => Ok(text(
                StatusCode::NOT_FOUND,
                "only /metrics, /healthz, /status, /events and /sd are here\n",
            )),
        };
        shown.unwrap_or_else(|error| text(StatusCode::BAD_REQUEST, format!("{error}\n")))
    }
}

impl Pages {
    fn status(&self, query: &str) -> Result<Response<Content>, QueryError> {
        let page = query::processes(query)?;
        Ok(match serde_json::to_string(&self.shared.status(&page)) {
            Ok(json) => of_kind("application/json", Content::whole(json)),
            Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "the status cannot be written\n"),
        })
    }

    /// Prometheus' service discovery. The hub cannot know by which name Prometheus reaches it, but the request names it.
    fn targets(&self, asked: &Asked) -> Response<Content> {
        let host = asked.headers().get(HOST).and_then(|host| host.to_str().ok());
        let own = Target {
            process: self.shared.identity.name.clone(),
            kind: ProcessKind::Hub,
            address: host.map_or_else(|| self.address.to_string(), str::to_owned),
            is_guarded: self.is_guarded,
            node: None,
        };
        let json = self.shared.lab.targets().and_then(|others| {
            let all: Vec<Target> = std::iter::once(own).chain(others.iter().cloned()).collect();
            discovery(&self.shared.identity.lab, &all).map_err(|error| error.to_string().into())
        });
        match json {
            Ok(json) => of_kind("application/json", Content::whole(json)),
            // Prometheus keeps the targets that it has.
            Err(why) => {
                text(StatusCode::INTERNAL_SERVER_ERROR, format!("the targets cannot be read: {why}\n"))
            }
        }
    }

    /// Server-sent events: `id` is where to go on, `data` the event.
    fn events(&self, query: &str, asked: &Asked) -> Result<Response<Content>, QueryError> {
        let last = asked.headers().get("last-event-id").and_then(|id| id.to_str().ok());
        let (reader, subscribed) = self.shared.log.subscribe(&query::events(query, last)?);
        let mut response = of_kind("text/event-stream", pieces(reader, subscribed.incarnation).into());
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }
}

fn of_kind(kind: &'static str, content: Content) -> Response<Content> {
    let mut response = Response::new(content);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn pieces(mut reader: Reader, incarnation: Incarnation) -> Pieces {
    Pieces::new(async move {
        let piece = next_piece(&mut reader, incarnation).await;
        Some((piece.into(), pieces(reader, incarnation)))
    })
}

/// Some events, or a sign of life.
async fn next_piece(reader: &mut Reader, incarnation: Incarnation) -> String {
    let Ok(batch) = tokio::time::timeout(ALIVE_EVERY, reader.next()).await else {
        return ":\n\n".to_owned();
    };
    let mut text = String::new();
    for event in batch.events {
        if let Ok(Placed { place }) = serde_json::from_str(&event) {
            let _ = writeln!(text, "id: {:016x}-{place}", incarnation.0);
        }
        let _ = write!(text, "data: {event}\n\n");
    }
    text
}

#[derive(Deserialize)]
struct Placed {
    place: u64,
}
