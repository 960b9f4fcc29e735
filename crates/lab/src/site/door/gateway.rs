//! A client's way into a remote laboratory: a folder with the sockets of its processes, which lead to the hub's door.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use quinn::ConnectionError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use weft_bundle::config::keys::Keys;
use weft_bundle::failure::Failure;
use weft_bundle::folder::bundle::{Bundle, store};
use weft_bundle::folder::{self, Base, LabFile, LabFolder};
use weft_bundle::identity::issue;
use weft_bundle::names::HUB;
use weft_bundle::record::LabRecord;
use weft_link::{Call, Credentials, Peer, PeerAddress, Protocol, VisitorStream, find};
use weft_managers::door::{Opening, PublicFile};
use weft_process::{Socket, bind, next_client};

use crate::site::status::pids;

/// How long the hub has to take a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause before a hub that has hung up is dialled again.
const PAUSE: Duration = Duration::from_secs(1);
/// QUIC's codes for alerts of TLS, by which a hub refuses an identity (RFC 9001, section 4.8).
const ALERTS: std::ops::Range<u64> = 0x100..0x200;
/// What a hub says of its laboratory at most.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// A laboratory behind a hub's door, as long as this lives.
#[derive(Debug)]
pub struct Gateway {
    folder: LabFolder,
    /// It tells the hub, which has places for few clients, when this one leaves.
    carrier: Carrier,
}

