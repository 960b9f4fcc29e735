//! A program attached to a port, its requests and their answers.

use std::time::{Duration, Instant};

use anyhow::Context;
use weft_bundle::config::keys::Keys;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::record::LabRecord;
use weft_machine::Time;
use weft_mgmt::{Limits, Transactions, Window};
use weft_umad::{Attached, Client, ClientError, ServerMessage};
use weft_wire::{AddressedMad, Guid, MKey, PortNum, Smp};

/// How long an agent has to answer an attachment.
const ATTACH_PATIENCE: Duration = Duration::from_secs(5);

/// How these programs pace their requests.
pub fn limits(window: Window) -> Limits {
    Limits { window, ..Limits::default() }
}

/// An attachment.
#[derive(Debug)]
pub struct Session {
    client: Client,
    attached: Attached,
    start: Instant,
    /// What every SMP shows.
    m_key: MKey,
}

impl Session {
    /// Attaches to a port of a laboratory.
    pub fn attach(lab: &LabFolder, record: &LabRecord, node: Guid, port: PortNum) -> anyhow::Result<Self> {
        Self::attach_within(ATTACH_PATIENCE, lab, record, node, port)
    }

    /// The same, with less patience for the agent's answer.
    pub fn attach_within(
        patience: Duration,
        lab: &LabFolder,
        record: &LabRecord,
        node: Guid,
        port: PortNum,
    ) -> anyhow::Result<Self> {
        let (agent, device) = record.device(node).context("the laboratory has no such node")?;
        let mut client = match Client::connect(&lab.agent_socket(&agent.name)) {
            Err(ClientError::Connect { .. }) => {
                return Err(Failure::new(format!("the agent of `{}` is not running", device.label))
                    .hint(format!("start it with `weft fault restart {}`", device.id)));
            }
            connected => connected?,
        };
        let attached = client
            .attach(node, port, Vec::new(), patience.min(ATTACH_PATIENCE))
            .with_context(|| format!("cannot attach to `{}` port {port}", device.label))?;
        Ok(Self { client, attached, start: Instant::now(), m_key: Keys::of_lab(lab)?.m_key })
    }

    /// The port it is attached to.
    pub fn attached(&self) -> &Attached {
        &self.attached
    }

    /// The time since it was attached.
    pub fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Takes a MAD to be sent with the next [`Session::flush`].
    pub fn queue(&mut self, mad: &AddressedMad) -> anyhow::Result<()> {
        let mut mad = *mad;
        if mad.mad.is_smp() {
            Smp::m_key.set(&mut mad.mad.0, self.m_key);
        }
        Ok(self.client.send(&mad)?)
    }

    /// Sends all that was queued.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        Ok(self.client.flush()?)
    }

    /// Waits for MADs and takes all that came; none when none comes in time.
    pub fn receive_all(&mut self, timeout: Duration) -> anyhow::Result<Vec<AddressedMad>> {
        let mut mads = Vec::new();
        let mut message = self.client.recv(timeout)?;
        while let Some(received) = message {
            if let ServerMessage::Receive(mad) = received {
                mads.push(mad);
            }
            message = self.client.try_recv()?;
        }
        Ok(mads)
    }

    /// Sends a MAD now.
    pub fn send(&mut self, mad: &AddressedMad) -> anyhow::Result<()> {
        self.queue(mad)?;
        self.flush()
    }

    /// The next MAD, `None` when none comes in time.
    pub fn receive(&mut self, timeout: Duration) -> anyhow::Result<Option<AddressedMad>> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.client.recv(deadline.saturating_duration_since(Instant::now()))? {
                Some(ServerMessage::Receive(mad)) => return Ok(Some(mad)),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// Runs requests to their ends, or until a moment. `take` gets each answer, or `None` for a request that no one answered, and
    /// adds what it wants asked next; of what has not come to its end by then it hears nothing.
    pub fn exchange<K>(
        &mut self,
        until: Option<Instant>,
        limits: Limits,
        first: Vec<(K, AddressedMad)>,
        mut take: impl FnMut(K, Option<AddressedMad>, &mut Vec<(K, AddressedMad)>),
    ) -> anyhow::Result<()> {
        let mut transactions = Transactions::new(limits);
        let mut next = first;
        loop {
            for (key, request) in next.drain(..) {
                transactions.offer(key, request).map_err(|_| anyhow::anyhow!("too many requests at once"))?;
            }
            while let Some(mad) = transactions.poll_transmit(self.now()) {
                self.queue(&mad)?;
            }
            self.flush()?;
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if transactions.is_idle() || left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
            let wake = transactions.poll_timeout().map_or(Time::ZERO, |at| at.saturating_sub(self.now()));
            let wake = Duration::from_nanos(wake.as_nanos());
            for mad in self.receive_all(left.map_or(wake, |left| left.min(wake)))? {
                if let Some(done) = transactions.handle_response(self.now(), &mad) {
                    take(done.key, Some(done.mad), &mut next);
                }
            }
            while let Some(failed) = transactions.poll_failed(self.now()) {
                take(failed.key, None, &mut next);
            }
        }
    }
}
