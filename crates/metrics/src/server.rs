//! The HTTP server: one page, few connections, each for a short while.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::Page;
use crate::connection::Connection;

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

/// What the server itself counts.
#[derive(Debug, Default)]
struct Counts {
    requests: RefCell<BTreeMap<u16, u64>>,
    turned_away: Cell<u64>,
    broken: Cell<u64>,
}

/// Serves `/metrics` until dropped. Nothing that arrives ends it or the process.
///
/// Needs a [`tokio::task::LocalSet`] or a local runtime.
pub async fn serve<G, F>(listener: TcpListener, gather: G)
where
    G: Fn() -> F + 'static,
    F: Future<Output = Result<Page, NoAnswer>> + 'static,
{
    let (gather, counts) = (Rc::new(gather), Rc::new(Counts::default()));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() < CONNECTIONS_MAX => {
                    connections.spawn_local(converse(stream, gather.clone(), counts.clone()));
                }
                Ok(_) => bump(&counts.turned_away),
                // Out of descriptors: the reason may pass, and trying at once again would spin.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn converse<G, F>(stream: TcpStream, gather: Rc<G>, counts: Rc<Counts>)
where
    G: Fn() -> F + 'static,
    F: Future<Output = Result<Page, NoAnswer>> + 'static,
{
    let own = counts.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (gather, counts) = (gather.clone(), counts.clone());
        async move { Ok::<_, Infallible>(answer(&request, &*gather, &counts).await) }
    });
    // One answer per connection: a scraper that keeps it open would take a place from the next one.
    let mut builder = http1::Builder::new();
    builder.keep_alive(false).max_buf_size(REQUEST_BYTES_MAX);
    let served = builder.serve_connection(Connection(stream), service);
    match tokio::time::timeout(CONNECTION_TIME_MAX, served).await {
        Ok(Ok(())) => {}
        // Not HTTP, gone before its time, or too slow.
        Ok(Err(_)) | Err(_) => bump(&own.broken),
    }
}

async fn answer<G, F>(request: &Request<Incoming>, gather: &G, counts: &Counts) -> Response<Full<Bytes>>
where
    G: Fn() -> F,
    F: Future<Output = Result<Page, NoAnswer>>,
{
    let readable = [Method::GET, Method::HEAD].contains(request.method());
    let response = match request.uri().path() {
        "/metrics" if readable => match gather().await {
            Ok(mut page) => {
                counts.add_to(&mut page);
                let kind = "text/plain; version=0.0.4; charset=utf-8";
                with_header(text(StatusCode::OK, page.encode()), CONTENT_TYPE, kind)
            }
            Err(error) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
        },
        "/metrics" => {
            let response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are served\n");
            with_header(response, ALLOW, "GET, HEAD")
        }
        _ => text(StatusCode::NOT_FOUND, "nothing is here but /metrics\n"),
    };
    *counts.requests.borrow_mut().entry(response.status().as_u16()).or_default() += 1;
    response
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
}

fn with_header(
    mut response: Response<Full<Bytes>>,
    name: hyper::header::HeaderName,
    value: &'static str,
) -> Response<Full<Bytes>> {
    response.headers_mut().insert(name, hyper::header::HeaderValue::from_static(value));
    response
}

impl Counts {
    fn add_to(&self, page: &mut Page) {
        let mut requests =
            page.counter("weft_exporter_requests_total", "HTTP requests answered before this one, by status");
        for (status, count) in self.requests.borrow().iter() {
            requests.count(&[("code", &status.to_string())], *count);
        }
        let mut connections = page.counter(
            "weft_exporter_connections_refused_total",
            "Connections ended without an answer: too many at once, not HTTP, gone, or too slow",
        );
        connections.count(&[("reason", "too_many")], self.turned_away.get());
        connections.count(&[("reason", "broken")], self.broken.get());
    }
}

fn bump(count: &Cell<u64>) {
    count.set(count.get() + 1);
}
