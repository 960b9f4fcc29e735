//! A process's door: from QUIC to the sockets in the folder that it runs in.

use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc;

use anyhow::Context;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::JoinSet;
use tokio::time::timeout;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::identity::papers::Papers;
use weft_bundle::names::{HUB, VMM, is_of};
use weft_control::Role;
use weft_link::{
    Credentials, Doorway, Place, Places, Protocol, Room, Seat, Serial, TurnedAway, Visitor, VisitorStream,
};
use weft_process::DoorCounts;

use crate::door::reach::{self, Far};
use crate::door::{FIRST_WORD, OPENING_BYTES_MAX, Opening, PublicFile, RELAYED_MAX, pass};

/// Clients of a role at the same time, and of these of one identity; further ones are refused.
const VISITORS_MAX: usize = 64;
const VISITORS_OF_ONE_MAX: usize = 8;
/// Of the conversations with one process those of one identity, and its conversations with all processes.
const RELAYED_OF_ONE_MAX: usize = 16;
const CONVERSATIONS_OF_ONE_MAX: usize = 512;
/// All conversations of a role.
const CONVERSATIONS_MAX: usize = 2048;

/// A door to be opened.
#[derive(Clone, Debug)]
pub struct Door {
    /// Where it listens.
    pub address: SocketAddr,
    /// What the process proves itself with.
    pub credentials: Credentials,
    /// The folder that it runs in.
    pub folder: LabFolder,
    /// Its name.
    pub name: String,
    /// Whether it passes conversations on to the laboratory's other processes.
    pub relays: bool,
    /// Clients and conversations that are not served, as metrics show them.
    pub counts: DoorCounts,
}

/// A door that is open, and what it has room for.
impl Door {
    /// The door of a process that runs in this folder. A hub's passes conversations on.
    pub fn of(address: SocketAddr, papers: &Papers, folder: &LabFolder, name: &str) -> Self {
        let (credentials, folder) = (papers.credentials().clone(), folder.clone());
        let counts = DoorCounts::default();
        Self { address, credentials, folder, name: name.to_owned(), relays: name == HUB, counts }
    }
}

struct OpenDoor {
    door: Door,
    clients: Room<Role>,
    conversations: Places<Role>,
    relayed: Places<(String, Role)>,
}

/// Places that a conversation has taken.
type Taken = (Place<Role>, Place<(String, Role)>);

impl OpenDoor {
    fn new(door: Door) -> Self {
        Self {
            door,
            clients: Room::new(VISITORS_MAX, VISITORS_OF_ONE_MAX),
            conversations: Places::new(CONVERSATIONS_MAX, CONVERSATIONS_OF_ONE_MAX),
            relayed: Places::new(RELAYED_MAX, RELAYED_OF_ONE_MAX),
        }
    }

    /// Places for a conversation with a process. The first one that is refused is logged, and every doubling.
    fn room_for(&self, process: &str, client: &Client) -> Option<Taken> {
        let Client { role, serial } = client;
        let in_all = self.conversations.take(*role, serial.as_ref());
        let with_it = self.relayed.take((process.to_owned(), *role), serial.as_ref());
        let taken = in_all.zip(with_it);
        if taken.is_none() {
            let refused = &self.door.counts.conversations_refused;
            refused.inc();
            let count = refused.get();
            if count.is_power_of_two() {
                let serial = serial.as_ref().map(ToString::to_string);
                tracing::warn!(process, %role, serial, count, "a conversation too many is refused");
            }
        }
        taken
    }

    /// Sends a client away that has no place.
    fn refuse(&self, visitor: &Visitor) {
        visitor.refuse("too many clients of this identity or role");
        let refused = &self.door.counts.refused;
        refused.inc();
        let count = refused.get();
        if count.is_power_of_two() {
            let (address, role) = (visitor.address(), visitor.role());
            let serial = visitor.serial().map(ToString::to_string);
            tracing::warn!(%address, role, serial, count, "a client too many is sent away");
        }
    }
}

/// Who a client is.
#[derive(Clone)]
struct Client {
    role: Role,
    serial: Option<Serial>,
}

/// Opens the door, and brings remote processes into the folder. Both go on in a thread of their own
/// until the process ends.
pub fn open(door: Option<Door>, far: Option<Far>) -> anyhow::Result<()> {
    let (sender, opened) = mpsc::channel();
    let run = move || {
        let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return drop(sender.send(Err(error.into()))),
        };
        runtime.block_on(async {
            let doorway = door.map(|door| doorway(&door).map(|doorway| (door, doorway))).transpose();
            let doorway = match doorway {
                Ok(doorway) => doorway,
                Err(error) => return drop(sender.send(Err(error))),
            };
            // Whoever opens the door waits.
            let _ = sender.send(Ok(()));
            if let Some(far) = far {
                reach::begin(far);
            }
            match doorway {
                Some((door, doorway)) => serve(door, doorway).await,
                None => std::future::pending().await,
            }
        });
    };
    std::thread::Builder::new().name("door".into()).spawn(run).context("cannot start a thread")?;
    opened.recv().context("the door's thread has ended")?
}

