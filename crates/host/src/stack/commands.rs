//! Commands to a host.

use weft_machine::Time;
use weft_wire::DataRate;

use super::Stack;
use super::mix::Mix;
use super::numbers::Geometry;
use super::paths::{Address, Capacity, Path};
use super::receiver::Receiver;
use super::sender::{LaneChange, Pace, Phase, Sender, Target};
use super::static_rate::packet_time;
use super::timers::Timer;
use crate::traffic::{Command, Destination, FlowId, FlowSpec, LearntPath, PathSource, Transport, Work};

/// Bytes of a name at most, as of ServiceName (IBA 15.2.5.14).
const NAME_BYTES_MAX: usize = 64;

impl Stack {
    /// Does what is asked, or says why it cannot be done.
    pub(super) fn obey(&mut self, now: Time, command: Command) -> Result<(), String> {
        match command {
            Command::Open(spec) => {
                let flow = spec.flow.0;
                self.open(now, &spec).map_err(|reason| format!("flow {flow} is not opened: {reason}"))
            }
            Command::Expect { flow, transport, work, message_bytes, .. } => self
                .expect(now, flow, transport, work, message_bytes)
                .map_err(|reason| format!("flow {} is not expected: {reason}", flow.0)),
            Command::Stop { flow } => self.stop(flow),
            Command::Close { flow } => self.close(flow),
            Command::LearnPaths(paths) => {
                for path in paths {
                    let LearntPath { to, dlid, service_level, p_key, rate } = path;
                    let address = Address { dlid, service_level, p_key };
                    for place in self.paths.learn(to, address, rate) {
                        self.path_changed(now, place);
                    }
                }
                Ok(())
            }
            Command::HeedRepath(heeds) => {
                self.heeds_repath = heeds;
                Ok(())
            }
        }
    }

    fn stop(&mut self, flow: FlowId) -> Result<(), String> {
        let place = self.flows.find(flow);
        match place.and_then(|place| self.flows.sender(place)) {
            Some(sender) if sender.is_reliable() => {
                sender.stop = sender.stop.min(sender.message_end().max(sender.fresh));
            }
            Some(sender) => sender.stop = sender.stop.min(sender.fresh),
            None => return Err(format!("flow {} is not stopped: it is not open here", flow.0)),
        }
        Ok(())
    }

    /// Begins a flow, or goes on with one that was stopped, is done or ended in error.
    fn open(&mut self, now: Time, spec: &FlowSpec) -> Result<(), String> {
        let geometry = Geometry::new(spec.message_bytes, spec.packet_bytes);
        check(spec, geometry, self.facts.guid)?;
        let known = self.flows.find(spec.flow).and_then(|place| self.flows.sender(place));
        if let Some(sender) = known {
            may_go_on(sender, spec, geometry)?;
        }
        let place =
            self.flows.open(spec.flow).ok_or("there are too many flows, or its number is too high")?;
        if spec.work == Work::PingPong && spec.transport == Transport::ReliableConnection {
            self.prepare_for_answers(place, spec)?;
        }
        self.dequeue(place);
        let target = self.target(spec)?;
        let retries = self.rules.retries;
        let Some(flow) = self.flows.get_mut(place) else { return Ok(()) };
        let sender = flow
            .sender
            .get_or_insert_with(|| Box::new(Sender::new(spec.flow, spec.transport, spec.work, Target::Peer)));
        if !matches!((&sender.target, &target), (Target::Mix(_), Target::Mix(_))) {
            sender.target = target;
        } else if let (Target::Mix(old), Target::Mix(new)) = (&mut sender.target, target) {
            old.go_on_as(*new);
        }
        (sender.source, sender.move_by) = (spec.paths, spec.move_by);
        sender.pace = spec.bytes_per_second.map(|rate| Pace::new(rate, now));
        sender.is_rated = sender.pace.is_some();
        (sender.stop, sender.attempts_left) = (u64::MAX, retries);
        sender.phase = Phase::Path;
        (sender.lane_change, sender.migrated) = (LaneChange::No, true);
        if !sender.is_outstanding() {
            sender.cut(geometry, spec.bytes_max);
            if spec.work == Work::PingPong {
                sender.allow_message();
            }
        }
        sender.go_back();
        self.asks_due = true;
        self.begin(now, place);
        Ok(())
    }

