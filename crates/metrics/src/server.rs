//! The HTTP server: two pages, few connections, each for a short while.

use std::convert::Infallible;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use prometheus::{IntCounter, IntCounterVec, Opts, Registry};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::{Guard, Page};

/// Connections at the same time; further ones are closed unanswered, and counted.
pub const CONNECTIONS_MAX: usize = 16;
/// Whoever has not asked and read by then is disconnected.
pub const CONNECTION_TIME_MAX: Duration = Duration::from_secs(15);
/// The longest request that is read.
const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// The process has no answer now: 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the process is too busy to tell how it is")]
pub struct NoAnswer;

/// What a process shows over HTTP.
pub trait Source: 'static {
    /// What `/metrics` shows besides the registry.
    fn page(&self) -> impl Future<Output = Result<Page, NoAnswer>>;

    /// Whether `/healthz` says that the process is well.
    fn is_healthy(&self) -> impl Future<Output = bool> {
        std::future::ready(true)
    }

    /// The metrics that the process keeps at all times; they stand behind the page.
    fn registry(&self) -> Registry {
        Registry::new()
    }
}

impl<G, F> Source for G
where
    G: Fn() -> F + 'static,
    F: Future<Output = Result<Page, NoAnswer>>,
{
    fn page(&self) -> impl Future<Output = Result<Page, NoAnswer>> {
        self()
    }
}

/// What the server itself counts.
#[derive(Debug)]
struct Counts {
    requests: IntCounterVec,
    turned_away: IntCounter,
    broken: IntCounter,
}

impl Counts {
    /// Registered, if no other server has done that.
    fn new(registry: &Registry) -> Self {
        let help = "HTTP requests answered before this one, by status";
        let requests = Opts::new("weft_exporter_requests_total", help);
        let requests = IntCounterVec::new(requests, &["code"]).expect("the name and the help are fixed");
        let help = "Connections ended without an answer: too many at once, not HTTP, gone, or too slow";
        let refused = Opts::new("weft_exporter_connections_refused_total", help);
        let refused = IntCounterVec::new(refused, &["reason"]).expect("the name and the help are fixed");
        let of = |reason| refused.with_label_values(&[reason]);
        let (turned_away, broken) = (of("too_many"), of("broken"));
        // Two servers with one registry count apart, and the first is shown.
        let _ = registry.register(Box::new(requests.clone()));
        let _ = registry.register(Box::new(refused));
        Self { requests, turned_away, broken }
    }
}

/// A source and what is counted of its server.
struct Served<S> {
    source: S,
    guard: Guard,
    registry: Registry,
    counts: Counts,
}

/// Serves `/metrics` and `/healthz` to those whom the guard lets in, until dropped. Nothing that arrives ends it or the process.
///
/// Needs a [`tokio::task::LocalSet`] or a local runtime.
pub async fn serve<S: Source>(listener: TcpListener, guard: Guard, source: S) {
    let registry = source.registry();
    let counts = Counts::new(&registry);
    let served = Rc::new(Served { source, guard, registry, counts });
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() < CONNECTIONS_MAX => {
                    connections.spawn_local(converse(stream, served.clone()));
                }
                Ok(_) => served.counts.turned_away.inc(),
                // Out of descriptors: the reason may pass, and trying at once again would spin.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn converse<S: Source>(stream: TcpStream, served: Rc<Served<S>>) {
    let own = served.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let served = served.clone();
        async move { Ok::<_, Infallible>(served.answer(&request).await) }
    });
    // One answer per connection: a scraper that keeps it open would take a place from the next one.
    let mut builder = http1::Builder::new();
    builder.keep_alive(false).max_buf_size(REQUEST_BYTES_MAX);
    let conversation = builder.serve_connection(Connection(own.guard.connection(stream)), service);
    match tokio::time::timeout(CONNECTION_TIME_MAX, conversation).await {
        Ok(Ok(())) => {}
        // Not HTTP, gone before its time, or too slow.
        Ok(Err(_)) | Err(_) => own.counts.broken.inc(),
    }
}

impl<S: Source> Served<S> {
    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let response = match self.guard.refuses(request.headers()) {
            Some((status, why)) => with_header(text(status, why), WWW_AUTHENTICATE, "Bearer"),
            None => self.shown(request).await,
        };
        self.counts.requests.with_label_values(&[response.status().as_str()]).inc();
        response
    }

    async fn shown(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let readable = [Method::GET, Method::HEAD].contains(request.method());
        match request.uri().path() {
            "/metrics" if readable => self.metrics().await,
            "/healthz" if readable && self.source.is_healthy().await => text(StatusCode::OK, "ok\n"),
            "/healthz" if readable => text(StatusCode::SERVICE_UNAVAILABLE, "not well\n"),
            "/metrics" | "/healthz" => {
                let response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are served\n");
                with_header(response, ALLOW, "GET, HEAD")
            }
            _ => text(StatusCode::NOT_FOUND, "only /metrics and /healthz are here\n"),
        }
    }

    async fn metrics(&self) -> Response<Full<Bytes>> {
        match self.source.page().await {
            Ok(page) => {
                let kind = "text/plain; version=0.0.4; charset=utf-8";
                with_header(text(StatusCode::OK, page.encode(&self.registry)), CONTENT_TYPE, kind)
            }
            Err(error) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
        }
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    // What a node is called is never HTML, whatever a browser makes of it.
    let response = with_header(response, CONTENT_TYPE, "text/plain; charset=utf-8");
    with_header(response, X_CONTENT_TYPE_OPTIONS, "nosniff")
}

fn with_header(
    mut response: Response<Full<Bytes>>,
    name: hyper::header::HeaderName,
    value: &'static str,
) -> Response<Full<Bytes>> {
    response.headers_mut().insert(name, hyper::header::HeaderValue::from_static(value));
    response
}
