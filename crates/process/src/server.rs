//! The server's end of the control protocol.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use weft_control::event::{LabEvent, ProcessEvent};
use weft_control::process::{Health, Hello, Identity, LogFilter};
use weft_control::{
    Answer, Error, ErrorCode, EventKind, LineDecoder, LineError, REPLY_BYTES_MAX, REQUEST_BYTES_MAX,
    ReplyLine, Request, RequestLine, Role, VERSION,
};

use crate::events::{Batch, Reader};
use crate::limits::{CLIENTS_MAX, CLIENTS_OF_ONE_MAX};
use crate::{
    Capture, Clock, Counts, Crowd, Crowded, EventLog, Holdings, Papers, Requester, Service, Socket, log,
    next_client, not_here, utc_now,
};

/// A client that has not read a line by then is disconnected.
pub const WRITE_PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that are read at once.
const PIECE: usize = 4096;
/// What a process ends with that was killed on request: what shells and container engines say of one that SIGKILL ended.
const KILLED: i32 = 128 + 9;

/// A process's end of the control protocol.
///
/// A client has at most one answer under way, so a client that does not read its answers is not read from any more;
/// events are read from the [`EventLog`], which forgets. So no client costs more than one line and a place in the log.
pub struct Server<S> {
    identity: Identity,
    clock: Clock,
    events: EventLog,
    counts: Counts,
    service: S,
    papers: Option<Arc<dyn Papers>>,
}

