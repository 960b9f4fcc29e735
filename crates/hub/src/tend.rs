//! One task for each process that has a socket: connects, listens, and sees to what it left when it is gone.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use weft_control::{LineDecoder, REPLY_BYTES_MAX};
use weft_process::utc_now;

use crate::Trace;
use crate::heard::{ask_revoked, begin, brief_greeting, full_events, greeting, revoke};
use crate::shared::{Said, Shared, Talk};

/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;
/// How long a process whose socket is dead may take to let its lock go; the looks in between.
const END_PATIENCE: Duration = Duration::from_secs(5);
const END_LOOKS: std::ops::Range<Duration> = Duration::from_millis(1)..Duration::from_millis(100);
/// A conversation that was no longer is followed by a pause, doubled each time.
const SHORT: Duration = Duration::from_secs(1);
const PAUSES: std::ops::Range<Duration> = Duration::from_millis(20)..Duration::from_secs(5);

/// What is for a process's task.
#[derive(Default)]
struct Tended {
    /// The process's socket has appeared again meanwhile.
    again: bool,
    /// Rings when there may be something to tell the process.
    bell: Rc<Notify>,
}

/// All tasks.
pub(crate) struct Tender {
    shared: Arc<Shared>,
    folder: PathBuf,
    own_name: String,
    /// The processes that have a task.
    tended: RefCell<BTreeMap<String, Tended>>,
    /// Where all tasks read: one piece is enough, because no task waits while it is in use.
    piece: RefCell<Vec<u8>>,
}

impl Tender {
    pub(crate) fn new(shared: Arc<Shared>, folder: PathBuf, own_name: String) -> Rc<Self> {
        let (tended, piece) = (RefCell::default(), RefCell::new(vec![0; PIECE]));
        Rc::new(Self { shared, folder, own_name, tended, piece })
    }

    /// A file has appeared in the folder.
    pub(crate) fn appeared(self: &Rc<Self>, name: &str) {
        if name.starts_with('.') || name == self.own_name {
            return;
        }
        if let Some(tended) = self.tended.borrow_mut().get_mut(name) {
            tended.again = true;
            return;
        }
        if !self.shared.state().roster.admit(name, utc_now()) {
            return;
        }
        let tended = Tended::default();
        let bell = tended.bell.clone();
        self.tended.borrow_mut().insert(name.to_owned(), tended);
        let (tender, name) = (self.clone(), name.to_owned());
        tokio::task::spawn_local(async move { tender.tend(&name, &bell).await });
    }

