//! The machine.

use std::collections::VecDeque;

use weft_machine::{Machine, Time, Timer};
use weft_mgmt::rmpp::{
    Endpoint, Failure, Finished, InboxLimits, OfferError, OutboxLimits, Received, Timing, TransferId,
};
use weft_wire::{
    AddressedMad, MAD_SIZE, MadHeader, Method, RMPP_END, RMPP_VERSION, RmppHeader, RmppType, Smp,
    TransactionId,
};

use super::agents::{Agent, Agents};
use super::sends::{Phase, SendId, Sends, Sent, first_mad};
use super::{
    Address, AgentId, AgentRequest, Input, Limits, MadTimer, Output, RegisterError, SendError, Stats,
    TIMED_OUT,
};

/// The longest wait for an acknowledgement.
const ACK_TIMEOUT_MAX: Time = Time::from_secs(2);

/// The MAD layer of one open port; see the [module](super).
#[derive(Debug)]
pub struct MadLayer {
    limits: Limits,
    stats: Stats,
    agents: Agents,
    sends: Sends,
    rmpp: Endpoint,
    /// Bounded by what one input causes, since the driver drains it after each.
    outputs: VecDeque<Output>,
}

impl Default for MadLayer {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl MadLayer {
    /// A layer without registrations.
    pub fn new(limits: Limits) -> Self {
        let outbox = OutboxLimits {
            transfers: limits.sends,
            message_bytes: limits.message_bytes,
            bytes: limits.send_bytes,
            ..OutboxLimits::default()
        };
        let inbox = InboxLimits {
            transfers: limits.receives,
            message_bytes: limits.message_bytes,
            bytes: limits.receive_bytes,
            ..InboxLimits::default()
        };
        Self {
            limits,
            stats: Stats::default(),
            agents: Agents::default(),
            sends: Sends::default(),
            rmpp: Endpoint::new(outbox, inbox),
            outputs: VecDeque::new(),
        }
    }

    /// What it may hold.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What it counted.
    pub fn stats(&self) -> Stats {
        Stats { rmpp_sent: *self.rmpp.outbox.stats(), rmpp_received: *self.rmpp.inbox.stats(), ..self.stats }
    }

    /// Sends that are not finished.
    pub fn outstanding(&self) -> usize {
        self.sends.len()
    }

    fn register(&mut self, request: u64, asked: AgentRequest) {
        match self.agents.add(asked, request, self.limits.agents) {
            Ok((agent, registration)) if registration.methods.is_empty() => self.claimed(agent, true),
            Ok((agent, registration)) => self.outputs.push_back(Output::Claim { agent, registration }),
            Err(reason) => self.outputs.push_back(Output::Refused { request, reason }),
        }
    }

    /// A registration is decided, by the device or because there was nothing to decide.
    fn claimed(&mut self, agent: AgentId, granted: bool) {
        let Some(request) = self.agents.settle(agent) else { return };
        if granted {
            self.outputs.push_back(Output::Registered { request, agent });
        } else {
            self.agents.remove(agent);
            self.outputs.push_back(Output::Refused { request, reason: RegisterError::Taken });
        }
    }

    fn unregister(&mut self, id: AgentId) {
        let Some(agent) = self.agents.remove(id) else {
            self.stats.unregistrations_unmatched += 1;
            return;
        };
        if !agent.registration().methods.is_empty() {
            self.outputs.push_back(Output::Release { agent: id });
        }
        for send in self.sends.of_agent(id) {
            self.stats.cancelled += 1;
            if let Some(Sent { phase: Phase::Transfer(transfer), .. }) = self.sends.remove(&send) {
                self.rmpp.outbox.cancel(&transfer);
            }
        }
    }

    fn send(&mut self, now: Time, agent: AgentId, sending: Sending) {
        let (address, waits) = (sending.address, sending.timeout_ms > 0);
        let header: [u8; MadHeader::SIZE] =
            std::array::from_fn(|at| sending.data.get(at).copied().unwrap_or_default());
        match self.accept(now, agent, sending) {
            Ok(()) => self.stats.sends += 1,
            Err(reason) => {
                self.stats.sends_refused += 1;
                self.outputs.push_back(Output::SendRefused { agent, reason });
                if waits {
                    // A program that waits for an answer gets an error at once, as by a timeout.
                    let (status, data) = (reason.errno().unsigned_abs(), header.to_vec());
                    self.outputs.push_back(Output::Deliver { agent, status, address, data });
                }
            }
        }
    }