    /// Where the packets of a flow are to go.
    fn target(&mut self, spec: &FlowSpec) -> Result<Target, String> {
        const FULL: &str = "the cache of paths is full";
        match &spec.to {
            Destination::One(guid) => self
                .paths
                .want_for(self.options.path_cache, *guid, spec.paths)
                .map(Target::One)
                .ok_or(FULL.to_owned()),
            Destination::Named(name) => self.paths.want_name(name).map(Target::One).ok_or(FULL.to_owned()),
            Destination::Mix { hot_spot, hot_permille, others, seed } => {
                let (own, paths) = (self.facts.guid, &mut self.paths);
                let mix = Mix::new(*hot_spot, *hot_permille, others, *seed, spec.paths, own, paths);
                mix.map(|mix| Target::Mix(Box::new(mix)))
                    .ok_or_else(|| format!("there is nobody to send to, or {FULL}"))
            }
        }
    }

    /// The end of a ping-pong that begins takes the answers too.
    fn prepare_for_answers(&mut self, place: u32, spec: &FlowSpec) -> Result<(), String> {
        let Some(flow) = self.flows.get_mut(place) else { return Ok(()) };
        if flow.sender.is_none() && flow.receiver.is_some() {
            return Err("it is expected here; a connection has two ends".to_owned());
        }
        let fresh = || Receiver::new(spec.flow, spec.transport, spec.work, spec.message_bytes);
        flow.receiver.get_or_insert_with(|| Box::new(fresh()));
        Ok(())
    }

    fn expect(
        &mut self,
        now: Time,
        id: FlowId,
        transport: Transport,
        work: Work,
        message_bytes: u32,
    ) -> Result<(), String> {
        let place = self.flows.open(id).ok_or("there are too many flows, or its number is too high")?;
        let retries = self.rules.retries;
        let Some(flow) = self.flows.get_mut(place) else { return Ok(()) };
        let reliable = transport == Transport::ReliableConnection;
        let opened = flow.sender.as_deref().is_some_and(|sender| !matches!(sender.target, Target::Peer));
        if reliable && opened {
            return Err("it is open here; a connection has two ends".to_owned());
        }
        match &mut flow.receiver {
            Some(receiver) if receiver.transport != transport => {
                return Err("it is expected already, carried in another way".to_owned());
            }
            // It goes on: the numbers of what comes do.
            Some(receiver) => (receiver.work, receiver.message_bytes) = (work, message_bytes),
            None => flow.receiver = Some(Box::new(Receiver::new(id, transport, work, message_bytes))),
        }
        if reliable && work == Work::PingPong && flow.sender.is_none() {
            let mut sender = Sender::new(id, transport, work, Target::Peer);
            (sender.phase, sender.allowed, sender.attempts_left) = (Phase::Active, 0, retries);
            flow.sender = Some(Box::new(sender));
        }
        self.wake(now, place);
        Ok(())
    }

    fn close(&mut self, flow: FlowId) -> Result<(), String> {
        let Some(place) = self.flows.find(flow) else {
            return Err(format!("flow {} is not closed: there is none", flow.0));
        };
        self.dequeue(place);
        self.forget_acknowledgements(place);
        self.flows.close(flow);
        Ok(())
    }

    /// Begins to send, when there is a path.
    pub(super) fn begin(&mut self, now: Time, place: u32) {
        let Some(sender) = self.flows.sender(place).filter(|sender| sender.phase == Phase::Path) else {
            return;
        };
        let ready = match &mut sender.target {
            Target::One(path) => {
                let path = self.paths.get(*path);
                let is_held = path.is_some_and(|path| self.paths.is_held(path.to));
                let address = path.and_then(Path::fresh_address).filter(|_| !is_held);
                sender.address = address.unwrap_or(sender.address);
                sender.capacity = path.map_or_else(Capacity::default, Path::capacity);
                address.is_some()
            }
            Target::Mix(mix) => mix.resolve(&self.paths),
            Target::Peer => false,
        };
        if !ready {
            return;
        }
        sender.phase = Phase::Active;
        if sender.refuse_mtu(self.facts.mtu) {
            return;
        }
        if let Target::Mix(mix) = &mut sender.target {
            if !sender.is_rated {
                let rate = bytes_per_second(self.facts.rate, self.options.dilation, sender.geometry);
                sender.pace = rate.map(|rate| Pace::new(rate, now));
            }
            if sender.pace.is_some() {
                mix.open_loop();
            }
            let paths = &self.paths;
            mix.stop_held(|path| paths.get(path).is_some_and(|path| paths.is_held(path.to)));
        }
        if let Some(pace) = &mut sender.pace {
            pace.due = pace.due.max(now);
        }
        sender.deadline = sender.is_outstanding().then(|| now + self.rules.ack_timeout);
        super::lanes::arm_expiry(sender, place, &mut self.timers);
        self.wake(now, place);
    }