    /// Looks at all that is in the folder.
    pub(crate) fn scan(self: &Rc<Self>) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.folder)? {
            if let Some(name) = entry?.file_name().to_str() {
                self.appeared(name);
            }
        }
        Ok(())
    }

    /// Whether a process has a task.
    pub(crate) fn is_tended(&self, name: &str) -> bool {
        self.tended.borrow().contains_key(name)
    }

    /// There may be something to tell a process.
    pub(crate) fn ring(&self, name: &str) {
        if let Some(tended) = self.tended.borrow().get(name) {
            tended.bell.notify_one();
        }
    }

    /// There may be something to tell all processes.
    pub(crate) fn ring_all(&self) {
        self.tended.borrow().values().for_each(|tended| tended.bell.notify_one());
    }

    async fn tend(&self, name: &str, bell: &Notify) {
        let (path, source) = (self.folder.join(name), Arc::from(name));
        let mut pause = Duration::ZERO;
        let mut end = End::default();
        loop {
            // What appears from here on is looked at again, should this attempt fail.
            self.take_again(name);
            match UnixStream::connect(&path).await {
                Ok(stream) => {
                    end = End::default();
                    tokio::time::sleep(pause).await;
                    let began = Instant::now();
                    // Why it broke does not matter: the next connection tells whether the process lives.
                    let _ = self.converse(name, &source, stream, bell).await;
                    pause = match began.elapsed() < SHORT {
                        true => (pause * 2).clamp(PAUSES.start, PAUSES.end),
                        false => Duration::ZERO,
                    };
                }
                Err(error) if !is_dead(&error) => {
                    // As without descriptors: the reason may pass.
                    self.shared.state().roster.problem(name, &format!("cannot connect: {error}"));
                    self.shared.start_fails(name, &format!("cannot connect to it: {error}"));
                    tokio::time::sleep(PAUSES.end).await;
                }
                Err(_) => {
                    let trace = self.shared.lab.trace(name);
                    let is_over = trace != Trace::Alive && !self.shared.is_unreaped(name);
                    match end.look() {
                        Some(look) if !is_over => tokio::time::sleep(look).await,
                        // Between here and the end nothing is awaited: what appears later gets a task of its own.
                        _ if self.take_again(name) => {}
                        _ => {
                            self.shared.gone(name, trace);
                            self.tended.borrow_mut().remove(name);
                            return;
                        }
                    }
                }
            }
        }
    }

    fn take_again(&self, name: &str) -> bool {
        self.tended.borrow_mut().get_mut(name).is_some_and(|tended| std::mem::take(&mut tended.again))
    }

    /// Listens to a process until it hangs up.
    async fn converse(
        &self,
        name: &str,
        source: &Arc<str>,
        mut stream: UnixStream,
        bell: &Notify,
    ) -> io::Result<()> {
        self.shared.state().roster.silent(name, utc_now());
        let (mut talk, mut told) = (Talk::begin(source.clone()), Told::default());
        stream.write_all(self.due_lines(name, &mut told).as_bytes()).await?;
        let mut decoder = LineDecoder::new(REPLY_BYTES_MAX);
        loop {
            tokio::select! {
                readable = stream.readable() => readable?,
                () = bell.notified() => {
                    stream.write_all(self.due_lines(name, &mut told).as_bytes()).await?;
                    continue;
                }
            }
            if !self.read_piece(&stream, &mut decoder)? {
                return Ok(());
            }
            let mut again = false;
            while let Some(line) = decoder.next_line() {
                match line {
                    Ok(line) => match self.shared.hear(name, &mut talk, &line) {
                        Said::Nothing => {}
                        Said::Again => again = true,
                        Said::Revoked => self.ring_all(),
                    },
                    Err(error) => self.shared.state().roster.problem(name, &error.to_string()),
                }
            }
            if again && self.shared.state().start.may_begin(name) {
                stream.write_all(begin().as_bytes()).await?;
            }
        }
    }

    /// Reads what is there; false at the end.
    fn read_piece(&self, stream: &UnixStream, decoder: &mut LineDecoder) -> io::Result<bool> {
        let mut piece = self.piece.borrow_mut();
        match stream.try_read(&mut piece) {
            Ok(0) => return Ok(false),
            Ok(count) => decoder.feed(piece.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// The lines that are to be sent to a process now.
    fn due_lines(&self, name: &str, told: &mut Told) -> String {
        let state = self.shared.state();
        let full = !state.start.hears_little_of(name);
        let mut lines = match (told.greeting, told.full) {
            (false, _) if full => greeting(state.roster.resume(name)),
            (false, _) => brief_greeting(),
            (true, false) if full => full_events(state.roster.resume(name)),
            _ => String::new(),
        };
        if full && !told.full && self.shared.papers.can_verify() {
            // It may know of a list that this hub does not: one that has moved to another machine begins without any.
            lines += &ask_revoked();
        }
        (told.greeting, told.full) = (true, told.full || full);
        if told.revoked != state.revoked {
            told.revoked.clone_from(&state.revoked);
            lines.extend(told.revoked.as_deref().map(revoke));
        }
        if !told.begin && state.start.may_begin(name) {
            told.begin = true;
            lines += &begin();
        }
        lines
    }
}

/// What a process has been sent on a connection.
#[derive(Default)]
struct Told {
    greeting: bool,
    /// All that happens is heard.
    full: bool,
    begin: bool,
    /// The list of revoked identities that it was sent.
    revoked: Option<Arc<str>>,
}

/// The looks at a process that does not listen and still has its lock: it ends, or will listen in a moment.
#[derive(Default)]
struct End {
    began: Option<Instant>,
    look: Duration,
}

impl End {
    /// How long to wait until the next look, if one is worth while.
    fn look(&mut self) -> Option<Duration> {
        let began = self.began.get_or_insert_with(Instant::now);
        self.look = (self.look * 2).clamp(END_LOOKS.start, END_LOOKS.end);
        (began.elapsed() < END_PATIENCE).then_some(self.look)
    }
}

/// No process listens there.
fn is_dead(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, NotFound};
    matches!(error.kind(), ConnectionRefused | NotFound | ConnectionReset)
}

/// Where a process's socket is.
pub(crate) fn socket(folder: &Path, process: &str) -> PathBuf {
    folder.join(process)
}
