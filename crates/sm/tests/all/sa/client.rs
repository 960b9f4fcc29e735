//! A program on some port that asks subnet administration, over the wire formats alone.

#![allow(dead_code, reason = "several tests share it, and each uses a part")]

use weft_machine::Time;
use weft_mgmt::rmpp::{Inbox, InboxLimits};
use weft_sm::{Activity, GuidToLid, Input, Options};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::*;

use super::fake::{Fake, World};

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub method: Method,
    pub attribute: AttributeId,
    pub modifier: u32,
    pub mask: u64,
    pub data: [u8; 200],
    pub key: SmKey,
    /// Who asks.
    pub from: Lid,
    pub id: u64,
}

impl Asked {
    /// Everything of a type, by somebody who is trusted.
    pub fn all<R: SaRecord>() -> Self {
        Self::new(Method::GetTable, R::ATTRIBUTE)
    }

    pub fn new(method: Method, attribute: AttributeId) -> Self {
        let (modifier, mask, data) = (0, 0, [0; 200]);
        Self { method, attribute, modifier, mask, data, key: SmKey(1), from: Lid(3), id: 1 }
    }

    /// Those that have these components of this record.
    pub fn with<R: SaRecord>(self, mask: u64, record: &R) -> Self {
        let mut bytes = Vec::new();
        record.append_to(&mut bytes);
        self.with_bytes(mask, &bytes)
    }

    pub fn with_bytes(mut self, mask: u64, bytes: &[u8]) -> Self {
        self.mask = mask;
        self.data[..bytes.len()].copy_from_slice(bytes);
        self
    }

    pub fn get(self) -> Self {
        Self { method: Method::Get, ..self }
    }

    pub fn mad(&self) -> AddressedMad {
        let mut mad = Mad::default();
        SaMad::base_version.set(&mut mad.0, 1);
        SaMad::mgmt_class.set(&mut mad.0, MgmtClass::SubnAdm);
        SaMad::class_version.set(&mut mad.0, SA_CLASS_VERSION);
        SaMad::method.set(&mut mad.0, self.method);
        SaMad::transaction_id.set(&mut mad.0, TransactionId(self.id));
        SaMad::attribute_id.set(&mut mad.0, self.attribute);
        SaMad::attribute_modifier.set(&mut mad.0, self.modifier);
        SaMad::sm_key.set(&mut mad.0, self.key);
        SaMad::component_mask.set(&mut mad.0, self.mask);
        SaMad::data.set(&mut mad.0, self.data);
        AddressedMad::gmp(self.from, ServiceLevel(0), mad)
    }
}

