//! For a driver that waits with poll(2): a thread serves, and asks the driver's loop how things are.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::oneshot;

use crate::{NoAnswer, Page, serve};

/// A driver that has not answered by then is busy: its last answer has to do.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// The driver's side: readable while somebody asks.
#[derive(Debug)]
pub struct Desk<T> {
    bell: UnixStream,
    questions: mpsc::Receiver<oneshot::Sender<T>>,
}

impl<T> AsFd for Desk<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl<T: Clone> Desk<T> {
    /// Answers everybody who asks; false when the server is gone, and with it the desk's use. `tell` is called once,
    /// and only when somebody asks.
    pub fn answer(&mut self, tell: impl FnOnce() -> T) -> bool {
        // As often as the bell rang meanwhile: it does not block, and there are never 64 questions at a time.
        let open = !matches!(self.bell.read(&mut [0; 64]), Ok(0));
        // All that are there before they are answered: who asks after that is to hear of later.
        let waiting: Vec<_> = self.questions.try_iter().collect();
        if !waiting.is_empty() {
            let told = tell();
            for question in waiting {
                // Who has waited too long is gone.
                let _ = question.send(told.clone());
            }
        }
        open
    }
}

/// The server's side.
struct Asker<T> {
    bell: UnixStream,
    questions: mpsc::Sender<oneshot::Sender<T>>,
    last: RefCell<Option<T>>,
}

impl<T: Clone> Asker<T> {
    async fn ask(&self) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        self.questions.send(sender).ok()?;
        // A bell that cannot ring any louder is heard anyway.
        let _ = (&self.bell).write(&[1]);
        if let Ok(Ok(told)) = tokio::time::timeout(ANSWER_TIME_MAX, receiver).await {
            self.last.replace(Some(told));
        }
        self.last.borrow().clone()
    }
}

/// Starts a thread that serves `/metrics` on `listener`: `render` makes the page of what the driver tells.
///
/// The thread ends with the process.
pub fn open_desk<T: Clone + Send + 'static>(
    listener: TcpListener,
    render: fn(&T) -> Page,
) -> io::Result<Desk<T>> {
    let (near, far) = UnixStream::pair()?;
    near.set_nonblocking(true)?;
    far.set_nonblocking(true)?;
    listener.set_nonblocking(true)?;
    let (sender, questions) = mpsc::channel();
    let (started, outcome) = mpsc::channel();
    std::thread::Builder::new().name("metrics".into()).spawn(move || {
        let runtime = match Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) {
            Ok(runtime) => runtime,
            Err(error) => return drop(started.send(Err(error))),
        };
        let asker = Rc::new(Asker { bell: far, questions: sender, last: RefCell::new(None) });
        runtime.block_on(async {
            let listener = match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => listener,
                Err(error) => return drop(started.send(Err(error))),
            };
            let _ = started.send(Ok(()));
            let gather = move || {
                let asker = asker.clone();
                async move { asker.ask().await.map(|told| render(&told)).ok_or(NoAnswer) }
            };
            serve(listener, gather).await;
        });
    })?;
    // A thread that ended without a word has panicked.
    outcome.recv().unwrap_or_else(|_| Err(io::Error::other("the thread that serves metrics has ended")))?;
    Ok(Desk { bell: near, questions })
}
