//! The hub over HTTP: metrics, health, status and events, to look at and nothing else.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};
use weft_control::hub::NamePage;
use weft_control::{EventFilter, Incarnation, Since};
use weft_metrics::{Guard, Wire};
use weft_process::Reader;

use crate::metrics::Metrics;
use crate::shared::Shared;

/// Connections at the same time; further ones wait to be accepted.
pub const CONNECTIONS_MAX: usize = 64;
/// A connection on which nothing moves for this long is closed.
pub const IDLE_MAX: Duration = Duration::from_secs(30);
/// A stream of events says at least this often that it lives.
const ALIVE_EVERY: Duration = Duration::from_secs(10);

#[derive(Clone)]
struct Seen {
    shared: Arc<Shared>,
    metrics: Arc<Metrics>,
    guard: Guard,
}

/// Serves those whom the guard lets in, until dropped. Nothing that arrives ends it.
pub(crate) async fn serve(listener: TcpListener, guard: Guard, shared: Arc<Shared>, metrics: Arc<Metrics>) {
    let seen = Seen { shared, metrics, guard: guard.clone() };
    let router = Router::new()
        .route("/metrics", get(show_metrics))
        .route("/healthz", get(async || "ok\n"))
        .route("/status", get(show_status))
        .route("/events", get(show_events))
        .fallback(async || (StatusCode::NOT_FOUND, "only /metrics, /healthz, /status and /events are here\n"))
        .layer(from_fn_with_state(seen.clone(), let_in));
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let serving = axum::serve(Bounded { listener, guard, permits }, router.with_state(seen));
    // It never ends: what goes wrong with a connection ends that connection.
    let _ = serving.await;
}

/// Counts requests, and answers those that may not look.
async fn let_in(State(seen): State<Seen>, request: Request, next: Next) -> Response {
    seen.metrics.http_requests.inc();
    let mut response = match seen.guard.refuses(request.headers()) {
        Some((status, why)) => (status, [(header::WWW_AUTHENTICATE, "Bearer")], why).into_response(),
        None => next.run(request).await,
    };
    // What a node is called is never HTML, whatever a browser makes of it.
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

async fn show_metrics(State(seen): State<Seen>) -> Response {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], seen.metrics.text(&seen.shared)).into_response()
}

async fn show_status(State(seen): State<Seen>, Query(page): Query<NamePage>) -> Response {
    match serde_json::to_string(&seen.shared.status(&page)) {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Which events, as the query says: lists are separated by commas.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wanted {
    from: From,
    kinds: String,
    sources: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum From {
    #[default]
    Now,
    Start,
}

/// Server-sent events: `id` is where to go on, `data` the event.
async fn show_events(State(seen): State<Seen>, headers: HeaderMap, Query(wanted): Query<Wanted>) -> Response {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(after);
    let from = last.unwrap_or(match wanted.from {
        From::Now => Since::Now,
        From::Start => Since::Start,
    });
    let list = |text: &str| text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect();
    let (kinds, sources) = (list(&wanted.kinds), list(&wanted.sources));
    let filter = EventFilter { from, kinds, sources, past_only: false };
    let (reader, subscribed) = seen.shared.log.subscribe(&filter);
    let incarnation = subscribed.incarnation;
    let events = stream::unfold(reader, move |mut reader| async move {
        Some((Ok::<_, Infallible>(next_piece(&mut reader, incarnation).await), reader))
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(events)).into_response()
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

/// Reads the `id` of the last event that a client has seen.
fn after(id: &str) -> Option<Since> {
    let (incarnation, place) = id.split_once('-')?;
    let incarnation = Incarnation(u64::from_str_radix(incarnation, 16).ok()?);
    Some(Since::After { incarnation, sequence: place.parse().ok()? })
}

/// A listener that accepts no more than a number of connections at the same time.
struct Bounded {
    listener: TcpListener,
    guard: Guard,
    permits: Arc<Semaphore>,
}

impl axum::serve::Listener for Bounded {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let Ok(permit) = self.permits.clone().acquire_owned().await else {
                std::future::pending::<()>().await;
                continue;
            };
            match self.listener.accept().await {
                Ok((stream, from)) => {
                    return (Connection::new(self.guard.connection(stream), permit), from);
                }
                // Out of descriptors: the reason may pass, and trying at once again would spin.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when nothing moves on it.
struct Connection {
    stream: Wire,
    idle: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    fn new(stream: Wire, permit: OwnedSemaphorePermit) -> Self {
        Self { stream, idle: Box::pin(tokio::time::sleep(IDLE_MAX)), _permit: permit }
    }

    /// What moved puts the end off; what waits has it checked.
    fn watch<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.idle.as_mut().reset(Instant::now() + IDLE_MAX);
            return polled;
        }
        self.idle.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, into);
        self.watch(context, polled)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
