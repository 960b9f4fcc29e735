//! The content of an answer, with or without an end.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, SizeHint};

/// The content of an answer.
pub struct Content(Kind);

enum Kind {
    Whole(Full<Bytes>),
    Endless(Endless),
}

/// Content without an end: the next piece, and what follows it.
pub struct Endless(Pin<Box<dyn Future<Output = (Bytes, Endless)>>>);

impl Content {
    /// Content that is there already.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Whole(Full::new(bytes.into())))
    }

    /// Whether it has no end.
    pub(crate) fn is_endless(&self) -> bool {
        matches!(self.0, Kind::Endless(_))
    }
}

impl Endless {
    /// Content that begins with a piece. A piece shall come every few seconds: a client that does not fetch it is known by that.
    pub fn new(next: impl Future<Output = (Bytes, Self)> + 'static) -> Self {
        Self(Box::pin(next))
    }
}

impl From<Endless> for Content {
    fn from(endless: Endless) -> Self {
        Self(Kind::Endless(endless))
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Kind::Whole(whole) => Pin::new(whole).poll_frame(context),
            Kind::Endless(endless) => {
                let (piece, rest) = ready!(endless.0.as_mut().poll(context));
                *endless = rest;
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(whole) => whole.is_end_stream(),
            Kind::Endless(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(whole) => whole.size_hint(),
            Kind::Endless(_) => SizeHint::default(),
        }
    }
}
