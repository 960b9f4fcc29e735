use weft_wire::{Guid, VmMoveResult, sa_status, status};

use super::*;
use crate::agent::Adapter;
use crate::names::{HostName, Slot};
use crate::places::{HostPart, SlotPart};
use crate::sm::{AddressMove, End, Route};

const KEY: SmKey = SmKey(0x77);

fn places() -> Places {
    let host = |number: u64| HostPart {
        name: format!("host-{number}").parse::<HostName>().unwrap(),
        agent: "a0000".to_owned(),
        adapter: Adapter::default(),
        vswitch: Guid(0x100 + number),
        slots: vec![SlotPart {
            guid: Guid(0x200 + number),
            port_guid: Guid(0x300 + number),
            description: String::new(),
            port: PortNum(3),
        }],
    };
    Places::new(vec![host(0), host(1)])
}

fn request(number: u64, wish: SmWish) -> SmRequest {
    let end = |host: &str| End { slot: Slot { host: host.parse().unwrap(), vf: 1 }, physical: Guid(9) };
    let one = AddressMove {
        port_guid: Guid(0x300),
        lid: Lid(7),
        is_live: true,
        from: end("host-0"),
        to: end("host-1"),
    };
    SmRequest { number, epoch: 5, wish, route: Route::default(), moves: vec![one] }
}

/// How a subnet manager answers.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// As weft's.
    Weft,
    /// It drops what it does not know, as OpenSM.
    Drops,
    /// It has a status for what it does not know.
    Refuses,
    /// There is none.
    None,
}

struct Site {
    client: SaClient,
    kind: Kind,
    now: Time,
    answers: Vec<(u64, SmAnswer)>,
    keys: Vec<SmKey>,
}

impl Site {
    fn new(kind: Kind) -> Self {
        let mut client = SaClient::new((KEY, MKey(0)), 1);
        client.attach(Some(PortNum(1)));
        Self { client, kind, now: Time::ZERO, answers: Vec::new(), keys: Vec::new() }
    }

    fn ask(&mut self, number: u64, wish: SmWish) -> SmAnswer {
        self.client.ask(&request(number, wish), &places());
        // Each wait is for something: a bound that no answer needs.
        for _ in 0..1000 {
            while let Some(mad) = self.client.poll_transmit(self.now) {
                if let Some(answer) = self.answer(&mad) {
                    self.client.receive(self.now, &answer);
                }
            }
            while let Some(answer) = self.client.poll_answer() {
                self.answers.push(answer);
            }
            let Some(at) = self.client.next_timer() else { break };
            self.now = self.now.max(at);
            self.client.expire(self.now);
        }
        let own: Vec<_> = self.answers.iter().filter(|(of, _)| *of == number).collect();
        assert_eq!(own.len(), 1, "each question is answered once: {own:?}");
        own[0].1.clone()
    }

    fn answer(&mut self, mad: &AddressedMad) -> Option<AddressedMad> {
        let mut answer = *mad;
        let bytes = &mut answer.mad.0;
        SaMad::method.set(bytes, mad.mad.method().response()?);
        if mad.mad.attribute_id() == AttributeId::PortInfo {
            let lid = if self.kind == Kind::None { Lid(0) } else { Lid(3) };
            let info = PortInfo { lid: Lid(2), master_sm_lid: lid, ..PortInfo::default() };
            answer.mad.set_smp_data(&info.encode());
            return Some(answer);
        }
        if mad.mad.attribute_id() != sa_attribute::VM_MOVE {
            return Some(answer);
        }
        let key = SaMad::sm_key.get(&mad.mad.0);
        self.keys.push(key);
        let asked = VmMove::decode(&SaMad::data.get(&mad.mad.0));
        let (code, result) = match self.kind {
            Kind::Drops | Kind::None => return None,
            Kind::Refuses => (status::BAD_METHOD_ATTRIBUTE, VmMoveResult::None),
            Kind::Weft if key != KEY => (sa_status::REQ_DENIED, VmMoveResult::Denied),
            Kind::Weft => (status::OK, VmMoveResult::Done),
        };
        SaMad::status.set(bytes, code);
        SaMad::data.set(bytes, VmMove { result, rounds: 5, ..asked }.encode());
        Some(answer)
    }
}

#[test]
fn the_key_is_shown_to_who_knows_the_attribute() {
    let mut site = Site::new(Kind::Weft);
    for (number, wish) in (1..).zip([SmWish::Hold, SmWish::Move, SmWish::Release]) {
        let SmAnswer::Done(counts) = site.ask(number, wish) else { panic!("{wish:?}: {:?}", site.answers) };
        assert_eq!(counts.rounds, 5);
    }
    assert_eq!(site.keys, [SmKey(0), KEY, KEY, KEY], "it is asked without the key first, once");
}

#[test]
fn a_subnet_manager_that_does_not_know_the_attribute_is_told_no_key() {
    for kind in [Kind::Drops, Kind::Refuses] {
        let mut site = Site::new(kind);
        assert_eq!(site.ask(1, SmWish::Hold), SmAnswer::Unknown);
        let before = site.now;
        assert_eq!(site.ask(2, SmWish::Move), SmAnswer::Unknown);
        assert_eq!(site.now, before, "what is known is not asked again while the machine is frozen");
        assert!(site.keys.iter().all(|key| *key == SmKey(0)));
    }
}

#[test]
fn without_a_subnet_manager_each_question_ends() {
    let mut site = Site::new(Kind::None);
    assert_eq!(site.ask(1, SmWish::Hold), SmAnswer::Timeout);
    assert_eq!(site.ask(2, SmWish::Move), SmAnswer::Timeout);
    // It comes, and another one takes its place.
    site.kind = Kind::Weft;
    assert!(matches!(site.ask(3, SmWish::Hold), SmAnswer::Done(_)));
    site.kind = Kind::Drops;
    assert_eq!(site.ask(4, SmWish::Move), SmAnswer::Timeout, "it knew moves a moment ago");
    assert_eq!(site.ask(5, SmWish::Hold), SmAnswer::Unknown);
    // Without a port nothing is asked, and what was asked ends.
    site.client.ask(&request(6, SmWish::Hold), &places());
    site.client.attach(None);
    assert_eq!(site.client.poll_answer(), Some((6, SmAnswer::Timeout)));
    assert_eq!(site.ask(7, SmWish::Hold), SmAnswer::Timeout);
}

#[test]
fn a_move_of_nowhere_is_refused() {
    let mut site = Site::new(Kind::Weft);
    let nowhere = SmRequest { moves: Vec::new(), ..request(1, SmWish::Move) };
    site.client.ask(&nowhere, &places());
    assert!(matches!(site.client.poll_answer(), Some((1, SmAnswer::Refused(_)))));
}
