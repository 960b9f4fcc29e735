//! The loop around the server's machine: its sockets, and the connections to the agents.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Stdin};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags};
use weft_bundle::config::managers::{IbsimPart, Listen};
use weft_bundle::failure::Failure;
use weft_control::EventKind;
use weft_control::event::LabEvent;
use weft_ibsim::{
    Address, CONTROL_BYTES, Connect, DATA_BYTES_MAX, Data, Form, Output, Role, SLOTS, Server, ServerOptions,
};
use weft_process::{Desk, EventLog, poll_for};
use weft_umad::{Client, ClientError, ServerMessage};
use weft_wire::Registration;

use crate::ibsim::figures::Figures;
use crate::ibsim::nodes::{NodePort, Nodes};

/// How long an agent has to answer an attachment. No one else is served meanwhile.
const ATTACH_PATIENCE: Duration = Duration::from_secs(1);

/// How often the server looks whether its programs are still there.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// MADs that wait for a program that does not read; one more and the oldest is dropped.
const WAITING_MAX: usize = 4096;

/// Datagrams read from one socket before the others have their turn.
const READS_MAX: usize = 64;

/// One of the ten places for programs.
#[derive(Debug, Default)]
struct Slot {
    /// Gone only where no one could bind it.
    data: Option<weft_ibsim::Socket>,
    waiting: VecDeque<(Data, Form)>,
    place: Option<NodePort>,
    /// Sends, and takes answers.
    client: Option<Client>,
    /// Takes requests of others, when the program wants any.
    registered: Option<Client>,
}

/// The server with its sockets.
#[derive(Debug)]
pub(crate) struct Driver {
    listen: Listen,
    server: Server,
    nodes: Nodes,
    control: weft_ibsim::Socket,
    slots: Vec<Slot>,
    events: EventLog,
    probe_at: Instant,
    dropped: u64,
}

/// What a descriptor in the list belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Desk,
    Starter,
    Control,
    Data(usize),
    Client(usize),
    Registered(usize),
}

impl Driver {
    /// Binds all sockets.
    pub(crate) fn new(part: &IbsimPart, nodes: Nodes, events: EventLog) -> anyhow::Result<Self> {
        let name = match &part.listen {
            Listen::Socket(name) => name.clone(),
            Listen::Udp(_) => String::new(),
        };
        let timeout = Duration::from_millis(part.timeout_ms);
        let server = Server::new(&name, ServerOptions { timeout, retries: part.retries });
        let listen = part.listen.clone();
        let control = bind(&control_address(&listen), weft_ibsim::Socket::bind_knowing_users)?;
        let mut slots: Vec<Slot> = Vec::new();
        for at in 0..SLOTS {
            slots.push(Slot {
                data: Some(bind(&data_address(&listen, at), weft_ibsim::Socket::bind)?),
                ..Slot::default()
            });
        }
        let probe_at = Instant::now();
        Ok(Self { listen, server, nodes, control, slots, events, probe_at, dropped: 0 })
    }

    /// Serves until it is asked to stop, or until the starter that it is bound to is gone.
    pub(crate) fn run(&mut self, desk: &mut Desk<Figures>, mut starter: Option<Stdin>) -> anyhow::Result<()> {
        tracing::info!(listen = %self.listen, "serving");
        loop {
            self.drain();
            for source in self.wait(desk, starter.as_ref())? {
                match source {
                    Source::Desk if desk.attend(|| self.figures())? => {}
                    Source::Desk => {
                        let counts = self.server.counts();
                        let (connected, died) = (counts.connected, counts.died);
                        tracing::info!(connected, died, dropped = self.dropped, "stopping");
                        return Ok(());
                    }
                    Source::Starter => {
                        // The line carries no data: it ends when the last holder of its other end does.
                        let read = starter.as_mut().map(|line| line.read(&mut [0; 256]));
                        if !matches!(read, Some(Ok(1..))) {
                            return Ok(());
                        }
                    }
                    Source::Control => self.read_control(),
                    Source::Data(at) => self.read_data(at),
                    Source::Client(at) | Source::Registered(at) => self.read_agent(at, source),
                }
                self.drain();
            }
            let now = Instant::now();
            if self.probe_at <= now {
                self.probe();
            }
            self.server.handle_timeout(now);
        }
    }

    fn figures(&self) -> Figures {
        let programs = self.slots.iter().filter(|slot| slot.client.is_some()).count() as u64;
        Figures { counts: self.server.counts(), programs, dropped: self.dropped }
    }

    fn publish(&mut self, event: LabEvent) {
        self.events.publish(EventKind::Lab(event));
    }

