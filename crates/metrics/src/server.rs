//! The HTTP server: few connections, one answer each, and a deadline for every step that no byte puts off.
//!
//! ```text
//!   accepted ── TLS, head ──▶ proved ──▶ answer with an end ──▶ closed
//!      │      PROOF_TIME_MAX     │         ANSWER_TIME_MAX
//!      │                         └──▶ stream: PIECE_TIME_MAX for each piece
//!      └─ the oldest makes room for the next (see `places`)
//! ```

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::header::{RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use prometheus::{IntCounter, IntCounterVec, Opts, Registry};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::content::Flow;
use crate::places::Places;
use crate::{Content, Guard};

/// From the connection until its request has been read, the handshake of TLS included.
pub const PROOF_TIME_MAX: Duration = Duration::from_secs(5);
/// From the request until the client has the answer.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(15);
/// From one piece of an endless answer until the client is ready for the next.
pub const PIECE_TIME_MAX: Duration = Duration::from_secs(30);
/// From the content of a POST until what it asks for is done, and the client has the answer.
pub const WORK_TIME_MAX: Duration = Duration::from_secs(90);
/// The longest request that is read, without its content.
const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// The longest content of a POST.
pub const POSTED_BYTES_MAX: usize = 64 * 1024;

/// A request. Its body is not read.
pub type Asked = Request<Incoming>;
/// A POST with its content.
pub type Posted = Request<Bytes>;

/// What a server shows.
pub trait Site: 'static {
    /// Whether anything takes a POST.
    const TAKES_POSTS: bool = false;

    /// Answers a GET or HEAD that the guard lets in.
    fn answer(&self, asked: &Asked) -> impl Future<Output = Response<Content>>;

    /// Why a POST with this head is refused before its content is read, if it is.
    fn refuses_post(&self, _asked: &Asked) -> Option<Response<Content>> {
        None
    }

    /// Answers a POST that the guard lets in.
    fn take(&self, _posted: Posted) -> impl Future<Output = Response<Content>> {
        std::future::ready(text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are served\n"))
    }
}

/// What the server itself counts.
#[derive(Debug)]
pub struct Counts {
    requests: IntCounterVec,
    dropped: IntCounter,
    slow: IntCounter,
    broken: IntCounter,
    streams: IntCounter,
}

impl Counts {
    /// Registered, if no other server has done that.
    pub fn new(registry: &Registry) -> Self {
        let help = "HTTP requests answered before this one, by status";
        let requests = Opts::new("weft_exporter_requests_total", help);
        let requests = IntCounterVec::new(requests, &["code"]).expect("the name and the help are fixed");
        let help = "Connections ended without an answer: too many at once, too slow, not HTTP or gone, or too many streams";
        let refused = Opts::new("weft_exporter_connections_refused_total", help);
        let refused = IntCounterVec::new(refused, &["reason"]).expect("the name and the help are fixed");
        let of = |reason| refused.with_label_values(&[reason]);
        let (dropped, slow, broken, streams) =
            (of("too_many"), of("too_slow"), of("broken"), of("too_many_streams"));
        // Two servers with one registry count apart, and the first is shown.
        let _ = registry.register(Box::new(requests.clone()));
        let _ = registry.register(Box::new(refused));
        Self { requests, dropped, slow, broken, streams }
    }
}

/// A site and what its connections share.
struct Served<S> {
    site: S,
    guard: Guard,
    counts: Counts,
    places: RefCell<Places<AbortHandle>>,
}

/// Serves a site to those whom the guard lets in, until dropped. Nothing that arrives ends it or the process.
///
/// Needs a [`tokio::task::LocalSet`] or a local runtime.
pub async fn serve_site<S: Site>(listener: TcpListener, guard: Guard, counts: Counts, site: S) {
    let served = Rc::new(Served { site, guard, counts, places: RefCell::new(Places::new()) });
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    served.enter(&mut connections, stream);
                    // Its request may be there already, and is read before others can crowd it out.
                    tokio::task::yield_now().await;
                }
                // Out of descriptors: trying at once again would spin.
                Err(_) => {
                    let dropped = served.places.borrow_mut().drop_oldest();
                    served.end(dropped);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// One connection's place and deadline. The place is free when this goes.
struct Seat<S: Site> {
    number: u64,
    served: Rc<Served<S>>,
    deadline: Cell<Instant>,
}

impl<S: Site> Drop for Seat<S> {
    fn drop(&mut self) {
        self.served.places.borrow_mut().leave(self.number);
    }
}

impl<S: Site> Seat<S> {
    fn within(&self, time: Duration) {
        self.deadline.set(Instant::now() + time);
    }

    fn prove(&self) {
        let dropped = self.served.places.borrow_mut().prove(self.number);
        self.served.end(dropped);
        self.within(ANSWER_TIME_MAX);
    }

    fn stream(&self) -> bool {
        self.within(PIECE_TIME_MAX);
        self.served.places.borrow_mut().stream(self.number)
    }
}

impl<S: Site> Served<S> {
    fn enter(self: &Rc<Self>, connections: &mut JoinSet<()>, stream: TcpStream) {
        let deadline = Cell::new(Instant::now() + PROOF_TIME_MAX);
        let dropped = self.places.borrow_mut().enter(|number| {
            let seat = Rc::new(Seat { number, served: self.clone(), deadline });
            connections.spawn_local(converse(stream, seat))
        });
        self.end(dropped);
    }

    /// Ends a connection that makes room for another.
    fn end(&self, dropped: Option<AbortHandle>) {
        if let Some(connection) = dropped {
            connection.abort();
            self.counts.dropped.inc();
        }
    }
}

async fn converse<S: Site>(stream: TcpStream, seat: Rc<Seat<S>>) {
    let counts = &seat.served.counts;
    let outcome = within(&seat.deadline, async {
        let wire = seat.served.guard.shake_hands(stream).await.map_err(drop)?;
        let service = service_fn(|request: Asked| {
            let seat = seat.clone();
            async move { Ok::<_, Infallible>(seat.answer(request).await) }
        });
        // One answer per connection: a client that keeps it open would take a place from the next one.
        let mut builder = http1::Builder::new();
        builder.keep_alive(false).max_buf_size(REQUEST_BYTES_MAX);
        builder.serve_connection(wire, service).await.map_err(drop)
    });
    match outcome.await {
        Some(Ok(())) => {}
        // Not HTTP, or gone before its time.
        Some(Err(())) => counts.broken.inc(),
        None => counts.slow.inc(),
    }
}

/// What `work` gives, unless the deadline passes, which `work` moves.
async fn within<T>(deadline: &Cell<Instant>, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut alarm = pin!(sleep_until(deadline.get()));
    poll_fn(|context| {
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(Some(done));
        }
        if alarm.deadline() != deadline.get() {
            alarm.as_mut().reset(deadline.get());
        }
        alarm.as_mut().poll(context).map(|()| None)
    })
    .await
}

impl<S: Site> Seat<S> {
    async fn answer(self: Rc<Self>, asked: Asked) -> Response<Flow> {
        let counts = &self.served.counts;
        let mut response = match self.served.guard.refuses(asked.headers()) {
            Some((status, why)) => with_header(text(status, why), WWW_AUTHENTICATE, "Bearer"),
            None => {
                self.prove();
                self.shown(asked).await
            }
        };
        counts.requests.with_label_values(&[response.status().as_str()]).inc();
        // What a node is called is never HTML, whatever a browser makes of it.
        response = with_header(response, X_CONTENT_TYPE_OPTIONS, "nosniff");
        response.map(|Content { flow, is_endless }| -> Flow {
            if !is_endless {
                return flow;
            }
            // A piece that is fetched puts off the deadline.
            Box::pin(flow.map_frame(move |frame| {
                self.within(PIECE_TIME_MAX);
                frame
            }))
        })
    }

    async fn shown(&self, asked: Asked) -> Response<Content> {
        if asked.method() == Method::POST && S::TAKES_POSTS {
            return self.posted(asked).await;
        }
        if ![Method::GET, Method::HEAD].contains(asked.method()) {
            let response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are served\n");
            return with_header(response, ALLOW, "GET, HEAD");
        }
        let response = self.served.site.answer(&asked).await;
        if !response.body().is_endless || asked.method() == Method::HEAD || self.stream() {
            return response;
        }
        self.served.counts.streams.inc();
        let response = text(StatusCode::SERVICE_UNAVAILABLE, "too many streams are open: close one\n");
        with_header(response, RETRY_AFTER, "30")
    }

    async fn posted(&self, asked: Asked) -> Response<Content> {
        if let Some(refusal) = self.served.site.refuses_post(&asked) {
            return refusal;
        }
        let (head, body) = asked.into_parts();
        let Ok(content) = Limited::new(body, POSTED_BYTES_MAX).collect().await else {
            let why = format!("the content breaks off, or is longer than {POSTED_BYTES_MAX} bytes\n");
            return text(StatusCode::PAYLOAD_TOO_LARGE, why);
        };
        self.within(WORK_TIME_MAX);
        self.served.site.take(Request::from_parts(head, content.to_bytes())).await
    }
}

/// An answer that is plain text.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Content> {
    let mut response = Response::new(Content::whole(body));
    *response.status_mut() = status;
    with_header(response, CONTENT_TYPE, "text/plain; charset=utf-8")
}

fn with_header(mut response: Response<Content>, name: HeaderName, value: &'static str) -> Response<Content> {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}
