//! A program at a node that asks subnet administration, through its host's MAD layer and over the data lanes like
//! everybody.

use weft_device::{ClientId, Input};
use weft_host::mad::{self, AgentId, AgentRequest, MadLayer};
use weft_machine::Machine;
use weft_topology::NodeIndex;
use weft_wire::{
    AddressedMad, Mad, MethodMask, MgmtClass, Oui, QpNum, RMPP_VERSION, SA_CLASS_VERSION, SaMad,
    ServiceLevel, TransactionId,
};

use crate::Simulation;

/// The program that asks.
const ASKER: ClientId = ClientId(0xfff1);

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
        let registration = AgentRequest {
            qp: QpNum::GSI,
            class: MgmtClass::SubnAdm,
            class_version: SA_CLASS_VERSION,
            oui: Oui(0),
            methods: MethodMask::default(),
            rmpp_version: RMPP_VERSION,
        };
        let mut layer = MadLayer::default();
        layer.handle_input(self.now(), mad::Input::Register { request: 0, registration });
        let address = mad::Address::from(&AddressedMad::gmp(manager, ServiceLevel(0), mad));
        let (agent, timeout_ms, retries, data) = (AgentId(0), PATIENCE_MS, RETRIES, mad.0.to_vec());
        layer.handle_input(self.now(), mad::Input::Send { agent, address, timeout_ms, retries, data });
        self.feed(node, Input::Attach { client: ASKER, port, registrations: Vec::new() });
        let answer = self.exchange(node, &mut layer);
        self.feed(node, Input::Detach { client: ASKER });
        answer
    }

    /// Drives the host's MAD layer until it delivers something.
    fn exchange(&mut self, node: NodeIndex, layer: &mut MadLayer) -> Option<SaAnswer> {
        loop {
            while let Some(output) = layer.poll_output() {
                match output {
                    mad::Output::Transmit(mad) => {
                        self.feed(node, Input::Send { client: ASKER, mad: Box::new(mad) });
                    }
                    mad::Output::Deliver { status, data, .. } => {
                        return (status == 0).then(|| SaAnswer::from_message(&data)).flatten();
                    }
                    _ => {}
                }
            }
            let due = layer.poll_timeout()?;
            if !self.step(due) {
                self.run_until(due);
            }
            layer.handle_timeout(self.now());
            for (at, client, mad) in std::mem::take(&mut self.delivered) {
                if (at, client) == (node, ASKER) {
                    layer.handle_input(self.now(), mad::Input::Receive(mad));
                }
            }
        }
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
