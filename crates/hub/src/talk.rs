//! Requests of the hub to a process, over a connection of their own: the hub's usual one is busy with events, and a slow answer must not
//! delay them.

use std::io;
use std::path::Path;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use weft_control::{Answer, Error, LineDecoder, REPLY_BYTES_MAX, ReplyBody, ReplyLine, Request, RequestLine};

/// Bytes that are read at once.
const PIECE: usize = 16 * 1024;
/// Requests that are sent before the first answer is read. Their answers are small beside a socket's buffer.
const AHEAD: usize = 16;

/// The answers to requests, in their order.
///
/// # Errors
/// When there is no connection, or it ends before the last answer.
pub(crate) async fn ask(socket: &Path, requests: Vec<Request>) -> io::Result<Vec<Result<Answer, Error>>> {
    let mut stream = UnixStream::connect(socket).await?;
    let mut decoder = LineDecoder::new(REPLY_BYTES_MAX);
    let mut answers = Vec::with_capacity(requests.len());
    let mut requests = (1..).zip(requests).peekable();
    while requests.peek().is_some() {
        let lines = requests.by_ref().take(AHEAD).map(|(id, request)| RequestLine { id, request }.to_line());
        let lines: Vec<String> = lines.collect();
        stream.write_all(lines.concat().as_bytes()).await?;
        for _ in lines {
            let id = answers.len() as u64 + 1;
            answers.push(match next_reply(&mut stream, &mut decoder, id).await? {
                ReplyBody::Answer(answer) => Ok(*answer),
                ReplyBody::Error(error) => Err(error),
                _ => return Err(io::Error::other("it answers another question")),
            });
        }
    }
    Ok(answers)
}

async fn next_reply(stream: &mut UnixStream, decoder: &mut LineDecoder, id: u64) -> io::Result<ReplyBody> {
    let mut piece = vec![0; PIECE];
    loop {
        while let Some(line) = decoder.next_line() {
            let line = line.map_err(io::Error::other)?;
            let reply = ReplyLine::parse(&line).map_err(|error| {
                io::Error::other(format!("it runs another version of weft, or errs ({error})"))
            })?;
            if reply.id.is_none_or(|of| of == id) {
                return Ok(reply.body);
            }
        }
        match stream.read(&mut piece).await? {
            0 => return Err(io::Error::other("it hung up")),
            count => decoder.feed(piece.get(..count).unwrap_or_default()),
        }
    }
}