/// The thread that talks to the hub. When this is dropped, it says goodbye and ends.
#[derive(Debug)]
struct Carrier {
    leave: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Carrier {
    /// Ends it; an error says why there was no way any more.
    fn end(&mut self) -> anyhow::Result<()> {
        drop(self.leave.take());
        // A thread that panicked has said so.
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or(Ok(()))
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl Gateway {
    /// Opens it: the hub's address, and the file of the identity with which it is asked.
    pub fn open(base: &Base, hub: &PeerAddress, identity: &Path) -> anyhow::Result<Self> {
        let keys = identity.with_file_name("keys.json");
        let credentials = issue::credentials(&authority_of(identity), identity, None)?;
        let path = base.visit()?;
        let own = Clearing(Some(path.clone()));
        let (sender, opened) = mpsc::channel();
        let (leave, left) = oneshot::channel();
        let (address, place) = (hub.clone(), path.clone());
        copy_keys(&keys, &path)?;
        let run = move || {
            let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
            match runtime {
                Ok(runtime) => runtime.block_on(carry(
                    Way { hub: &address, credentials: &credentials },
                    &place,
                    &sender,
                    left,
                )),
                Err(error) => {
                    let _ = sender.send(Err(error.into()));
                    Ok(())
                }
            }
        };
        let thread =
            std::thread::Builder::new().name("gateway".into()).spawn(run).context("cannot start a thread")?;
        let carrier = Carrier { leave: Some(leave), thread: Some(thread) };
        let lab = opened.recv().context("the thread that talks to the hub has ended")??;
        let folder = LabFolder::of_run(&path, &lab)?.with_front(base.front().clone());
        let pids = running(&folder).with_context(|| format!("the hub at {hub} does not answer"))?;
        own.keep();
        Ok(Self { folder: folder.with_remote(pids), carrier })
    }

    /// Leaves.
    ///
    /// # Errors
    /// When the hub has refused the identity meanwhile.
    pub fn leave(mut self) -> anyhow::Result<()> {
        self.carrier.end()
    }

    /// Its folder.
    pub fn folder(&self) -> &LabFolder {
        &self.folder
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(Clearing(Some(self.folder.path().to_owned())));
    }
}

/// A folder that goes with this.
struct Clearing(Option<PathBuf>);

impl Clearing {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Clearing {
    fn drop(&mut self) {
        // What stays is cleared by the next one.
        let _ = self.0.take().map(std::fs::remove_dir_all);
    }
}

/// The numbers of processes that run, by name. Those that do not lose their sockets: whoever connects finds no process.
fn running(folder: &LabFolder) -> anyhow::Result<BTreeMap<String, i32>> {
    let pids = pids(folder)?.context("its status did not come")?;
    for name in LabRecord::load(folder)?.processes().filter(|name| !pids.contains_key(name)) {
        for socket in [folder.control(&name), folder.agent_socket(&name)] {
            folder::remove(&socket)?;
        }
    }
    Ok(pids)
}

/// The keys of management, which lie beside the identity. Without any, ports are asked that want none.
fn copy_keys(from: &Path, place: &Path) -> anyhow::Result<()> {
    let bundle = Bundle::at(place);
    bundle.make_folders()?;
    let keys = if from.exists() { Keys::load(from)? } else { Keys::of(&weft_sm::Options::default()) };
    store(&bundle.keys(), &keys)
}

/// The authority's certificate lies beside the identity, or beside the folder of identities as in a bundle.
fn authority_of(identity: &Path) -> Bundle {
    let beside = Bundle::at(identity.parent().unwrap_or(Path::new("")));
    if beside.authority().exists() { beside } else { Bundle::at(&beside.path().join("..")) }
}

/// The sockets of a laboratory's processes, and what each is the way to.
type Sockets = Vec<(Socket, Opening)>;

/// The hub, and what a client proves itself to it with.
#[derive(Clone, Copy)]
struct Way<'a> {
    hub: &'a PeerAddress,
    credentials: &'a Credentials,
}

/// Opens the way, says that it is open, and carries conversations until the client has left. While a hub does not answer there are no
/// sockets, as where a process has ended; one that refuses the identity ends the way, and the folder goes.
async fn carry(
    way: Way<'_>,
    place: &Path,
    opened: &mpsc::Sender<anyhow::Result<String>>,
    mut left: oneshot::Receiver<()>,
) -> anyhow::Result<()> {
    let (mut call, mut sockets) = match prepared(way, place).await {
        Ok((call, lab, sockets)) => {
            // Whoever opens the gateway waits.
            let _ = opened.send(Ok(lab));
            (call, sockets)
        }
        Err(NoWay::Refused(error) | NoWay::Silent(error)) => {
            let _ = opened.send(Err(error));
            return Ok(());
        }
    };
    loop {
        let shared = Rc::new(call);
        let mut listeners = JoinSet::new();
        for (socket, opening) in sockets {
            listeners.spawn_local(listen(shared.clone(), socket, opening));
        }
        tokio::select! {
            _ = shared.closed() => {}
            // Nothing is ever sent: the sender is dropped.
            _ = &mut left => {
                shared.end().await;
                return Ok(());
            }
        }
        // Their sockets are gone before there are others of their names.
        listeners.shutdown().await;
        (call, sockets) = tokio::select! {
            again = again(way, place) => match again {
                Ok(again) => again,
                Err(refused) => {
                    // Followers of the laboratory see that it is out of reach.
                    drop(Clearing(Some(place.to_owned())));
                    return Err(refused);
                }
            },
            _ = &mut left => return Ok(()),
        };
    }
}

/// Why there is no way.
enum NoWay {
    /// The hub does not take the identity.
    Refused(anyhow::Error),
    /// It does not answer, or something is wrong with its answer.
    Silent(anyhow::Error),
}

/// Tries until a hub answers, or refuses.
async fn again(way: Way<'_>, place: &Path) -> anyhow::Result<(Call, Sockets)> {
    loop {
        sleep(PAUSE).await;
        match prepared(way, place).await {
            Ok((call, _, sockets)) => return Ok((call, sockets)),
            Err(NoWay::Refused(error)) => return Err(error),
            Err(NoWay::Silent(_)) => {}
        }
    }
}

async fn prepared(way: Way<'_>, place: &Path) -> Result<(Call, String, Sockets), NoWay> {
    let Way { hub, credentials } = way;
    let call = reach(hub, credentials).await.map_err(NoWay::Silent)?;
    let prepared = prepare(&call, place).await;
    // A hub that sends a client away says why.
    let (lab, sockets) = prepared.map_err(|error| match call.end_reason() {
        Some(reason) => {
            let why = Failure::new(format!("the hub at {hub} has hung up: {reason}"))
                .hint("the identity must be an operator's or a viewer's");
            if is_refusal(&reason) { NoWay::Refused(why) } else { NoWay::Silent(why) }
        }
        None => NoWay::Silent(error),
    })?;
    Ok((call, lab, sockets))
}

/// Whether a hub has ended a connection since it does not believe the identity.
fn is_refusal(reason: &ConnectionError) -> bool {
    matches!(reason, ConnectionError::ConnectionClosed(close) if ALERTS.contains(&u64::from(close.error_code)))
}

async fn reach(hub: &PeerAddress, credentials: &Credentials) -> anyhow::Result<Call> {
    let dialled = async {
        let address = find(hub).await?;
        Call::place(address, &Peer::Role(HUB.to_owned()), credentials, Protocol::Relay).await
    };
    let reached = timeout(PATIENCE, dialled).await;
    let failed = |why: String| {
        Failure::new(format!("cannot talk to a hub at {hub}: {why}"))
            .hint("is its door open there, and is the identity one of the same laboratory?")
    };
    match reached {
        Err(_) => Err(failed(format!("no answer within {} s", PATIENCE.as_secs()))),
        Ok(Err(error)) => Err(failed(format!("{:#}", anyhow::Error::from(error)))),
        Ok(Ok(call)) => Ok(call),
    }
}

/// Copies one of the bundle's files from the hub.
async fn fetch(call: &Call, file: PublicFile, path: &Path) -> anyhow::Result<()> {
    let mut stream = open(call, &Opening::File(file)).await?;
    let mut content = Vec::new();
    timeout(PATIENCE, (&mut stream).take(FILE_BYTES_MAX).read_to_end(&mut content)).await??;
    if content.is_empty() {
        return Err(Failure::new("the hub does not tell what its laboratory consists of")
            .hint("the identity must be an operator's or a viewer's; the hub's log tells more"));
    }
    folder::write(path, &content)
}

/// Makes the folder: what verbs read of the bundle, and a socket for each process.
async fn prepare(call: &Call, place: &Path) -> anyhow::Result<(String, Sockets)> {
    let bundle = Bundle::at(place);
    fetch(call, PublicFile::Record, &bundle.record()).await?;
    fetch(call, PublicFile::Topology, &bundle.topology()).await?;
    let record = LabRecord::read(&bundle.record())?;
    for manager in &record.vmms {
        let hosts = bundle.manager(&manager.name);
        folder::private_folder(hosts.parent().unwrap_or(place))?;
        fetch(call, PublicFile::VmHosts(manager.name.clone()), &hosts).await?;
    }
    let lab = LabFolder::of_run(place, &record.lab)?;
    lab.prepare_for(HUB)?;
    folder::write(&lab.place(LabFile::DownLock), b"")?;
    let mut sockets = Vec::new();
    for process in record.processes().chain([HUB.to_owned()]) {
        sockets.push((bind(&lab.control(&process))?, Opening::Control(process)));
    }
    for agent in &record.agents {
        sockets.push((bind(&lab.agent_socket(&agent.name))?, Opening::Mad(agent.name.clone())));
    }
    Ok((record.lab, sockets))
}

async fn open(call: &Call, opening: &Opening) -> anyhow::Result<VisitorStream> {
    let mut stream = call.stream().await?;
    stream.write_all(&opening.to_line()).await?;
    Ok(stream)
}

/// Carries what is said at one socket.
async fn listen(call: Rc<Call>, socket: Socket, opening: Opening) {
    let mut conversations = JoinSet::new();
    loop {
        let near = next_client(|| socket.accept(), &mut conversations).await;
        conversations.spawn_local(converse(call.clone(), near, opening.clone()));
    }
}

/// More conversations than the hub takes from one client wait for the end of others.
async fn converse(call: Rc<Call>, mut near: UnixStream, opening: Opening) {
    if let Ok(mut far) = open(&call, &opening).await {
        // Both ends see that it ends.
        let _ = copy_bidirectional(&mut near, &mut far).await;
    }
}
