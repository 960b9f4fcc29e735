//! The manager's connections to agents: a thread with one task for each, which connects again whenever it has to.
//!
//! ```text
//!  Command ──▶ queue of the agent ──▶ task: lines on the control socket (talk.rs)
//!  Input   ◀── queue of all, bell ◀──
//! ```
//!
//! A queue that is full drops a command, which is counted: the machine tells it again.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc as std_mpsc;
use std::time::Duration;

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc;
use weft_bundle::folder::LabFolder;
use weft_bundle::names::VMM;
use weft_process::lock;
use weft_vm::{Command, HostName, HostPart, Input, Places};

use crate::vmm::news::{News, Teller};
use crate::vmm::talk::Talk;

/// Commands that wait for one agent.
const QUEUE_MAX: usize = 256;
/// What the thread has to tell and the manager has not taken. Further tasks wait.
const NEWS_MAX: usize = 65_536;
/// The pause after a connection that failed or ended, doubled each time.
const PAUSES: std::ops::Range<Duration> = Duration::from_millis(10)..Duration::from_secs(1);

/// The manager's side.
#[derive(Debug)]
pub(crate) struct Agents {
    bell: UnixStream,
    news: std_mpsc::Receiver<News>,
    queues: BTreeMap<HostName, mpsc::Sender<(HostName, Command)>>,
    /// Commands that found a queue full.
    pub(crate) dropped: u64,
}

impl Agents {
    /// Starts the thread, which ends with the process. Only agents that run here have locks.
    pub(crate) fn start(folder: &LabFolder, name: &str, places: &Places, are_here: bool) -> io::Result<Self> {
        let (near, far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        let (sender, receiver) = std_mpsc::sync_channel(NEWS_MAX);
        let mut by_agent: BTreeMap<String, Vec<HostPart>> = BTreeMap::new();
        for host in places.hosts() {
            by_agent.entry(host.agent.clone()).or_default().push(host.clone());
        }
        let (mut queues, mut tasks) = (BTreeMap::new(), Vec::new());
        for (agent, hosts) in by_agent {
            let (queue, orders) = mpsc::channel(QUEUE_MAX);
            queues.extend(hosts.iter().map(|host| (host.name.clone(), queue.clone())));
            let (control, lock) = (folder.control(&agent), are_here.then(|| folder.agent_lock(&agent)));
            tasks.push(Task { control, lock, hosts, orders });
        }
        let teller = Teller { bell: far, news: sender };
        let manager = if name == VMM { String::new() } else { name.to_owned() };
        let places = places.clone();
        std::thread::Builder::new()
            .name("agents".into())
            .spawn(move || run(teller, &manager, places, tasks))?;
        Ok(Self { bell: near, news: receiver, queues, dropped: 0 })
    }

    /// Tells an agent something.
    pub(crate) fn send(&mut self, host: &HostName, command: Command) {
        let queue = self.queues.get(host);
        if queue.is_none_or(|queue| queue.try_send((host.clone(), command)).is_err()) {
            self.dropped += 1;
        }
    }

    /// Takes the news that have come.
    pub(crate) fn take(&mut self) -> Vec<News> {
        // The bell does not block, and one that rings on is heard again.
        let _ = self.bell.read(&mut [0; 256]);
        self.news.try_iter().collect()
    }
}

impl AsFd for Agents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// One agent.
struct Task {
    control: PathBuf,
    /// The lock that it holds while it lives; without one a silent agent may live or have ended.
    lock: Option<PathBuf>,
    hosts: Vec<HostPart>,
    orders: mpsc::Receiver<(HostName, Command)>,
}

fn run(teller: Teller, manager: &str, places: Places, tasks: Vec<Task>) {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return tracing::error!(%error, "no connections to agents"),
    };
    let (teller, places, manager) = (Rc::new(teller), Rc::new(places), Rc::<str>::from(manager));
    runtime.block_on(async {
        let tasks: Vec<_> = tasks
            .into_iter()
            .map(|task| tokio::task::spawn_local(task.tend(teller.clone(), manager.clone(), places.clone())))
            .collect();
        for task in tasks {
            // One ends when the manager does.
            let _ = task.await;
        }
    });
}

impl Task {
    async fn tend(mut self, teller: Rc<Teller>, manager: Rc<str>, places: Rc<Places>) {
        let mut pause = PAUSES.start;
        let mut was_told = false;
        loop {
            let why = match Talk::begin(&self.control, &self.hosts, &teller, &manager, &places).await {
                Ok(mut talk) => {
                    (pause, was_told) = (PAUSES.start, false);
                    // What waits is for a connection that is no more.
                    while self.orders.try_recv().is_ok() {}
                    self.hosts.iter().for_each(|host| teller.input(Input::HostUp(host.name.clone())));
                    let why = talk.go_on(&mut self.orders).await;
                    for host in &self.hosts {
                        teller.input(Input::HostDown(host.name.clone()));
                        teller.tell(News::Away(host.name.clone(), why.clone()));
                    }
                    why
                }
                Err(why) => why,
            };
            if self.orders.is_closed() {
                return;
            }
            tracing::debug!(control = %self.control.display(), why, "no connection");
            was_told = was_told || self.tell_end(&teller);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.end);
        }
    }

    /// The kernel drops an agent's lock with its process: then all that ran there has ended.
    /// Whether that was reported; a dying process may still hold it, and is looked at again later.
    fn tell_end(&self, teller: &Teller) -> bool {
        if !self.lock.as_ref().is_some_and(|lock| matches!(lock::holder(lock), Ok(None))) {
            return false;
        }
        for host in &self.hosts {
            let (host, how) = (host.name.clone(), "no process holds its lock".to_owned());
            teller.input(Input::HostEnded { host, incarnation: None, how });
        }
        true
    }
}
