//! Names of machines whose GUID is their function's, before a register that holds what it is asked to.

use weft_machine::{Machine, Time};
use weft_wire::{
    AddressedMad, AttributeId, GidPrefix, Guid, Lid, Method, PortFacts, SaMad, SaRecord, ServiceRecord,
    sa_status,
};

use super::network::{Network, lid};
use super::{options, spec};
use crate::stack::{Guids, Input, Output, Stack, StackOptions};
use crate::traffic::{Command, Destination, FlowSpec, Transport};

/// A machine, and subnet administration with its ServiceRecords.
struct Register {
    stack: Stack,
    now: Time,
    records: Vec<ServiceRecord>,
    /// Requests for ServiceRecords, and the GUID in each.
    asked: Vec<(Method, Guid)>,
    /// A request of this method is refused with a status, or not answered.
    fails: Option<(Method, Option<u16>)>,
}

/// The GUID of the machine's function, and of another one.
const OWN: Guid = Guid(0x100);
const OTHER: Guid = Guid(0x101);

impl Register {
    fn new() -> Self {
        let stack = Stack::new(StackOptions { guids: Guids::Dynamic, ..options() });
        Self { stack, now: Time::ZERO, records: Vec::new(), asked: Vec::new(), fails: None }
    }

    /// The port comes up.
    fn begin(&mut self) {
        let facts = PortFacts {
            guid: OWN,
            gid_prefix: GidPrefix::DEFAULT,
            active: true,
            lid: lid(0),
            sm_lid: Lid(99),
            mtu: 2048,
            ..PortFacts::default()
        };
        self.stack.handle_input(self.now, Input::Port(facts));
    }

    fn run(&mut self, span: Time) {
        let end = self.now + span;
        loop {
            while let Some(output) = self.stack.poll_output() {
                let Output::Send(mad) = output else { continue };
                if let Some(answer) = self.answer(&mad) {
                    self.stack.handle_input(self.now, Input::Receive(answer));
                }
            }
            match self.stack.poll_timeout().filter(|at| *at <= end) {
                Some(at) => self.now = self.now.max(at),
                None => break,
            }
            self.stack.handle_timeout(self.now);
        }
        self.now = end;
    }

    fn answer(&mut self, mad: &AddressedMad) -> Option<AddressedMad> {
        let mut answer = *mad;
        SaMad::method.set(&mut answer.mad.0, Method::GetResp);
        let (method, attribute) = (mad.mad.method(), mad.mad.attribute_id());
        if attribute == AttributeId::InformInfo {
            return Some(answer);
        }
        assert_eq!(attribute, ServiceRecord::ATTRIBUTE, "nothing else is asked for");
        let record = ServiceRecord::from_bytes(&SaMad::data.get(&mad.mad.0));
        self.asked.push((method, record.service_gid.guid));
        if let Some((_, failure)) = self.fails.filter(|(fails, _)| *fails == method) {
            SaMad::status.set(&mut answer.mad.0, failure?);
            return Some(answer);
        }
        let is_same = |known: &ServiceRecord| known.service_gid == record.service_gid;
        let found: Vec<ServiceRecord> = match method {
            Method::Set => {
                self.records.retain(|known| !is_same(known));
                self.records.push(record);
                vec![record]
            }
            Method::Delete => self.records.extract_if(.., |known| is_same(known)).collect(),
            _ => {
                let named = |known: &&ServiceRecord| known.service_name == record.service_name;
                self.records.iter().filter(named).copied().collect()
            }
        };
        assert!(self.records.len() <= 1, "no one finds two of one name: {:?}", self.records);
        match found[..] {
            [record] => {
                let mut data = SaMad::data.get(&answer.mad.0);
                data[..ServiceRecord::SIZE].copy_from_slice(&record.encode());
                SaMad::data.set(&mut answer.mad.0, data);
            }
            [] => SaMad::status.set(&mut answer.mad.0, sa_status::NO_RECORDS),
            _ => SaMad::status.set(&mut answer.mad.0, sa_status::TOO_MANY_RECORDS),
        }
        Some(answer)
    }

    /// Why the only flow waits, once no answer is awaited any more.
    fn failure(&mut self) -> String {
        for _ in 0..1000 {
            let error = self.stack.reports().remove(0).error.unwrap();
            if !error.starts_with("waits") {
                return error;
            }
            self.run(Time::from_millis(1));
        }
        panic!("an answer is awaited for a second")
    }

