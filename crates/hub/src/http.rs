//! The hub over HTTP: metrics, health, status and events, to look at and nothing else.

use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use weft_control::Incarnation;
use weft_metrics::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use weft_metrics::{Asked, Content, Endless, Response, Site, StatusCode, prometheus_text, text};
use weft_process::Reader;

use crate::flows::Flows;
use crate::metrics::Metrics;
use crate::query::{self, QueryError};
use crate::shared::Shared;

/// A stream of events says at least this often that it lives.
const ALIVE_EVERY: Duration = Duration::from_secs(10);

/// The hub's pages.
pub(crate) struct Pages {
    pub(crate) shared: Arc<Shared>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) flows: Rc<Flows>,
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
            _ => Ok(text(StatusCode::NOT_FOUND, "only /metrics, /healthz, /status and /events are here\n")),
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

fn pieces(mut reader: Reader, incarnation: Incarnation) -> Endless {
    Endless::new(async move {
        let piece = next_piece(&mut reader, incarnation).await;
        (piece.into(), pieces(reader, incarnation))
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