    fn accept(&mut self, now: Time, id: AgentId, mut sending: Sending) -> Result<(), SendError> {
        let agent = *self.agents.get(id).ok_or(SendError::NoSuchAgent)?;
        if sending.data.len() < RMPP_END {
            return Err(SendError::BadLength);
        }
        let mut mad = first_mad(&sending.data);
        if !mad.is_answer() {
            let lower = mad.transaction_id().0 & 0xffff_ffff;
            let own = TransactionId(u64::from(agent.number) << 32 | lower);
            Smp::transaction_id.set(&mut mad.0, own);
            sending.data[..RMPP_END].copy_from_slice(&mad.0[..RMPP_END]);
        }
        let active = mad.is_rmpp_active();
        let by_rmpp = agent.has_rmpp() && active;
        if by_rmpp {
            // All that counts in the program's RMPP header is that it is active; OpenSM leaves the rest empty.
            let header = RmppHeader { version: RMPP_VERSION, kind: RmppType::Data, ..mad.rmpp() };
            mad.set_rmpp(&header);
            sending.data[..RMPP_END].copy_from_slice(&mad.0[..RMPP_END]);
        }
        if !by_rmpp && sending.data.len() > MAD_SIZE {
            return Err(SendError::BadLength);
        }
        let addressed = sending.address.with(agent.asked.qp, mad);
        let send = SendId::of_sent(&addressed);
        // Whoever does RMPP itself sends many segments of one transaction.
        let own_rmpp = active && !by_rmpp;
        if self.sends.contains(&send) && !own_rmpp {
            return Err(SendError::Duplicate);
        }
        let timeout = Time::from_millis(u64::from(sending.timeout_ms));
        let waits = timeout > Time::ZERO && !self.sends.contains(&send);
        if (waits || by_rmpp) && self.sends.len() >= self.limits.sends {
            return Err(SendError::TooMany);
        }
        if let Some(method) = mad.method().response() {
            // A program may use a transaction id again at once.
            self.rmpp.inbox.expect_again(&TransferId { method, ..TransferId::of_message(&addressed) });
        }
        let (address, retries_left) = (sending.address, sending.retries);
        let phase = if by_rmpp {
            let timing = timing(timeout, sending.retries);
            let offered = self.rmpp.offer(now, &addressed, sending.data, &timing);
            Phase::Transfer(offered.map_err(refusal)?)
        } else {
            self.outputs.push_back(Output::Transmit(addressed));
            Phase::Answer(now + timeout)
        };
        if waits || by_rmpp {
            let mad = Box::new(addressed);
            self.sends.insert(send, Sent { agent: id, address, mad, timeout, retries_left, phase });
        }
        Ok(())
    }

    fn receive(&mut self, now: Time, mad: &AddressedMad) {
        let is_answer = mad.mad.is_answer();
        let found = if is_answer { self.agents.asker(&mad.mad) } else { self.agents.covering(&mad.mad) };
        let Some((id, &agent)) = found else {
            return self.nobody_waits(mad);
        };
        if agent.has_rmpp() && mad.mad.is_rmpp_active() {
            return self.receive_segment(now, id, mad);
        }
        let data = mad.mad.0.to_vec();
        if is_answer {
            self.answered(id, &agent, mad, data);
        } else {
            self.deliver(id, 0, mad.into(), data);
        }
    }

    /// What no one asked for or registered for. Who sends a long answer in vain need not go on with it.
    fn nobody_waits(&mut self, mad: &AddressedMad) {
        if !mad.mad.is_answer() {
            self.stats.requests_unmatched += 1;
            return;
        }
        self.stats.answers_unmatched += 1;
        if mad.mad.is_rmpp_active() && mad.mad.rmpp().kind == RmppType::Data {
            self.rmpp.inbox.turn_away(mad);
        }
    }

    /// An answer in one piece, or put together.
    fn answered(&mut self, id: AgentId, agent: &Agent, mad: &AddressedMad, data: Vec<u8>) {
        match self.sends.remove(&SendId::of_request(&mad.mad)) {
            Some(sent) => {
                if let Phase::Transfer(transfer) = sent.phase {
                    self.rmpp.outbox.cancel(&transfer);
                }
                self.deliver(id, 0, mad.into(), data);
            }
            // Whoever does RMPP itself gets every segment of an answer, not only the first.
            None if !agent.has_rmpp() && mad.mad.is_rmpp_active() => self.deliver(id, 0, mad.into(), data),
            None => self.stats.answers_unmatched += 1,
        }
    }

