//! A program at a node that asks subnet administration, through its host's MAD layer and over the data lanes like
//! everybody.

use weft_host::mad::{self, AgentId, AgentRequest};
use weft_machine::Time;
use weft_node::{Input, Message, Request, RequestId};
use weft_topology::NodeIndex;
use weft_wire::{
    AddressedMad, Mad, MethodMask, MgmtClass, Oui, QpNum, RMPP_VERSION, SA_CLASS_VERSION, SaMad,
    ServiceLevel, TransactionId,
};

use crate::Simulation;

/// Its registration; no one waits for the answer, which comes at once.
const REGISTER: RequestId = RequestId(u64::MAX);

/// How long it waits before it asks again, and how often it does.
const PATIENCE_MS: u32 = 10_000;
const RETRIES: u32 = 3;

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
    /// `None`: the node is off, its port has no manager, or no answer came.
    ///
    /// This lets time pass.
    pub fn ask_sa(&mut self, node: NodeIndex, request: &Mad) -> Option<SaAnswer> {
        let seat = self.seat(node)?;
        let manager = self.port(seat)?.master_sm_lid;
        let mut mad = *request;
        SaMad::base_version.set(&mut mad.0, 1);
        SaMad::mgmt_class.set(&mut mad.0, MgmtClass::SubnAdm);
        SaMad::class_version.set(&mut mad.0, SA_CLASS_VERSION);
        // Something happens in every exchange, so no two have the same number.
        let id = self.statistics().events & 0xffff_ffff;
        SaMad::transaction_id.set(&mut mad.0, TransactionId(id));
        let registration = AgentRequest {
            qp: QpNum::GSI,
            class: MgmtClass::SubnAdm,
            class_version: SA_CLASS_VERSION,
            oui: Oui(0),
            methods: MethodMask::default(),
            rmpp_version: RMPP_VERSION,
        };
        let address = mad::Address::from(&AddressedMad::gmp(manager, ServiceLevel(0), mad));
        let client = self.attach_checker(seat, true)?;
        let register = Box::new(Request::Register { client, registration });
        self.feed(node, Input::Request { id: REGISTER, request: register });
        let data = mad.0.to_vec();
        let (agent, timeout_ms, retries) = (AgentId(0), PATIENCE_MS, RETRIES);
        let message = Box::new(Message { agent, address, timeout_ms, retries, data });
        self.world.observers.readings.clear();
        self.feed(node, Input::SendThroughLayer { client, message });
        let limit = self.now() + Time::from_millis(u64::from(PATIENCE_MS * (RETRIES + 2)));
        while self.world.observers.readings.is_empty() && self.node(node).is_some() && self.step(limit) {}
        self.feed(node, Input::Detach { client });
        let (_, reading) =
            std::mem::take(&mut self.world.observers.readings).into_iter().find(|(at, _)| *at == node)?;
        if reading.status == 0 { SaAnswer::from_message(&reading.data) } else { None }
    }
}

impl SaAnswer {
    fn from_message(message: &[u8]) -> Option<Self> {
        let (headers, records) = message.split_at_checked(MgmtClass::SubnAdm.data_offset())?;
        let mut head = Mad::default();
        head.0[..headers.len()].copy_from_slice(headers);
        Some(Self { head, records: records.to_vec() })
    }
}