    fn wait(&self, desk: &Desk<Figures>, starter: Option<&Stdin>) -> anyhow::Result<Vec<Source>> {
        let now = Instant::now();
        let occupied = self.slots.iter().any(|slot| slot.client.is_some());
        let probe = occupied.then_some(self.probe_at);
        let due = self.server.poll_timeout().into_iter().chain(probe).min();
        let mut fds: Vec<(Source, BorrowedFd<'_>, PollFlags)> = vec![
            (Source::Desk, desk.as_fd(), PollFlags::IN),
            (Source::Control, self.control.as_fd(), PollFlags::IN),
        ];
        fds.extend(starter.map(|line| (Source::Starter, line.as_fd(), PollFlags::IN)));
        for (at, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.client.is_some()) {
            let out = if slot.waiting.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            fds.extend(slot.data.iter().map(|data| (Source::Data(at), data.as_fd(), PollFlags::IN | out)));
            fds.extend(slot.client.iter().map(|c| (Source::Client(at), c.as_fd(), PollFlags::IN)));
            fds.extend(slot.registered.iter().map(|c| (Source::Registered(at), c.as_fd(), PollFlags::IN)));
        }
        let mut polled: Vec<PollFd<'_>> = fds.iter().map(|(_, fd, flags)| PollFd::new(fd, *flags)).collect();
        poll_for(&mut polled, due.map(|due| due.saturating_duration_since(now)))?;
        let ready = fds.iter().zip(&polled).filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|((source, ..), _)| *source).collect())
    }

    fn read_control(&mut self) {
        for _ in 0..READS_MAX {
            let mut bytes = [0; CONTROL_BYTES + 1];
            match self.control.recv_from(&mut bytes) {
                Ok((count, from)) => {
                    let message = bytes.get(..count).unwrap_or_default();
                    if weft_ibsim::is_connect(message) {
                        // Whoever has died must not keep a slot from who comes now.
                        self.probe();
                        self.drain();
                    }
                    if let Err(error) = self.server.control(Instant::now(), &from, message) {
                        tracing::warn!(%from, %error, "not a control message");
                    }
                    self.drain();
                }
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    tracing::warn!("a control message of another user, or of nobody, is ignored");
                }
                Err(_) => return,
            }
        }
    }

    fn read_data(&mut self, at: usize) {
        self.flush_data(at);
        for _ in 0..READS_MAX {
            let mut bytes = [0; DATA_BYTES_MAX];
            let Some(data) = self.slots.get(at).and_then(|slot| slot.data.as_ref()) else { return };
            match data.recv(&mut bytes) {
                Ok(count) => {
                    let message = bytes.get(..count).unwrap_or_default();
                    if let Err(error) = self.server.data(Instant::now(), at as u8, message) {
                        tracing::warn!(slot = at, %error, "not a data message");
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // What was sent to the program came back: it is gone.
                Err(_) => return self.server.gone(at as u8),
            }
        }
    }

    fn read_agent(&mut self, at: usize, source: Source) {
        let Some(slot) = self.slots.get_mut(at) else { return };
        let client = match source {
            Source::Registered(_) => &mut slot.registered,
            _ => &mut slot.client,
        };
        let Some(client) = client else { return };
        if let Err(error) = read(client, |mad| self.server.received(at as u8, &mad)) {
            tracing::warn!(slot = at, %error, "the agent of a program's node is gone");
            self.server.gone(at as u8);
        }
    }

    /// Gives back the slots of programs that are gone.
    fn probe(&mut self) {
        self.probe_at = Instant::now() + PROBE_INTERVAL;
        let gone = |(at, peer): (u8, Option<&Address>)| peer.filter(|peer| !peer.is_taken()).map(|_| at);
        let gone: Vec<u8> = self.server.peers().filter_map(gone).collect();
        for at in gone {
            tracing::info!(slot = at, "the program has died");
            self.publish(LabEvent::ProgramDied { slot: at.into() });
            self.server.gone(at);
        }
    }

    /// Does all that the machine wants, and writes to the agents what was gathered for them.
    fn drain(&mut self) {
        loop {
            while let Some(output) = self.server.poll_output() {
                self.carry_out(output);
            }
            let mut clients = self.slots.iter_mut().enumerate();
            let failed = clients.find_map(|(at, slot)| Some((at, slot.client.as_mut()?.flush().err()?)));
            let Some((at, error)) = failed else { return };
            tracing::warn!(slot = at, %error, "the agent of a program's node is gone");
            self.server.gone(at as u8);
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Answer { to, control } => {
                if let Err(error) = self.control.send_to(&control.encode(), &to) {
                    tracing::debug!(%to, %error, "a control answer finds nobody");
                }
            }
            Output::Attach { slot, connect, peer } => self.attach(slot, &connect, &peer),
            Output::Register { slot, role } => self.register(slot, role),
            Output::Send { slot, mad } => {
                let client = self.slots.get_mut(usize::from(slot)).and_then(|slot| slot.client.as_mut());
                if client.is_some_and(|client| client.send(&mad).is_err()) {
                    self.server.gone(slot);
                }
            }
            Output::Deliver { slot, data, form } => self.deliver(usize::from(slot), data, form),
            Output::Detach { slot } => self.detach(usize::from(slot)),
        }
    }

    fn attach(&mut self, slot: u8, connect: &Connect, peer: &Address) {
        let attached = self.try_attach(usize::from(slot), connect, peer);
        let to = match attached {
            Ok(place) => {
                let (id, port) = (place.id.clone(), place.port);
                tracing::info!(slot, node = %id, port = port.0, "attached");
                let (slot, node) = (u32::from(slot), id.clone());
                self.publish(LabEvent::ProgramAttached { slot, node, pid: connect.id });
                Some((id, port))
            }
            Err(error) => {
                tracing::warn!(node = %connect.node, error = format!("{error:#}"), "cannot attach a program");
                None
            }
        };
        self.server.attached(Instant::now(), slot, to);
    }

    fn try_attach(&mut self, at: usize, connect: &Connect, peer: &Address) -> anyhow::Result<NodePort> {
        let place = self.nodes.find(&connect.node, connect.may_be_cut())?;
        let client = client(&place, Vec::new())?;
        let slot = self.slots.get_mut(at).context("no such slot")?;
        let data = slot.data.as_ref().context("the slot has no socket")?;
        data.connect(peer).with_context(|| format!("cannot reach the program at {peer}"))?;
        (slot.client, slot.place) = (Some(client), Some(place.clone()));
        Ok(place)
    }

    fn register(&mut self, at: u8, role: Option<Role>) {
        let Some(slot) = self.slots.get_mut(usize::from(at)) else { return };
        slot.registered = None;
        let mut done = true;
        if let (Some(role), Some(place)) = (role, &slot.place) {
            match client(place, role.registrations()) {
                Ok(client) => slot.registered = Some(client),
                Err(error) => {
                    tracing::warn!(slot = at, %error, "cannot register a program");
                    done = false;
                }
            }
        }
        self.server.registered(at, role, done);
    }

    fn deliver(&mut self, at: usize, data: Data, form: Form) {
        let Some(slot) = self.slots.get_mut(at) else { return };
        if slot.waiting.len() >= WAITING_MAX {
            slot.waiting.pop_front();
            self.dropped += 1;
        }
        slot.waiting.push_back((data, form));
        self.flush_data(at);
    }

    /// Sends to a program what it takes.
    fn flush_data(&mut self, at: usize) {
        let Some(slot) = self.slots.get_mut(at) else { return };
        let Some(socket) = &slot.data else { return };
        while let Some((data, form)) = slot.waiting.front() {
            match socket.send(&data.encode(*form)[..form.size()]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.server.gone(at as u8),
            }
            slot.waiting.pop_front();
        }
    }

    /// Frees a slot. Its socket is made again, so that nothing of the former program is left in it.
    fn detach(&mut self, at: usize) {
        let Some(slot) = self.slots.get_mut(at) else { return };
        *slot = Slot::default();
        match bind(&data_address(&self.listen, at), weft_ibsim::Socket::bind) {
            Ok(data) => slot.data = Some(data),
            Err(error) => tracing::error!(slot = at, error = format!("{error:#}"), "the slot is lost"),
        }
    }
}

fn control_address(listen: &Listen) -> Address {
    match listen {
        Listen::Socket(name) => Address::named(name, "ctl"),
        Listen::Udp(address) => Address::Udp(*address),
    }
}

fn data_address(listen: &Listen, at: usize) -> Address {
    match listen {
        Listen::Socket(name) => Address::named(name, &format!("out{at}")),
        Listen::Udp(address) => {
            Address::Udp(SocketAddr::new(address.ip(), address.port().wrapping_add(at as u16 + 1)))
        }
    }
}

fn bind(
    address: &Address,
    bind: fn(&Address) -> std::io::Result<weft_ibsim::Socket>,
) -> anyhow::Result<weft_ibsim::Socket> {
    bind(address).map_err(|error| {
        let failure = Failure::new(format!("cannot bind the socket {address}: {error}"));
        match error.kind() {
            ErrorKind::AddrInUse => failure.hint("another ibsim, or server for its programs, has that name"),
            _ => failure.into(),
        }
    })
}

fn client(place: &NodePort, registrations: Vec<Registration>) -> Result<Client, ClientError> {
    let mut client = Client::connect(&place.socket)?;
    client.attach(place.node, place.port, registrations, ATTACH_PATIENCE)?;
    Ok(client)
}

/// Takes everything that one read brings.
fn read(client: &mut Client, mut take: impl FnMut(weft_wire::AddressedMad)) -> Result<(), ClientError> {
    client.read_ready()?;
    while let Some(message) = client.buffered()? {
        match message {
            ServerMessage::Receive(mad) => take(mad),
            ServerMessage::Refused { reason } => return Err(ClientError::Refused { reason }),
            _ => {}
        }
    }
    Ok(())
}
