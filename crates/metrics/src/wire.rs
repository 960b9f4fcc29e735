//! A connection with or without TLS.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::Accept;
use tokio_rustls::server::TlsStream;

/// A client's connection. The handshake of TLS is made when something is first read or written: who only accepts connections does
/// not wait for one.
pub struct Wire(State);

enum State {
    Plain(TcpStream),
    Shaking(Box<Accept<TcpStream>>),
    Tls(Box<TlsStream<TcpStream>>),
    Broken,
}

impl Wire {
    pub(crate) fn plain(stream: TcpStream) -> Self {
        Self(State::Plain(stream))
    }

    pub(crate) fn tls(accept: Accept<TcpStream>) -> Self {
        Self(State::Shaking(Box::new(accept)))
    }

    /// Once the handshake is over: what is to be read and written.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Pin<&mut dyn Duplex>>> {
        if let State::Shaking(accept) = &mut self.0 {
            let shaken = ready!(Pin::new(accept.as_mut()).poll(context));
            match shaken {
                Ok(stream) => self.0 = State::Tls(Box::new(stream)),
                Err(error) => {
                    self.0 = State::Broken;
                    return Poll::Ready(Err(error));
                }
            }
        }
        Poll::Ready(match &mut self.0 {
            State::Plain(stream) => Ok(Pin::new(stream)),
            State::Tls(stream) => Ok(Pin::new(stream.as_mut())),
            State::Shaking(_) | State::Broken => Err(io::ErrorKind::ConnectionAborted.into()),
        })
    }
}

trait Duplex: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_ready(context))?.poll_read(context, into)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_ready(context))?.poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_ready(context))?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_ready(context))?.poll_shutdown(context)
    }
}
