//! A program at a node that asks subnet administration, over the data lanes like everybody.

use weft_device::{ClientId, Input};
use weft_machine::Time;
use weft_mgmt::rmpp::{Inbox, InboxLimits};
use weft_topology::NodeIndex;
use weft_wire::{AddressedMad, Mad, MgmtClass, SA_CLASS_VERSION, SaMad, ServiceLevel, TransactionId};

use crate::Simulation;

/// The program that asks.
const ASKER: ClientId = ClientId(0xfff1);

/// The longest table that it takes: half a million paths, with what each segment repeats.
const BYTES_MAX: usize = 64 << 20;

/// How long it waits before it asks again, and how often it does.
const PATIENCE: Time = Time::from_secs(10);
const ATTEMPTS: u32 = 4;

/// What subnet administration has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaAnswer {
    /// The headers, those of a table's first segment.
    pub head: Mad,
    /// The records, AttributeOffset apart.
    pub records: Vec<u8>,
}

impl Simulation {
    /// Asks, from a node, whoever its port says manages the subnet, and takes in what is answered, in however many
    /// segments. `request` says method, attribute, key, mask and record; the rest of its headers is filled in.
    /// `None`: the node is off, its port has no manager, or nobody answered.
    ///
    /// This lets time pass.
    pub fn ask_sa(&mut self, node: NodeIndex, request: &Mad) -> Option<SaAnswer> {
        let port = self.program_port(node)?;
        let manager = self.device(node)?.port_snapshot(port)?.master_sm_lid;
        let mut mad = *request;
        SaMad::base_version.set(&mut mad.0, 1);
        SaMad::mgmt_class.set(&mut mad.0, MgmtClass::SubnAdm);
        SaMad::class_version.set(&mut mad.0, SA_CLASS_VERSION);
        // Something happens in every exchange, so no two have the same number.
        let id = self.statistics().happenings & 0xffff_ffff;
        SaMad::transaction_id.set(&mut mad.0, TransactionId(id));
        let request = AddressedMad::gmp(manager, ServiceLevel(0), mad);
        self.feed(node, Input::Attach { client: ASKER, port, registrations: Vec::new() });
        let limits = InboxLimits { message_bytes: BYTES_MAX, bytes: BYTES_MAX, ..InboxLimits::default() };
        let mut inbox = Inbox::new(limits);
        let answer = (0..ATTEMPTS).find_map(|_| self.exchange(node, &request, &mut inbox));
        self.feed(node, Input::Detach { client: ASKER });
        answer
    }

    /// One attempt.
    fn exchange(&mut self, node: NodeIndex, request: &AddressedMad, inbox: &mut Inbox) -> Option<SaAnswer> {
        self.feed(node, Input::Send { client: ASKER, mad: *request });
        let mut limit = self.now() + PATIENCE;
        while self.step(limit) {
            for (at, client, mad) in std::mem::take(&mut self.delivered) {
                if (at, client) != (node, ASKER) {
                    continue;
                }
                if !mad.mad.is_rmpp_active() {
                    return Some(SaAnswer { head: mad.mad, records: mad.mad.0[56..].to_vec() });
                }
                // It listens, so it goes on waiting.
                limit = self.now() + PATIENCE;
                let received = inbox.handle(self.now(), &mad);
                while let Some(ack) = inbox.poll_transmit() {
                    self.feed(node, Input::Send { client: ASKER, mad: ack });
                }
                if let Some(received) = received {
                    let mut head = Mad::default();
                    head.0[..56].copy_from_slice(received.data.get(..56)?);
                    return Some(SaAnswer { head, records: received.data[56..].to_vec() });
                }
            }
        }
        None
    }
}
