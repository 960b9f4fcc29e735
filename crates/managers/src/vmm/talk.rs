//! One connection to an agent: the machine's commands as requests of the control protocol, and what comes back.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use weft_control::agent::PortEnd;
use weft_control::event::AgentEvent;
use weft_control::vm::{IMAGE_PART_BYTES_MAX, ImagePart, Slot as Told, SlotState, VmOrder, VmStep};
use weft_control::{
    Answer, Error, EventFilter, EventKind, HexBytes, HexGuid, Incarnation, LineDecoder, Page,
    REPLY_BYTES_MAX, ReplyBody, ReplyLine, Request, RequestLine,
};
use weft_vm::{
    Act, Command, Deed, HostName, HostPart, HostReport, IMAGE_BYTES_MAX, Image, Input, Occupant, Outcome,
    Place, Places, Refusal, Slot, SlotReport,
};
use weft_wire::Guid;

use crate::vmm::contents::{content, held, identity, spare_identity};
use crate::vmm::news::Teller;

/// An agent that answers nothing for this long is taken for stuck; the machine notices sooner.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;

/// A connection that stands.
pub(crate) struct Talk<'a> {
    stream: UnixStream,
    decoder: LineDecoder,
    next_id: u64,
    hosts: &'a [HostPart],
    teller: &'a Teller,
    places: &'a Places,
    /// The manager's name; empty where it is the first.
    manager: &'a str,
    incarnation: u64,
    /// The slots as they were reported last, by the GUIDs that they began with.
    known: BTreeMap<Guid, Told>,
    /// The highest generation that the agent has reported.
    generation: u64,
    /// How many of the next commands had come before the slots were read last: what they ask for is known.
    fresh: usize,
}

/// The slot that an order is for, and how new the order is.
#[derive(Clone, Copy)]
struct At {
    slot: Guid,
    generation: u64,
    epoch: u64,
}