    /// A path in the cache is not what it was: its flows begin, or move.
    pub(super) fn path_changed(&mut self, now: Time, path: u32) {
        let known = self.paths.get(path);
        let (address, capacity) =
            (known.and_then(Path::address), known.map(Path::capacity).unwrap_or_default());
        for place in self.flows.all() {
            let Some(sender) = self.flows.sender(place) else { continue };
            if let (Target::Mix(mix), Some(address)) = (&mut sender.target, address)
                && mix.path_changed(path, address, capacity.rate)
            {
                self.enqueue(now, place, address.service_level);
                continue;
            }
            match &mut sender.target {
                _ if sender.phase == Phase::Path => self.begin(now, place),
                // It takes the address when it goes on.
                _ if sender.phase == Phase::Held => {}
                Target::One(own) if *own == path => {
                    let (Some(address), level) = (address, sender.address.service_level) else { continue };
                    sender.move_to(now, address);
                    let is_slower = capacity.rate.megabits() < sender.capacity.rate.megabits();
                    sender.capacity = capacity;
                    if is_slower {
                        let bytes =
                            usize::from(sender.geometry.payload(0)) + sender.transport.overhead() as usize;
                        sender.let_pass(
                            now,
                            packet_time(bytes, capacity.rate, &self.facts, self.options.dilation),
                        );
                    }
                    let is_refused = sender.phase == Phase::Active && sender.refuse_mtu(self.facts.mtu);
                    if is_refused || sender.address.service_level != level {
                        self.dequeue(place);
                    }
                    self.wake(now, place);
                }
                _ => {}
            }
        }
    }

    /// Forgets timers that no one waits for.
    pub(super) fn tidy_timers(&mut self) {
        let flows = &mut self.flows;
        self.timers.retain(|at, timer| match timer {
            Timer::Wake(place) => flows.sender(place).is_some_and(|sender| sender.wake_at == Some(at)),
            Timer::Expiry(place) => flows.sender(place).is_some_and(|sender| sender.expiry_at == Some(at)),
            Timer::Lane(_) => true,
        });
    }
}

/// Bytes of body in datagrams that a port can send per second of machine time; none when they take no time.
fn bytes_per_second(rate: DataRate, dilation: u32, geometry: Geometry) -> Option<u64> {
    let (body, packets) = (geometry.message(), u64::from(geometry.packets));
    let bytes = rate.bits_per_second() / 8 / u64::from(dilation.max(1));
    Some(bytes * body / (body + packets * Transport::UnreliableDatagram.overhead())).filter(|rate| *rate > 0)
}

/// Whether a flow can be as it is wanted.
fn check(spec: &FlowSpec, geometry: Geometry, own: weft_wire::Guid) -> Result<(), String> {
    let reliable = spec.transport == Transport::ReliableConnection;
    match &spec.to {
        Destination::One(guid) if *guid == own => Err("it goes to the port that it comes from".to_owned()),
        Destination::Named(name) if !(1..=NAME_BYTES_MAX).contains(&name.len()) => {
            Err(format!("a name has 1 to {NAME_BYTES_MAX} bytes"))
        }
        Destination::Named(_) if spec.paths == PathSource::Unasked => {
            Err("a name is looked up, and its path with it; hint: the paths of path records".to_owned())
        }
        Destination::Named(_) if !reliable => {
            Err("no datagram tells that its machine has moved; hint: a reliable connection".to_owned())
        }
        Destination::Mix { .. } if reliable => {
            Err("a reliable connection has one destination; hint: unreliable datagrams".to_owned())
        }
        Destination::Mix { hot_permille, .. } if *hot_permille > 1000 => {
            Err(format!("{hot_permille} of 1000 packets cannot go to the hot spot"))
        }
        Destination::Mix { .. } if spec.work == Work::PingPong => {
            Err("a ping-pong has one destination".to_owned())
        }
        _ if !reliable && spec.work == Work::PingPong && geometry.packets > 1 => {
            Err("a message of a ping-pong of datagrams is one packet".to_owned())
        }
        _ => Ok(()),
    }
}

/// Whether a flow that is known can go on as it is wanted.
fn may_go_on(sender: &Sender, spec: &FlowSpec, geometry: Geometry) -> Result<(), String> {
    if matches!(sender.target, Target::Peer) {
        return Err("it is expected here; a connection has two ends".to_owned());
    }
    let ended = sender.is_stopped() || sender.is_done() || matches!(sender.phase, Phase::Error(_));
    if !ended {
        return Err("it is open; hint: stop it first".to_owned());
    }
    if sender.transport != spec.transport || sender.work != spec.work {
        return Err("it was carried in another way; hint: close it at both ends first".to_owned());
    }
    if sender.is_outstanding() && sender.geometry != geometry {
        return Err("packets of another size are not acknowledged; hint: close it at both ends".to_owned());
    }
    Ok(())
}