    fn holders(&self) -> Vec<Guid> {
        self.records.iter().map(|record| record.service_gid.guid).collect()
    }

    /// The machine was in another function, and was created once more in this one: it knows nothing of the record that stayed.
    fn leave_behind(&mut self) {
        self.stack.offer_name("web");
        self.begin();
        self.run(Time::from_millis(1));
        assert_eq!(self.holders(), [OWN]);
        self.records[0].service_gid.guid = OTHER;
        self.stack = Self::new().stack;
        self.asked.clear();
        self.stack.offer_name("web");
        self.now += Time::from_millis(1);
        self.begin();
    }
}

#[test]
fn a_record_left_behind_is_withdrawn_before_the_offer() {
    let mut register = Register::new();
    register.leave_behind();
    register.run(Time::from_millis(1));
    assert_eq!(register.holders(), [OWN]);
    let asked = [(Method::Get, Guid(0)), (Method::Delete, OTHER), (Method::Set, OWN)];
    assert_eq!(register.asked, asked);
    assert_eq!(register.stack.suspension_counts().names_offered, 1);
}

/// Refused, or not answered: the record is still there, so nothing is offered beside it, and it is withdrawn later.
#[test]
fn no_name_is_offered_beside_one_that_stays() {
    for failure in [Some(sa_status::REQ_DENIED), None] {
        let mut register = Register::new();
        register.leave_behind();
        register.fails = Some((Method::Delete, failure));
        register.run(Time::from_secs(1));
        assert_eq!(register.holders(), [OTHER], "{failure:?}");
        assert!(register.asked.iter().all(|(method, _)| *method != Method::Set), "{:?}", register.asked);
        // Five timeouts of 1 ms lie between two attempts at least.
        let attempts = register.asked.iter().filter(|(method, _)| *method == Method::Get).count();
        assert!((2..=201).contains(&attempts), "{failure:?}: {attempts}");
        register.fails = None;
        register.run(Time::from_secs(1));
        assert_eq!(register.holders(), [OWN], "{failure:?}");
    }
}

/// What is refused is no reason to offer the name either, and the offer itself is repeated.
#[test]
fn an_offer_is_made_again_whichever_question_failed() {
    for method in [Method::Get, Method::Set] {
        let mut register = Register::new();
        register.leave_behind();
        register.fails = Some((method, Some(sa_status::NO_RESOURCES)));
        register.run(Time::from_millis(100));
        assert!(!register.holders().contains(&OWN), "{method:?}");
        register.fails = None;
        register.run(Time::from_millis(100));
        assert_eq!(register.holders(), [OWN], "{method:?}");
    }
}

#[test]
fn a_machine_that_ends_withdraws_and_offers_no_more() {
    let mut register = Register::new();
    register.stack.offer_name("web");
    register.begin();
    register.run(Time::from_millis(1));
    register.stack.unsubscribe(register.now);
    register.run(Time::from_millis(100));
    assert!(register.holders().is_empty());
    assert_eq!(register.asked.last(), Some(&(Method::Delete, OWN)));
}

fn to_web(transport: Transport) -> Command {
    Command::Open(FlowSpec {
        to: Destination::Named("web".to_owned()),
        transport,
        message_bytes: 2048,
        ..spec(1, 1)
    })
}

/// A name that is not there, and one that no one answers for, differ.
#[test]
fn why_a_name_leads_nowhere_is_said() {
    let cases = [(Some(sa_status::NO_RECORDS), "SA status 0x0300"), (None, "does not answer")];
    for (failure, wanted) in cases {
        let mut register = Register::new();
        register.begin();
        register.fails = Some((Method::Get, failure));
        register.stack.handle_input(register.now, Input::Command(to_web(Transport::ReliableConnection)));
        let error = register.failure();
        assert!(error.contains(wanted), "{error}");
        assert_eq!(error.contains("SA status"), failure.is_some(), "{error}");
    }
}

/// Nothing tells the sender of datagrams that the machine has another place.
#[test]
fn datagrams_to_a_name_are_refused() {
    let mut network = Network::new(2, &options(), 1);
    network.command(0, to_web(Transport::UnreliableDatagram));
    let refused =
        "flow 1 is not opened: no datagram tells that its machine has moved; hint: a reliable connection";
    assert_eq!(network.refusals, [refused]);
}