/// Why a request has no answer.
enum Trouble {
    /// The agent refuses.
    Refused(Error),
    /// The connection is of no use any more.
    Broken(String),
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl<'a> Talk<'a> {
    /// Connects, and asks who the agent is.
    pub(crate) async fn begin(
        control: &Path,
        hosts: &'a [HostPart],
        teller: &'a Teller,
        manager: &'a str,
        places: &'a Places,
    ) -> Result<Self, String> {
        let stream = UnixStream::connect(control).await.map_err(|error| error.to_string())?;
        let mut talk = Self {
            stream,
            decoder: LineDecoder::new(REPLY_BYTES_MAX),
            next_id: 1,
            hosts,
            teller,
            places,
            manager,
            incarnation: 0,
            known: BTreeMap::new(),
            generation: 0,
            fresh: 0,
        };
        talk.greet().await.map_err(|trouble| match trouble {
            Trouble::Refused(error) => error.message,
            Trouble::Broken(why) => why,
        })?;
        Ok(talk)
    }

    async fn greet(&mut self) -> Result<(), Trouble> {
        let Answer::Hello(hello) = self.ask(Request::Hello).await? else { return Err(odd("hello")) };
        self.incarnation = hello.identity.incarnation.0;
        let kinds = vec!["lid-changed".to_owned()];
        self.ask(Request::Events(EventFilter { kinds, ..EventFilter::default() })).await?;
        self.read_slots().await
    }

    /// Carries out commands until the connection ends; why it did.
    pub(crate) async fn go_on(&mut self, orders: &mut mpsc::Receiver<(HostName, Command)>) -> String {
        loop {
            let ended = tokio::select! {
                order = orders.recv() => match order {
                    Some((host, command)) => self.carry_out(host, command, orders.len()).await,
                    None => return "the manager ends".to_owned(),
                },
                line = Self::read_line(&mut self.stream, &mut self.decoder) => line.map(|line| self.hear(line)),
            };
            if let Err(Trouble::Broken(why)) = ended {
                return why;
            }
        }
    }

    /// Carries out a command, and tells what came of it. `waiting` more have come.
    async fn carry_out(&mut self, host: HostName, command: Command, waiting: usize) -> Result<(), Trouble> {
        let Command { number, generation, act } = command;
        // A deed changes slots.
        let is_known = self.fresh > 0 && matches!(act, Act::Inspect);
        self.fresh = if is_known { self.fresh - 1 } else { 0 };
        let done = match act {
            Act::Inspect => self.inspect(&host, generation, (!is_known).then_some(waiting)).await,
            Act::Slot { incarnation, .. } if incarnation != self.incarnation => {
                Ok(Outcome::Refused(Refusal::Incarnation(self.incarnation)))
            }
            Act::Slot { vf, epoch, deed, .. } => {
                let slot = Slot { host: host.clone(), vf };
                match self.places.part(&slot).map(|part| part.guid) {
                    Some(slot) => self.deed(At { slot, generation, epoch }, deed).await,
                    None => Ok(Outcome::Refused(Refusal::Words(format!("there is no {slot}")))),
                }
            }
        };
        let outcome = match done {
            Ok(outcome) => outcome,
            Err(Trouble::Refused(error)) => self.refusal(generation, error).await?,
            Err(broken) => return Err(broken),
        };
        self.teller.input(Input::Answer { host, number, outcome });
        Ok(())
    }

    /// Why the agent refuses, as the machine has to know it.
    async fn refusal(&mut self, generation: u64, error: Error) -> Result<Outcome, Trouble> {
        self.read_slots().await?;
        Ok(Outcome::Refused(match self.generation > generation {
            true => Refusal::Generation(self.generation),
            // A later epoch of the slot is in the report that the machine asks for now.
            false => Refusal::Words(error.message),
        }))
    }

    /// One reading has all hosts of an agent, so it does for those that are asked for while it is made.
    async fn inspect(
        &mut self,
        host: &HostName,
        generation: u64,
        waiting: Option<usize>,
    ) -> Result<Outcome, Trouble> {
        if generation > 0 {
            let manager = self.manager.to_owned();
            self.ask(Request::VmGeneration { generation, manager }).await?;
        }
        if let Some(waiting) = waiting {
            self.read_slots().await?;
            self.fresh = waiting;
        }
        let Some(part) = self.hosts.iter().find(|part| part.name == *host) else {
            return Ok(Outcome::Refused(Refusal::Words(format!("`{host}` is another agent's"))));
        };
        let slots = part.slots.iter().zip(1..).filter_map(|(slot, vf)| {
            let told = self.known.get(&slot.guid)?;
            Some(SlotReport {
                vf,
                configured: slot.configured(Some(&held(told))),
                epoch: told.epoch,
                content: content(told),
            })
        });
        Ok(Outcome::Report(Box::new(HostReport {
            incarnation: self.incarnation,
            generation: self.generation,
            adapter: part.adapter.clone(),
            slots: slots.collect(),
        })))
    }

    async fn read_slots(&mut self) -> Result<(), Trouble> {
        let mut page = Page::default();
        loop {
            let Answer::Slots { generation, others, slots, more } = self.ask(Request::Slots(page)).await?
            else {
                return Err(odd("slots"));
            };
            self.generation = match self.manager {
                "" => generation,
                other => others.get(other).copied().unwrap_or(0),
            };
            page.after = slots.last().map(|slot| PortEnd::of_node(slot.slot));
            let is_last = !more || slots.is_empty();
            self.known.extend(slots.into_iter().map(|slot| (slot.slot.0, slot)));
            if is_last {
                return Ok(());
            }
        }
    }

    /// Does something with a slot.
    async fn deed(&mut self, at: At, deed: Deed) -> Result<Outcome, Trouble> {
        let places = self.places;
        let (vm, step) = match deed {
            Deed::Create(occupant) => {
                (occupant.vm.to_string(), VmStep::Boot { identity: identity(&occupant, places) })
            }
            Deed::Reserve(vm) => (vm.to_string(), VmStep::Reserve),
            Deed::Freeze(vm) => (vm.to_string(), VmStep::Freeze),
            Deed::Export { vm, cold } => return self.export(at, vm.to_string(), cold).await,
            Deed::Import { occupant, from_epoch, image } => {
                return self.import(at, &occupant, from_epoch, &image).await;
            }
            Deed::Activate(vm) => {
                let is_frozen = self.known.get(&at.slot).is_some_and(|told| told.state == SlotState::Frozen);
                (vm.to_string(), if is_frozen { VmStep::Resume } else { VmStep::Activate })
            }
            Deed::Clear(port) => {
                let leave = port.map(|port| spare_identity(&port, places));
                (String::new(), VmStep::Unplug { leave })
            }
        };
        let (told, _) = self.order(at, vm, step).await?;
        Ok(Outcome::Done(content(&told)))
    }

    /// Gives an order; what the slot is after it, and the part of an image.
    async fn order(
        &mut self,
        At { slot, generation, epoch }: At,
        vm: String,
        step: VmStep,
    ) -> Result<(Told, Option<ImagePart>), Trouble> {
        let (incarnation, slot) = (Incarnation(self.incarnation), HexGuid(slot));
        let manager = self.manager.to_owned();
        let order = VmOrder { incarnation, generation, manager, slot, vm, epoch, step };
        let Answer::Vm { slot: told, image } = self.ask(Request::Vm(Box::new(order))).await? else {
            return Err(odd("vm"));
        };
        self.known.insert(told.slot.0, (*told).clone());
        Ok((*told, image))
    }

    /// Unplugs a frozen machine, and takes its image, part by part. One that is shut down has none.
    async fn export(&mut self, at: At, vm: String, cold: bool) -> Result<Outcome, Trouble> {
        let mut image: Vec<u8> = Vec::new();
        loop {
            let offset = u32::try_from(image.len()).unwrap_or(u32::MAX);
            let (_, part) = self.order(at, vm.clone(), VmStep::Export { offset }).await?;
            let Some(part) = part.filter(|_| !cold) else { break };
            let is_stuck = part.bytes.0.is_empty() && offset < part.total;
            if is_stuck || part.total as usize > IMAGE_BYTES_MAX {
                let words = format!("its image has {} bytes, and byte {offset} does not come", part.total);
                return Ok(Outcome::Refused(Refusal::Words(words)));
            }
            image.extend(part.bytes.0);
            if image.len() >= part.total as usize {
                break;
            }
        }
        Ok(Outcome::Image(Image::from(image)))
    }

    async fn import(
        &mut self,
        at: At,
        occupant: &Occupant,
        from_epoch: u64,
        image: &Image,
    ) -> Result<Outcome, Trouble> {
        let vm = occupant.vm.to_string();
        for (number, part) in image.0.chunks(IMAGE_PART_BYTES_MAX).enumerate() {
            let offset = u32::try_from(number * IMAGE_PART_BYTES_MAX).unwrap_or(u32::MAX);
            let step = VmStep::Part { offset, bytes: HexBytes(part.to_vec()) };
            self.order(at, vm.clone(), step).await?;
        }
        let image_bytes = u32::try_from(image.0.len()).unwrap_or(u32::MAX);
        let step = VmStep::Import { identity: identity(occupant, self.places), from_epoch, image_bytes };
        let (told, _) = self.order(at, vm, step).await?;
        Ok(Outcome::Done(content(&told)))
    }

    /// Asks, and waits for the answer; events that come before it are heard.
    async fn ask(&mut self, request: Request) -> Result<Answer, Trouble> {
        let id = self.next_id;
        self.next_id += 1;
        let line = RequestLine { id, request }.to_line();
        let slow = |_| Trouble::Broken(format!("no answer within {} s", PATIENCE.as_secs()));
        timeout(PATIENCE, self.stream.write_all(line.as_bytes())).await.map_err(slow)??;
        loop {
            let line = Self::read_line(&mut self.stream, &mut self.decoder);
            let reply = timeout(PATIENCE, line).await.map_err(slow)??;
            match reply.body {
                ReplyBody::Answer(answer) if reply.id == Some(id) => return Ok(*answer),
                ReplyBody::Error(error) if reply.id.is_none_or(|own| own == id) => {
                    return Err(Trouble::Refused(error));
                }
                _ => self.hear(reply),
            }
        }
    }

    /// The next line. Cancelling loses none: what was read is in the decoder.
    async fn read_line(stream: &mut UnixStream, decoder: &mut LineDecoder) -> Result<ReplyLine, Trouble> {
        let broken = |error: &dyn std::fmt::Display| Trouble::Broken(error.to_string());
        let mut piece = vec![0; PIECE];
        loop {
            if let Some(line) = decoder.next_line() {
                let line = line.map_err(|error| broken(&error))?;
                return ReplyLine::parse(&line).map_err(|error| broken(&error));
            }
            match stream.read(&mut piece).await? {
                0 => return Err(Trouble::Broken("the agent has closed the connection".to_owned())),
                count => decoder.feed(piece.get(..count).unwrap_or_default()),
            }
        }
    }

    /// Takes an event.
    fn hear(&mut self, reply: ReplyLine) {
        let ReplyBody::Event(event) = reply.body else { return };
        let EventKind::Agent(AgentEvent::LidChanged { guid, to, .. }) = event.kind else { return };
        // An agent of several hosts may have the identity in two slots: the one that it has left, and the one that it is in.
        for told in self.known.values_mut().filter(|told| told.identity.node == guid) {
            told.lid = to;
            let Some(slot) = self.places.slot(told.slot.0) else { continue };
            let place = Place { slot: slot.clone(), incarnation: self.incarnation };
            self.teller.input(Input::PortHasLid { place, port_guid: told.identity.port.0, lid: to });
        }
    }
}

fn odd(request: &str) -> Trouble {
    Trouble::Broken(format!("the answer is not one to `{request}`"))
}