impl<S: Service + 'static> Server<S> {
    /// A server that answers for this process.
    pub fn new(identity: Identity, clock: Clock, events: EventLog, counts: Counts, service: S) -> Self {
        Self { identity, clock, events, counts, service, papers: None }
    }

    /// The same for a process that has an identity of its own in use.
    #[must_use]
    pub fn with_papers(self, papers: Option<Arc<dyn Papers>>) -> Self {
        Self { papers, ..self }
    }

    /// The process's own part.
    pub fn service(&self) -> &S {
        &self.service
    }

    /// Serves a Unix socket until dropped: whoever reaches it is an operator. Nothing that arrives ends it.
    ///
    /// Needs a [`tokio::task::LocalSet`] or a local runtime.
    pub async fn serve(self: Rc<Self>, socket: Socket) {
        let mut clients = JoinSet::new();
        let crowd = Crowd::new(CLIENTS_MAX, CLIENTS_OF_ONE_MAX);
        loop {
            let stream = next_client(|| socket.accept(), &mut clients).await;
            match crowd.enter(&stream) {
                Ok(seat) => {
                    let server = self.clone();
                    clients.spawn_local(async move {
                        server.converse(stream, Role::Operator, seat.requester()).await;
                        drop(seat);
                    });
                }
                Err(why) => self.turn_away(stream, why).await,
            }
        }
    }

    async fn turn_away(&self, mut stream: UnixStream, why: Crowded) {
        let (counter, message) = match why {
            Crowded::Full => (&self.counts.turned_away, "too many clients"),
            Crowded::OfOne => (&self.counts.of_one_turned_away, "too many connections of one process"),
        };
        counter.inc();
        let error = Error::new(ErrorCode::TooMany, message).hint("close some of the connections first");
        let line = ReplyLine::new(None, Err(error)).to_line();
        // A fresh socket takes a line; if it does not, its client has gone.
        let _ = stream.try_write(line.as_bytes());
        let _ = stream.shutdown().await;
    }

    /// Serves one client on any stream, until it leaves or is too slow.
    pub async fn converse<T: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: T,
        role: Role,
        requester: Requester,
    ) {
        self.counts.accepted.inc();
        self.counts.connected.inc();
        let mut client = Connection::new(stream, role, requester);
        let ended = self.attend(&mut client).await;
        if matches!(ended, Err(Ended::TooSlow)) {
            self.counts.too_slow.inc();
        }
        if client.decoder.unfinished() > 0 {
            self.counts.half_lines.inc();
        }
        self.counts.connected.dec();
    }

    async fn attend<T: AsyncRead + AsyncWrite + Unpin>(
        &self,
        client: &mut Connection<T, S::Capture>,
    ) -> Result<(), Ended> {
        let mut piece = [0; PIECE];
        loop {
            while let Some(line) = client.decoder.next_line() {
                self.take(client, line).await?;
            }
            tokio::select! {
                read = client.stream.read(&mut piece) => match read? {
                    0 => return Ok(()),
                    count => client.decoder.feed(piece.get(..count).unwrap_or_default()),
                },
                batch = next(&mut client.reader) => self.tell(client, batch).await?,
                () = captured(&mut client.capture) => client.tell_captured().await?,
            }
        }
    }

    async fn health(&self) -> Health {
        let (condition, busy) = self.service.condition().await;
        let Holdings { descriptors, memory_kib } = Holdings::own();
        let busy_ms = u64::try_from(busy.as_millis()).unwrap_or(u64::MAX);
        Health { condition, busy_ms, descriptors, memory_kib }
    }

    /// A process that has no identity in use has nothing to renew.
    fn renew(&self) -> Result<Answer, Error> {
        if let Some(papers) = &self.papers {
            papers.renew()?;
            self.events.publish(EventKind::Process(ProcessEvent::IdentityRenewed));
        }
        Ok(Answer::Done)
    }

    /// A process without an identity talks to none over the network, and cannot verify a list: it keeps and passes on nothing.
    fn revoke(&self, list: &str) -> Result<Answer, Error> {
        let Some(papers) = &self.papers else { return Ok(Answer::Done) };
        let is_news = papers.revoke(list)?;
        self.service.revoked(list, is_news)?;
        if is_news {
            self.events.publish(EventKind::Process(ProcessEvent::IdentitiesRevoked));
        }
        Ok(Answer::Done)
    }

    /// Answers one line.
    async fn take<T: AsyncRead + AsyncWrite + Unpin>(
        &self,
        client: &mut Connection<T, S::Capture>,
        line: Result<Vec<u8>, LineError>,
    ) -> Result<(), Ended> {
        let parsed = match line {
            Ok(line) => RequestLine::parse(&line).map_err(|bad| (bad.id, bad.error)),
            Err(error) => Err((None, Error::new(ErrorCode::LineTooLong, error.to_string()))),
        };
        let (id, result) = match parsed {
            Ok(RequestLine { id, request }) => {
                self.counts.requests.with_label_values(&[request.name()]).inc();
                if matches!(request, Request::Cancel { request } if client.captures(request)) {
                    // What was captured before comes before the totals.
                    client.tell_captured().await?;
                }
                (Some(id), self.answer(client, id, request).await)
            }
            Err((id, error)) => {
                self.count(&error);
                (id, Err(error))
            }
        };
        let mut line = ReplyLine::new(id, result).to_line();
        if line.len() > REPLY_BYTES_MAX {
            let error = Error::new(ErrorCode::AnswerTooLong, "the answer is longer than a line may be")
                .hint("ask for smaller pages");
            self.count(&error);
            line = ReplyLine::new(id, Err(error)).to_line();
        }
        client.write(line.as_bytes()).await
    }

    async fn answer<T>(
        &self,
        client: &mut Connection<T, S::Capture>,
        id: u64,
        request: Request,
    ) -> Result<Answer, Error> {
        let answered = match client.role.check(&request) {
            Err(error) => Err(error),
            Ok(()) => self.carry_out(client, id, request).await,
        };
        answered.inspect_err(|error| self.count(error))
    }

    async fn carry_out<T>(
        &self,
        client: &mut Connection<T, S::Capture>,
        id: u64,
        request: Request,
    ) -> Result<Answer, Error> {
        match request {
            Request::Hello => Ok(Answer::Hello(Hello {
                identity: self.identity.clone(),
                protocols: vec![VERSION],
                role: client.role,
                time: utc_now(),
                monotonic_ns: self.clock.monotonic_ns(),
            })),
            Request::Health => Ok(Answer::Health(self.health().await)),
            // As SIGKILL would have it, which the first process of a container cannot send itself.
            Request::Kill => std::process::exit(KILLED),
            Request::Clients => Ok(Answer::Clients(self.counts.clients())),
            Request::LogFilter => Ok(Answer::LogFilter(LogFilter { filter: log::current() })),
            Request::SetLogFilter { filter } => {
                log::set(&filter)
                    .map_err(|error| Error::new(ErrorCode::InvalidRequest, format!("`{filter}`: {error}")))?;
                self.events.publish(EventKind::Process(ProcessEvent::LogFilterSet { filter }));
                Ok(Answer::Done)
            }
            Request::RenewIdentity => self.renew(),
            Request::Revoke { list } => self.revoke(&list),
            Request::RevokedIdentities => {
                let list = self.papers.as_ref().and_then(|papers| papers.revoked());
                Ok(Answer::RevokedIdentities { list })
            }
            Request::NoteFault { fault, target } => {
                self.events.publish(EventKind::Lab(LabEvent::Fault { fault, target }));
                Ok(Answer::Done)
            }
            Request::Events(_) if client.reader.is_some() => {
                let error = Error::new(ErrorCode::TooMany, "this connection is told of events already");
                Err(error.hint("cancel the first request, or open another connection"))
            }
            Request::Events(filter) => {
                let (reader, subscribed) = self.events.subscribe(&filter);
                client.reader = Some((id, reader));
                Ok(Answer::Subscribed(subscribed))
            }
            Request::Cancel { request } if client.reader.as_ref().is_some_and(|(id, _)| *id == request) => {
                client.reader = None;
                Ok(Answer::Done)
            }
            Request::Capture { .. } if client.capture.is_some() => {
                let error = Error::new(ErrorCode::TooMany, "this connection captures already");
                Err(error.hint("cancel the first request, or open another connection"))
            }
            Request::Capture { ref tap } => {
                let begun = self.service.capture(tap, &client.requester);
                let capture = begun.unwrap_or_else(|| Err(not_here(&request, self.identity.kind)))?;
                client.capture = Some((id, capture));
                Ok(Answer::Done)
            }
            Request::Cancel { request } if client.captures(request) => {
                let totals = client.capture.take().map(|(_, capture)| capture.totals());
                Ok(Answer::CaptureEnded(totals.unwrap_or_default()))
            }
            Request::Cancel { request } => {
                let message = format!("this connection has nothing under way with the id {request}");
                Err(Error::new(ErrorCode::NotFound, message))
            }
            request => self.service.answer(request).await,
        }
    }

    /// Tells a client of events.
    async fn tell<T: AsyncRead + AsyncWrite + Unpin>(
        &self,
        client: &mut Connection<T, S::Capture>,
        batch: Batch,
    ) -> Result<(), Ended> {
        let Some((id, _)) = client.reader else { return Ok(()) };
        self.counts.events_skipped.inc_by(batch.skipped);
        let mut lines: String = batch.events.iter().map(|event| ReplyLine::event_line(id, event)).collect();
        if batch.is_last {
            client.reader = None;
            lines += &ReplyLine::new(Some(id), Ok(Answer::EventsEnded)).to_line();
        }
        client.write(lines.as_bytes()).await?;
        self.counts.events_told.inc_by(batch.events.len() as u64);
        Ok(())
    }

    fn count(&self, error: &Error) {
        self.counts.errors.with_label_values(&[error.code.name()]).inc();
    }
}