/// The component that has this name; of several the first.
pub fn component<R: SaRecord>(name: &str) -> u64 {
    1 << R::COMPONENTS.iter().position(|row| row.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// A manager that has brought this fabric up, with the first host's port as its own.
pub fn up(fabric: weft_topology::Fabric, options: Options) -> World {
    let own = PortRef::new(fabric.hosts().next().expect("a host").0, PortNum(1));
    let mut world = World::new(Fake::new(fabric, own), options, &GuidToLid::default());
    world.run_until(Activity::Up);
    world
}

/// Four hosts, two leaves, two spines.
pub fn tree() -> World {
    let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).expect("a tree");
    up(fabric, Options::default())
}

/// What the devices themselves say.
pub fn lid_of(world: &World, node: NodeIndex, port: PortNum) -> Lid {
    let end = if world.fake.fabric.node(node).is_switch() { 0 } else { usize::from(port.0) };
    world.fake.devices[node.index()].ports[end].lid
}

/// The answer's first MAD and all its records' bytes; a table is acknowledged as it arrives.
pub fn exchange(world: &mut World, asked: &Asked) -> (Mad, Vec<u8>) {
    let request = asked.mad();
    world.command(Input::Receive(request));
    let mut inbox = Inbox::new(InboxLimits::default());
    for _ in 0..100_000 {
        let Some(answer) = world.administration.pop_front() else {
            // It may have to read tables first.
            world.run_for(Time::from_millis(5));
            continue;
        };
        assert_eq!(answer.mad.transaction_id(), TransactionId(asked.id));
        assert_eq!((answer.lid, answer.remote_qp, answer.local_qp), (asked.from, QpNum::GSI, QpNum::GSI));
        assert_eq!(answer.mad.class(), MgmtClass::SubnAdm);
        assert_eq!(SaMad::sm_key.get(&answer.mad.0), SmKey(0), "the key is shown to nobody");
        if !answer.mad.is_rmpp_active() {
            return (answer.mad, answer.mad.0[56..].to_vec());
        }
        assert_eq!(answer.mad.method(), Method::GetTableResp);
        let received = inbox.handle(world.now, &answer);
        while let Some(ack) = inbox.poll_transmit() {
            world.command(Input::Receive(ack));
        }
        if let Some(received) = received {
            let mut head = Mad::default();
            head.0[..56].copy_from_slice(&received.data[..56]);
            return (head, received.data[56..].to_vec());
        }
    }
    panic!("no answer to {asked:?}")
}

/// The records of a table, or the status that came instead.
pub fn table<R: SaRecord>(world: &mut World, asked: &Asked) -> Result<Vec<R>, u16> {
    let (head, bytes) = exchange(world, asked);
    if head.status() != status::OK {
        return Err(head.status());
    }
    assert_eq!(SaMad::attribute_offset.get(&head.0), R::OFFSET);
    let stride = usize::from(R::OFFSET) * 8;
    assert!(bytes.len().is_multiple_of(stride), "{} bytes of {stride}", bytes.len());
    assert!(bytes.chunks(stride).all(|chunk| chunk[R::LENGTH..].iter().all(|byte| *byte == 0)));
    Ok(bytes.chunks(stride).map(R::from_bytes).collect())
}

/// The one record, or the status that came instead.
pub fn one<R: SaRecord>(world: &mut World, asked: &Asked) -> Result<R, u16> {
    let (head, bytes) = exchange(world, &asked.get());
    assert_eq!(head.method(), Method::GetResp);
    if head.status() == status::OK { Ok(R::from_bytes(&bytes)) } else { Err(head.status()) }
}

/// Every trap of everybody.
pub fn everything() -> InformInfo {
    InformInfo {
        lid_range_begin: Lid(InformInfo::ALL),
        is_generic: 1,
        subscribe: 1,
        notice_type: InformInfo::ALL,
        trap_number: TrapNumber(InformInfo::ALL),
        producer_type: InformInfo::ALL_PRODUCERS,
        ..InformInfo::default()
    }
}

/// By somebody who is trusted.
pub fn subscribe(world: &mut World, from: Lid, info: &InformInfo) -> Result<InformInfo, u16> {
    subscribe_with(world, SmKey(1), from, info)
}

pub fn subscribe_with(
    world: &mut World,
    key: SmKey,
    from: Lid,
    info: &InformInfo,
) -> Result<InformInfo, u16> {
    let asked = Asked { from, key, ..Asked::new(Method::Set, AttributeId::InformInfo) };
    let (head, bytes) = exchange(world, &asked.with_bytes(0, &info.encode()));
    assert_eq!(head.method(), Method::GetResp);
    let info = InformInfo::decode(bytes.first_chunk().expect("200 bytes"));
    if head.status() == status::OK { Ok(info) } else { Err(head.status()) }
}

/// The Reports that have been sent, each answered or not.
pub fn reports(world: &mut World, answer: bool) -> Vec<(Lid, Notice)> {
    let mut found = Vec::new();
    while let Some(report) = world.administration.pop_front() {
        assert_eq!(report.mad.method(), Method::Report);
        assert_eq!(report.mad.attribute_id(), AttributeId::Notice);
        assert_eq!((report.remote_qp, report.qkey), (QpNum::GSI, QKey::GSI));
        found.push((report.lid, Notice::decode(report.mad.0[56..].first_chunk().expect("200 bytes"))));
        if answer {
            let mut response = report;
            SaMad::method.set(&mut response.mad.0, Method::ReportResp);
            world.command(Input::Receive(response));
        }
    }
    found
}
