//! The two pages of a process: its metrics, and whether it is well.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending};
use std::rc::Rc;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, VARY};
use hyper::{Response, StatusCode};
use prometheus::Registry;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

use crate::gzip::Squeezed;
use crate::page::encode_registry;
use crate::{Asked, Content, Counts, Guard, Page, Site, text};

/// Whoever has scraped within this time is about to do so again: the next page is made ready.
const ASKED_WITHIN: Duration = Duration::from_secs(10);
/// A page whose edition does not change is made again after this time: what it says of the process itself is never older.
const KEPT_MAX: Duration = Duration::from_secs(3);

/// The process has no answer now: 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the process is too busy to tell how it is")]
pub struct NoAnswer;

/// What a process shows over HTTP.
pub trait Source: 'static {
    /// What `/metrics` shows besides the registry.
    fn page(&self) -> impl Future<Output = Result<Page, NoAnswer>>;

    /// Counts up whenever the page says something new. Between two of these a page is kept compressed, as long as somebody scrapes;
    /// without it each page is made when it is asked for.
    fn editions(&self) -> impl Future<Output = Option<watch::Receiver<u64>>> {
        std::future::ready(None)
    }

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
    let (kept, asked, wanted) = (RefCell::default(), Cell::default(), Notify::new());
    let exporter = Rc::new(Exporter { source, registry, kept, asked, wanted });
    tokio::select! {
        () = crate::serve_site(listener, guard, counts, exporter.clone()) => {}
        () = exporter.keep() => {}
    }
}

struct Exporter<S> {
    source: S,
    registry: Registry,
    /// The page of the last edition, while somebody scrapes.
    kept: RefCell<Option<Rc<Squeezed>>>,
    /// When somebody scraped.
    asked: Cell<Option<Instant>>,
    wanted: Notify,
}

impl<S: Source> Site for Rc<Exporter<S>> {
    async fn answer(&self, asked: &Asked) -> Response<Content> {
        match asked.uri().path() {
            "/metrics" => self.metrics(takes_gzip(asked.headers())).await,
            "/healthz" if self.source.is_healthy().await => text(StatusCode::OK, "ok\n"),
            "/healthz" => text(StatusCode::SERVICE_UNAVAILABLE, "not well\n"),
            _ => text(StatusCode::NOT_FOUND, "only /metrics and /healthz are here\n"),
        }
    }
}

impl<S: Source> Exporter<S> {
    async fn metrics(&self, takes_gzip: bool) -> Response<Content> {
        self.asked.set(Some(Instant::now()));
        self.wanted.notify_one();
        let kept = self.kept.borrow().clone();
        let mut own = String::new();
        if let Some(page) = kept {
            encode_registry(&self.registry, &mut own);
            if takes_gzip {
                return with_gzip(page.with(&own));
            }
            // A client without gzip is shown what the others are.
            if let Some(page) = page.plain() {
                return prometheus_text(page + &own);
            }
        }
        match self.source.page().await {
            Ok(page) => prometheus_text(page.encode(&self.registry)),
            Err(error) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
        }
    }

    /// Keeps the page of each edition while somebody scrapes.
    async fn keep(&self) {
        loop {
            self.wanted.notified().await;
            let Some(mut editions) = self.source.editions().await else { return pending().await };
            while self.asked.get().is_some_and(|asked| asked.elapsed() < ASKED_WITHIN) {
                editions.mark_unchanged();
                let page = self.source.page().await;
                let page = match page {
                    Ok(page) => Some(Rc::new(Squeezed::of(&page.text()).await)),
                    Err(NoAnswer) => None,
                };
                self.kept.replace(page);
                if let Ok(Err(_)) = timeout(KEPT_MAX, editions.changed()).await {
                    // The process is about to end.
                    return pending().await;
                }
            }
            self.kept.take();
        }
    }
}

/// Whether a client takes gzip: it is named, and not with the weight of 0.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Ok(1.0), str::parse::<f32>);
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_ok_and(|weight| weight > 0.0)
    })
}

fn with_gzip(body: Vec<u8>) -> Response<Content> {
    let mut response = prometheus_text(body);
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response
}

/// An answer in Prometheus' text format.
pub fn prometheus_text(page: impl Into<Bytes>) -> Response<Content> {
    let mut response = text(StatusCode::OK, page);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept-encoding"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the pages that it makes.
    struct Counted {
        made: Cell<u64>,
        editions: watch::Receiver<u64>,
    }

    impl Source for Rc<Counted> {
        async fn page(&self) -> Result<Page, NoAnswer> {
            self.made.set(self.made.get() + 1);
            Ok(Page::new())
        }

        async fn editions(&self) -> Option<watch::Receiver<u64>> {
            Some(self.editions.clone())
        }
    }

    /// One page for each edition while somebody scrapes, however often; none afterwards.
    #[tokio::test(start_paused = true)]
    async fn pages_are_kept_ready_as_long_as_somebody_scrapes() {
        let (sender, editions) = watch::channel(0);
        let source = Rc::new(Counted { made: Cell::new(0), editions });
        let (kept, asked, wanted) = (RefCell::default(), Cell::default(), Notify::new());
        let exporter = Exporter { source: source.clone(), registry: Registry::new(), kept, asked, wanted };
        let edition = Duration::from_secs(2);
        let script = async {
            // No one has scraped.
            for _ in 0..5 {
                sender.send_modify(|edition| *edition += 1);
                tokio::time::sleep(edition).await;
            }
            assert_eq!(source.made.get(), 0);
            // The first scrape makes its own, and has the next ones kept.
            exporter.metrics(true).await;
            tokio::time::sleep(edition / 2).await;
            assert_eq!(source.made.get(), 2);
            for _ in 0..5 {
                sender.send_modify(|edition| *edition += 1);
                exporter.metrics(true).await;
                exporter.metrics(false).await;
                tokio::time::sleep(edition).await;
            }
            assert_eq!(source.made.get(), 7);
            // Where editions stay away the page is still made again, but for who asks.
            tokio::time::sleep(ASKED_WITHIN + edition).await;
            let last = source.made.get();
            assert!(last > 7 && exporter.kept.borrow().is_none(), "{last}");
            sender.send_modify(|edition| *edition += 1);
            tokio::time::sleep(ASKED_WITHIN).await;
            assert_eq!(source.made.get(), last);
        };
        tokio::select! {
            () = exporter.keep() => panic!("it has ended"),
            () = script => {}
        }
    }

    #[test]
    fn gzip_is_for_those_who_name_it() {
        let takes = |value: &'static str| {
            takes_gzip(&HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))]))
        };
        // What Prometheus, curl and a browser send.
        assert!(takes("gzip") && takes("deflate, gzip, br, zstd") && takes("br, GZIP;q=0.5"));
        assert!(
            !takes("") && !takes("identity") && !takes("gzip;q=0") && !takes("gzip;q=x") && !takes("x-gzip")
        );
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