/// Why a conversation ended other than by the client's leave.
enum Ended {
    TooSlow,
    Broken,
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

/// One client.
struct Connection<T, C> {
    stream: T,
    role: Role,
    requester: Requester,
    decoder: LineDecoder,
    /// Its events, and the id of the request that asked for them.
    reader: Option<(u64, Reader)>,
    /// The same of packets.
    capture: Option<(u64, C)>,
}

impl<T, C> Connection<T, C> {
    fn new(stream: T, role: Role, requester: Requester) -> Self {
        let decoder = LineDecoder::new(REQUEST_BYTES_MAX);
        Self { stream, role, requester, decoder, reader: None, capture: None }
    }

    /// Whether a request of this number captures.
    fn captures(&self, request: u64) -> bool {
        self.capture.as_ref().is_some_and(|(id, _)| *id == request)
    }
}

impl<T: AsyncWrite + Unpin, C: Capture> Connection<T, C> {
    async fn write(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        let write = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        match tokio::time::timeout(WRITE_PATIENCE, write).await {
            Ok(written) => Ok(written?),
            Err(_) => Err(Ended::TooSlow),
        }
    }

    /// Tells what has been captured.
    async fn tell_captured(&mut self) -> Result<(), Ended> {
        while let Some((id, capture)) = &mut self.capture {
            let (id, packets) = (*id, capture.take());
            if packets.is_empty() {
                break;
            }
            let lines: String =
                packets.into_iter().map(|packet| ReplyLine::captured(id, packet).to_line()).collect();
            self.write(lines.as_bytes()).await?;
        }
        Ok(())
    }
}

/// The next events of a client that wants some.
async fn next(reader: &mut Option<(u64, Reader)>) -> Batch {
    match reader {
        Some((_, reader)) => reader.next().await,
        None => std::future::pending().await,
    }
}

/// Waits until there are packets for a client that captures.
async fn captured<C: Capture>(capture: &mut Option<(u64, C)>) {
    match capture {
        Some((_, capture)) => capture.ready().await,
        None => std::future::pending().await,
    }
}
