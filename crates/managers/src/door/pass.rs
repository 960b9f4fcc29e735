//! Passing a conversation on, in both directions.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;
use weft_control::{
    Error, ErrorCode, LineDecoder, REPLY_BYTES_MAX, REQUEST_BYTES_MAX, ReplyLine, RequestLine, Role,
};

/// Bytes that are read at once.
const PIECE: usize = 16 * 1024;

/// Passes a client's requests and a process's replies on until either leaves. A viewer's requests are held against its role.
pub(crate) async fn requests<T: AsyncRead + AsyncWrite + Unpin>(
    mut client: T,
    mut process: UnixStream,
    role: Role,
) -> io::Result<()> {
    match role {
        Role::Operator => tokio::io::copy_bidirectional(&mut client, &mut process).await.map(drop),
        Role::Viewer | Role::VmManager => Judged::new(role).pass(client, process).await,
    }
}

/// A conversation line by line: a refusal must not come into the middle of a reply.
struct Judged {
    role: Role,
    requests: LineDecoder,
    replies: LineDecoder,
}

impl Judged {
    fn new(role: Role) -> Self {
        let (requests, replies) = (LineDecoder::new(REQUEST_BYTES_MAX), LineDecoder::new(REPLY_BYTES_MAX));
        Self { role, requests, replies }
    }

    async fn pass<T: AsyncRead + AsyncWrite + Unpin>(
        mut self,
        mut client: T,
        mut process: UnixStream,
    ) -> io::Result<()> {
        let (mut asked, mut told) = (vec![0; PIECE], vec![0; PIECE]);
        let mut asks = true;
        loop {
            tokio::select! {
                read = client.read(&mut asked), if asks => {
                    let count = read?;
                    if count == 0 {
                        // It asks no more, and waits for what it has asked for. The process ends the conversation.
                        asks = false;
                        process.shutdown().await?;
                    }
                    self.requests.feed(asked.get(..count).unwrap_or_default());
                    while let Some(line) = self.requests.next_line() {
                        match self.judge(line.map_err(|error| error.to_string())) {
                            Ok(line) => process.write_all(&line).await?,
                            Err(refusal) => client.write_all(refusal.to_line().as_bytes()).await?,
                        }
                    }
                }
                read = process.read(&mut told) => {
                    let count = read?;
                    if count == 0 {
                        return Ok(());
                    }
                    self.replies.feed(told.get(..count).unwrap_or_default());
                    while let Some(line) = self.replies.next_line() {
                        client.write_all(&ended(line.map_err(io::Error::other)?)).await?;
                    }
                }
            }
        }
    }

    /// A line that may pass, or what is answered instead.
    fn judge(&self, line: Result<Vec<u8>, String>) -> Result<Vec<u8>, ReplyLine> {
        let line =
            line.map_err(|error| ReplyLine::new(None, Err(Error::new(ErrorCode::LineTooLong, error))))?;
        let parsed = RequestLine::parse(&line).map_err(|bad| ReplyLine::new(bad.id, Err(bad.error)))?;
        let refused = |error| ReplyLine::new(Some(parsed.id), Err(error));
        self.role.check(&parsed.request).map_err(refused)?;
        Ok(ended(line))
    }
}

fn ended(mut line: Vec<u8>) -> Vec<u8> {
    line.push(b'\n');
    line
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    use weft_control::{ReplyBody, Request};

    use super::*;

    fn line(id: u64, request: Request) -> String {
        RequestLine { id, request }.to_line()
    }

    #[tokio::test]
    async fn a_viewers_orders_stay_at_the_door_and_its_questions_pass() {
        let (own, client) = UnixStream::pair().unwrap();
        let (process, far) = UnixStream::pair().unwrap();
        let passing = requests(client, process, Role::Viewer);
        let talk = async {
            let (read, mut write) = own.into_split();
            let said = [
                line(1, Request::Shutdown),
                line(2, Request::Health),
                "junk\n".to_owned(),
                line(3, Request::SmSweep),
                line(4, Request::SmStatus),
            ];
            write.write_all(said.concat().as_bytes()).await.unwrap();
            let mut heard = BufReader::new(far);
            for expected in [line(2, Request::Health), line(4, Request::SmStatus)] {
                let mut text = String::new();
                heard.read_line(&mut text).await.unwrap();
                assert_eq!(text, expected);
            }
            let mut replies = BufReader::new(read);
            for (id, code) in [
                (Some(1), ErrorCode::Forbidden),
                (None, ErrorCode::Malformed),
                (Some(3), ErrorCode::Forbidden),
            ] {
                let mut text = String::new();
                replies.read_line(&mut text).await.unwrap();
                let reply = ReplyLine::parse(text.trim_end().as_bytes()).unwrap();
                let ReplyBody::Error(error) = reply.body else { panic!("{text}") };
                assert_eq!((reply.id, error.code), (id, code), "{text}");
            }
        };
        tokio::select! {
            ended = passing => panic!("the conversation has ended: {ended:?}"),
            () = talk => {}
        }
    }

    #[tokio::test]
    async fn a_viewer_that_asks_no_more_hears_what_it_has_asked_for() {
        let (mut own, client) = UnixStream::pair().unwrap();
        let (process, mut far) = UnixStream::pair().unwrap();
        let question = line(1, Request::Health);
        let talk = async {
            own.write_all(question.as_bytes()).await.unwrap();
            own.shutdown().await.unwrap();
            let mut heard = String::new();
            far.read_to_string(&mut heard).await.unwrap();
            assert_eq!(heard, question);
            far.write_all(b"{}\n").await.unwrap();
            drop(far);
            let mut told = String::new();
            own.read_to_string(&mut told).await.unwrap();
            assert_eq!(told, "{}\n");
        };
        let (passed, ()) = tokio::join!(requests(client, process, Role::Viewer), talk);
        passed.unwrap();
    }

    #[tokio::test]
    async fn an_operators_words_pass_unread() {
        let (mut own, client) = UnixStream::pair().unwrap();
        let (process, mut far) = UnixStream::pair().unwrap();
        let talk = async {
            let mut heard = [0; 5];
            own.write_all(b"junk\n").await.unwrap();
            far.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"junk\n");
            drop(own);
            // The process has answered nothing, and leaves when its client has.
            assert_eq!(far.read(&mut heard).await.unwrap(), 0);
            drop(far);
        };
        let (passed, ()) = tokio::join!(requests(client, process, Role::Operator), talk);
        passed.unwrap();
    }
}
