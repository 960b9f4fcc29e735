//! The two pages of a process: its metrics, and whether it is well.

use std::future::Future;

use hyper::header::CONTENT_TYPE;
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};
use prometheus::Registry;
use tokio::net::TcpListener;

use crate::{Asked, Content, Counts, Guard, Page, Site, text};

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

/// Serves `/metrics` and `/healthz` to those whom the guard lets in, until dropped. Nothing that arrives ends it or the process.
///
/// Needs a [`tokio::task::LocalSet`] or a local runtime.
pub async fn serve<S: Source>(listener: TcpListener, guard: Guard, source: S) {
    let registry = source.registry();
    let counts = Counts::new(&registry);
    crate::serve_site(listener, guard, counts, Exporter { source, registry }).await;
}

struct Exporter<S> {
    source: S,
    registry: Registry,
}

impl<S: Source> Site for Exporter<S> {
    async fn answer(&self, asked: &Asked) -> Response<Content> {
        match asked.uri().path() {
            "/metrics" => self.metrics().await,
            "/healthz" if self.source.is_healthy().await => text(StatusCode::OK, "ok\n"),
            "/healthz" => text(StatusCode::SERVICE_UNAVAILABLE, "not well\n"),
            _ => text(StatusCode::NOT_FOUND, "only /metrics and /healthz are here\n"),
        }
    }
}

impl<S: Source> Exporter<S> {
    async fn metrics(&self) -> Response<Content> {
        match self.source.page().await {
            Ok(page) => prometheus_text(page.encode(&self.registry)),
            Err(error) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
        }
    }
}

/// An answer in Prometheus' text format.
pub fn prometheus_text(page: String) -> Response<Content> {
    let mut response = text(StatusCode::OK, page);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