fn doorway(door: &Door) -> anyhow::Result<Doorway> {
    let protocols: &[Protocol] =
        if door.relays { &[Protocol::Control, Protocol::Relay] } else { &[Protocol::Control] };
    let counts = door.counts.clone();
    let count = move |how| match how {
        TurnedAway::Retried => counts.retried.inc(),
        TurnedAway::Ignored => counts.ignored.inc(),
    };
    Doorway::open(door.address, &door.credentials, protocols, count).map_err(|error| {
        let error = anyhow::Error::from(error);
        Failure::new(format!("cannot open a door at UDP {}: {error:#}", door.address))
            .hint("end the program that has the port, or choose another with --door")
    })
}

async fn serve(door: Door, mut doorway: Doorway) {
    let door = Rc::new(OpenDoor::new(door));
    let mut visits = JoinSet::new();
    loop {
        tokio::select! {
            visitor = doorway.next() => match visitor {
                Some(visitor) => receive(&door, visitor, &mut visits),
                None => return,
            },
            Some(_) = visits.join_next() => {}
        }
    }
}

/// Gives a client a place, or sends it away.
fn receive(door: &Rc<OpenDoor>, visitor: Visitor, visits: &mut JoinSet<()>) {
    let Some(role) = Role::of_certificate(visitor.role()) else {
        let address = visitor.address();
        tracing::warn!(%address, role = visitor.role(), "a client without a role is sent away");
        return visitor.refuse("the certificate names no role that clients have; use operator or viewer");
    };
    // It orders agents, each at the agent's own port; a hub would open all other processes to it.
    if visitor.role() == Some(VMM) {
        return visitor.refuse("a VM manager talks to agents; use an operator's identity");
    }
    let client = Client { role, serial: visitor.serial().cloned() };
    match door.clients.take(role, visitor.role(), visitor.serial()) {
        Some(seat) => drop(visits.spawn_local(attend(door.clone(), visitor, client, seat))),
        None => door.refuse(&visitor),
    }
}

/// Serves one client until it leaves. Its place is held as long.
async fn attend(open: Rc<OpenDoor>, visitor: Visitor, client: Client, _seat: Seat<Role>) {
    if visitor.protocol() == Protocol::Control {
        match timeout(FIRST_WORD, visitor.stream()).await {
            Ok(Ok(stream)) => {
                control(&open.door, stream, client.role).await;
                visitor.goodbye().await;
            }
            Ok(Err(_)) => {}
            Err(_) => visitor.refuse("no stream was opened in time"),
        }
        return;
    }
    // QUIC bounds the streams that are open at the same time.
    let mut streams = JoinSet::new();
    loop {
        tokio::select! {
            stream = visitor.stream() => match stream {
                Ok(stream) => drop(streams.spawn_local(relay(open.clone(), stream, client.clone()))),
                Err(_) => return,
            },
            Some(_) = streams.join_next() => {}
        }
    }
}

/// Passes requests to the process. If it is not there, the conversation ends.
async fn control(door: &Door, stream: VisitorStream, role: Role) {
    if let Ok(socket) = UnixStream::connect(door.folder.control(&door.name)).await {
        // Why it ends does not matter: both ends see that it does.
        let _ = pass::requests(stream, socket, role).await;
    }
}

async fn relay(open: Rc<OpenDoor>, stream: VisitorStream, client: Client) {
    let (door, role) = (&open.door, client.role);
    let mut stream = BufReader::new(stream);
    let Ok(Some(opening)) = timeout(FIRST_WORD, opening(&mut stream)).await else { return };
    match opening {
        Opening::Control(process) if is_name(&process) => {
            let Some(_place) = open.room_for(&process, &client) else { return };
            if let Ok(socket) = UnixStream::connect(door.folder.control(&process)).await {
                let _ = pass::requests(stream, socket, role).await;
            }
        }
        // A program sends what it likes, as whoever reaches the agent's own socket does.
        Opening::Mad(agent) if is_name(&agent) && role == Role::Operator => {
            let Some(_place) = open.room_for(&agent, &client) else { return };
            if let Ok(mut socket) = UnixStream::connect(door.folder.agent_socket(&agent)).await {
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut socket).await;
            }
        }
        Opening::File(file) => {
            let bundle = door.folder.bundle();
            let path = match file {
                PublicFile::Record => bundle.record(),
                PublicFile::Topology => bundle.topology(),
                PublicFile::VmHosts(name) if is_of(&name, VMM) => bundle.manager(&name),
                PublicFile::VmHosts(_) => return,
            };
            if let Ok(content) = weft_bundle::input::read(&path) {
                let _ = stream.write_all(&content).await;
                let _ = stream.shutdown().await;
            }
        }
        Opening::Control(_) | Opening::Mad(_) => {}
    }
}

/// Reads the first line, and leaves what follows.
async fn opening(stream: &mut BufReader<VisitorStream>) -> Option<Opening> {
    let mut line = Vec::new();
    stream.take(OPENING_BYTES_MAX as u64).read_until(b'\n', &mut line).await.ok()?;
    serde_json::from_slice(line.strip_suffix(b"\n")?).ok()
}

/// Names are those of files in two folders, and of nothing else.
fn is_name(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|own| own == name) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn no_name_leads_elsewhere() {
        for good in ["a0000", "sm", "sm-2", "hub"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", ".", "..", "../locks/sm", "/etc/passwd", "a/b", ".sm", "sm/"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
