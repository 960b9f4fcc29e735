//! The content of an answer, with or without an end.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame};

/// Bytes on their way to a client.
pub(crate) type Flow = Pin<Box<dyn Body<Data = Bytes, Error = Infallible>>>;

/// The content of an answer.
pub struct Content {
    pub(crate) flow: Flow,
    pub(crate) is_endless: bool,
}

impl Content {
    /// Content that is there already.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self { flow: Box::pin(Full::new(bytes.into())), is_endless: false }
    }
}

/// Content in pieces, each of which is made when the client has the one before.
pub struct Pieces(NextPiece);

/// A piece and what follows it, when the client wants them.
type NextPiece = Pin<Box<dyn Future<Output = Option<(Bytes, Pieces)>>>>;

impl Pieces {
    /// Content that begins with a piece; `None` ends it. Without an end, a piece shall come every few seconds: a client
    /// that does not fetch it is known by that.
    pub fn new(next: impl Future<Output = Option<(Bytes, Self)>> + 'static) -> Self {
        Self(Box::pin(next))
    }
}

/// As long as pieces are fetched, it may take as long as content without an end.
impl From<Pieces> for Content {
    fn from(pieces: Pieces) -> Self {
        Self { flow: Box::pin(pieces), is_endless: true }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some((piece, rest)) = ready!(self.0.as_mut().poll(context)) else { return Poll::Ready(None) };
        *self = rest;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}