    /// A packet of RMPP for a registration whose RMPP is the layer's.
    fn receive_segment(&mut self, now: Time, id: AgentId, mad: &AddressedMad) {
        let is_answer = mad.mad.is_answer();
        let request = SendId::of_request(&mad.mad);
        if is_answer && mad.mad.rmpp().kind == RmppType::Data {
            match self.sends.get(&request) {
                // As long as the answer is coming in, no one need ask again.
                Some(sent) if matches!(sent.phase, Phase::Answer(_)) => {
                    self.sends.await_answer(request, now + sent.timeout);
                }
                Some(_) => {}
                None if self.rmpp.inbox.contains(&TransferId::of_message(mad)) => {}
                None => return self.nobody_waits(mad),
            }
        }
        let Some(Received { data, .. }) = self.rmpp.handle(now, mad) else { return };
        let Some(&agent) = self.agents.get(id) else { return };
        if is_answer {
            self.answered(id, &agent, mad, data);
        } else {
            self.deliver(id, 0, mad.into(), data);
        }
    }

    fn deliver(&mut self, agent: AgentId, status: u32, address: Address, data: Vec<u8>) {
        if status == 0 {
            self.stats.delivered += 1;
        }
        self.outputs.push_back(Output::Deliver { agent, status, address, data });
    }

    fn time_out(&mut self, id: SendId) {
        if let Some(sent) = self.sends.remove(&id) {
            self.stats.timeouts += 1;
            self.deliver(sent.agent, TIMED_OUT, sent.address, sent.header());
        }
    }

    /// No one has answered in time.
    fn answer_due(&mut self, now: Time, id: SendId) {
        let Some(sent) = self.sends.get_mut(&id) else { return };
        if sent.retries_left == 0 {
            return self.time_out(id);
        }
        sent.retries_left -= 1;
        let (mad, due) = (*sent.mad, now + sent.timeout);
        self.stats.retries += 1;
        self.outputs.push_back(Output::Transmit(mad));
        self.sends.await_answer(id, due);
    }

    /// A message is no longer on its way.
    fn finished(&mut self, now: Time, finished: &Finished) {
        let id = SendId::of_transfer(&finished.id);
        let Some(sent) = self.sends.get_mut(&id).filter(|sent| sent.phase == Phase::Transfer(finished.id))
        else {
            return;
        };
        let waits = sent.timeout > Time::ZERO;
        match finished.failure {
            None if waits => {
                // The message has arrived, so there is nothing to be sent again.
                sent.retries_left = 0;
                let (due, mad, method) = (now + sent.timeout, *sent.mad, sent.method());
                self.sends.await_answer(id, due);
                if method == Method::GetMulti {
                    self.rmpp.inbox.grant(now, &mad, Method::GetMultiResp);
                }
            }
            None => drop(self.sends.remove(&id)),
            Some(Failure::TimedOut) => self.time_out(id),
            Some(_) if waits => self.time_out(id),
            Some(_) => drop(self.sends.remove(&id)),
        }
    }

    /// What RMPP has to say after each input.
    fn drain_rmpp(&mut self, now: Time) {
        loop {
            while let Some(mad) = self.rmpp.poll_transmit(now) {
                self.outputs.push_back(Output::Transmit(mad));
            }
            let Some(finished) = self.rmpp.poll_finished() else { return };
            self.finished(now, &finished);
        }
    }
}

/// What a program gives with a send.
struct Sending {
    address: Address,
    timeout_ms: u32,
    retries: u32,
    data: Vec<u8>,
}

fn timing(timeout: Time, retries: u32) -> Timing {
    let unset = timeout == Time::ZERO;
    let ack_timeout = if unset { ACK_TIMEOUT_MAX } else { timeout.min(ACK_TIMEOUT_MAX) };
    Timing { ack_timeout, retries, ..Timing::default() }
}

fn refusal(error: OfferError) -> SendError {
    match error {
        OfferError::NotAMessage => SendError::BadLength,
        OfferError::TooLong => SendError::TooLong,
        OfferError::Duplicate => SendError::Duplicate,
        OfferError::Full => SendError::TooMany,
    }
}

impl Machine for MadLayer {
    type Input = Input;
    type Output = Output;
    type Reason = MadTimer;

    fn handle_input(&mut self, now: Time, input: Input) {
        match input {
            Input::Register { request, registration } => self.register(request, registration),
            Input::Claimed { agent, granted } => self.claimed(agent, granted),
            Input::Unregister { agent } => self.unregister(agent),
            Input::Send { agent, address, timeout_ms, retries, data } => {
                self.send(now, agent, Sending { address, timeout_ms, retries, data });
            }
            Input::Receive(mad) => self.receive(now, &mad),
        }
        self.drain_rmpp(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.rmpp.handle_timeout(now);
        self.drain_rmpp(now);
        while let Some(send) = self.sends.due(now) {
            self.answer_due(now, send);
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn next_timer(&self) -> Option<Timer<MadTimer>> {
        let transfer = self.rmpp.next_timer().map(|timer| timer.map(MadTimer::Transfer));
        Timer::earliest([transfer, Timer::new(self.sends.due_at(), MadTimer::Answer)])
    }
}

#[cfg(test)]
mod tests;
