use weft_wire::{Guid, VmMoveKind, VmMoveResult, sa_status, status};

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
    /// The port names none.
    None,
    /// It is dead, and the port where it was says that it has no subnet administration.
    Dead,
    /// Its port is silent, too.
    Silent,
    /// It has taken over and is busy, with everything or with what it is asked to move.
    Busy,
    BusyWithMoves,
    /// It has died after its last answer to ClassPortInfo.
    Dies,
}

struct Site {
    client: SaClient,
    kind: Kind,
    lid: Lid,
    /// What comes after it, and when.
    next: Option<(Time, Kind, Lid)>,
    now: Time,
    answers: Vec<(u64, SmAnswer)>,
    keys: Vec<SmKey>,
    /// The number of its mastership, the LIDs that it has heard of, and whether those are all.
    mastership: u32,
    addresses: Vec<Lid>,
    is_told: bool,
}

impl Site {
    fn new(kind: Kind) -> Self {
        let mut client = SaClient::new(KEY, MKey(0), 1);
        client.attach(Some(PortNum(1)));
        Self {
            client,
            kind,
            lid: Lid(3),
            next: None,
            now: Time::ZERO,
            answers: Vec::new(),
            keys: Vec::new(),
            mastership: 5,
            addresses: Vec::new(),
            is_told: false,
        }
    }

    fn ask(&mut self, number: u64, wish: SmWish) -> SmAnswer {
        self.client.ask(self.now, &request(number, wish), &places());
        let is_answered = |site: &Self| site.answers.iter().any(|(of, _)| *of == number);
        self.go_on(is_answered);
        let own: Vec<_> = self.answers.iter().filter(|(of, _)| *of == number).collect();
        assert_eq!(own.len(), 1, "each question is answered once: {own:?}");
        own[0].1.clone()
    }

    /// Lets time pass until something is so.
    fn go_on(&mut self, is_so: impl Fn(&Self) -> bool) {
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
            if is_so(self) {
                return;
            }
            let Some(at) = self.client.next_timer() else { break };
            self.now = self.now.max(at);
            if let Some((_, kind, lid)) = self.next.take_if(|(at, ..)| *at <= self.now) {
                (self.kind, self.lid) = (kind, lid);
            }
            self.client.expire(self.now);
        }
        panic!("it never comes to that: {:?}", self.answers);
    }

    fn answer(&mut self, mad: &AddressedMad) -> Option<AddressedMad> {
        let mut answer = *mad;
        let bytes = &mut answer.mad.0;
        SaMad::method.set(bytes, mad.mad.method().response()?);
        if mad.mad.attribute_id() == AttributeId::PortInfo {
            let lid = if self.kind == Kind::None { Lid(0) } else { self.lid };
            let info = PortInfo { lid: Lid(2), master_sm_lid: lid, ..PortInfo::default() };
            answer.mad.set_smp_data(&info.encode());
            return Some(answer);
        }
        // The one before is dead.
        let kind = if mad.lid == self.lid { self.kind } else { Kind::Dead };
        let is_moves = mad.mad.attribute_id() == sa_attribute::VM_MOVE;
        let asked = VmMove::decode(&SaMad::data.get(&mad.mad.0));
        let key = SaMad::sm_key.get(&mad.mad.0);
        let is_word = matches!(asked.kind, VmMoveKind::Address | VmMoveKind::Announced);
        if is_moves && !(key == KEY && is_word) {
            self.keys.push(key);
        }
        let (code, result) = match kind {
            Kind::Silent | Kind::None => return None,
            Kind::Dead => (status::BAD_VERSION, VmMoveResult::None),
            Kind::Busy => (status::BUSY, VmMoveResult::None),
            _ if !is_moves => (status::OK, VmMoveResult::None),
            Kind::BusyWithMoves => (status::BUSY, VmMoveResult::None),
            Kind::Dies => {
                self.kind = Kind::Silent;
                return None;
            }
            Kind::Drops => return None,
            Kind::Refuses => (status::BAD_METHOD_ATTRIBUTE, VmMoveResult::None),
            Kind::Weft if key != KEY => (sa_status::REQ_DENIED, VmMoveResult::Denied),
            Kind::Weft => (status::OK, self.hear(&asked)),
        };
        SaMad::status.set(&mut answer.mad.0, code);
        if is_moves {
            let said = VmMove { result, rounds: 5, mastership: self.mastership, ..asked };
            SaMad::data.set(&mut answer.mad.0, said.encode());
        }
        Some(answer)
    }

    fn hear(&mut self, asked: &VmMove) -> VmMoveResult {
        if asked.kind == VmMoveKind::Address {
            self.addresses.push(asked.lid);
        }
        if asked.kind != VmMoveKind::Announced {
            return VmMoveResult::Done;
        }
        self.is_told |= asked.mastership == self.mastership;
        if self.is_told { VmMoveResult::Done } else { VmMoveResult::Untold }
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
fn silent_switches_are_asked_as_a_table_of_the_move() {
    let mut site = Site::new(Kind::Weft);
    assert!(matches!(site.ask(1, SmWish::Hold), SmAnswer::Done(_)));
    site.client.ask(site.now, &request(2, SmWish::Silent), &places());
    let asked = site.client.poll_transmit(site.now).unwrap();
    let ask = VmMove::decode(&SaMad::data.get(&asked.mad.0));
    assert_eq!(
        (asked.mad.method(), asked.mad.attribute_id(), SaMad::sm_key.get(&asked.mad.0)),
        (Method::GetTable, sa_attribute::VM_MOVE_WRITE, KEY)
    );
    assert_eq!((ask.kind, ask.epoch), (VmMoveKind::Copy, 5), "as the move was asked for");
}

#[test]
fn an_sm_without_the_move_attribute_gets_no_key() {
    for kind in [Kind::Drops, Kind::Refuses] {
        let mut site = Site::new(kind);
        assert_eq!(site.ask(1, SmWish::Hold), SmAnswer::Unknown);
        assert!(site.now <= Time::from_secs(1), "{}", site.now);
        let before = site.now;
        assert_eq!(site.ask(2, SmWish::Move), SmAnswer::Unknown);
        assert_eq!(site.now, before, "what is known is not asked again while the machine is frozen");
        assert!(site.keys.iter().all(|key| *key == SmKey(0)));
    }
}

/// The words of a question that no one could be asked, and how long that took.
#[track_caller]
fn unready(site: &mut Site, number: u64, wish: SmWish) -> String {
    let before = site.now;
    let SmAnswer::Unready(words) = site.ask(number, wish) else { panic!("{:?}", site.answers) };
    let is_busy = matches!(site.kind, Kind::Busy | Kind::BusyWithMoves);
    let at_most = if is_busy { ASK_FOR + BUSY_FOR } else { ASK_FOR };
    let took = site.now - before;
    assert!((at_most..=at_most + Time::from_secs(1)).contains(&took), "it waits for {took}");
    words
}

#[test]
fn without_a_subnet_manager_each_question_ends() {
    let mut site = Site::new(Kind::None);
    for (number, wish) in [(1, SmWish::Hold), (2, SmWish::Move)] {
        let words = unready(&mut site, number, wish);
        assert_eq!(words, "no subnet manager has configured this VM manager's port");
    }
    // It comes, and another one takes its place.
    site.kind = Kind::Weft;
    assert!(matches!(site.ask(3, SmWish::Hold), SmAnswer::Done(_)));
    site.kind = Kind::Drops;
    assert_eq!(site.ask(4, SmWish::Move), SmAnswer::Timeout, "it knew moves a moment ago");
    assert_eq!(site.ask(5, SmWish::Hold), SmAnswer::Unknown);
    // Without a port nothing is asked, and what was asked ends.
    site.client.ask(site.now, &request(6, SmWish::Hold), &places());
    site.client.attach(None);
    assert_eq!(site.client.poll_answer(), Some((6, SmAnswer::Timeout)));
    site.client.ask(site.now, &request(7, SmWish::Hold), &places());
    assert_eq!(site.client.poll_answer(), Some((7, SmAnswer::Timeout)));
}

#[test]
fn a_dead_subnet_manager_is_not_one_that_knows_no_moves() {
    let kinds = [
        (Kind::Dead, "no subnet manager runs at LID 3 any more (status 0x0004)"),
        (Kind::Silent, "the subnet manager at LID 3 does not answer"),
        (Kind::Busy, "the subnet manager at LID 3 is busy"),
        (Kind::BusyWithMoves, "the subnet manager at LID 3 is busy"),
        (Kind::Dies, "the subnet manager at LID 3 does not answer"),
    ];
    for (kind, said) in kinds {
        for wish in [SmWish::Hold, SmWish::Move, SmWish::Plan] {
            let mut site = Site::new(kind);
            assert_eq!(unready(&mut site, 1, wish), said);
            assert!(site.keys.iter().all(|key| *key == SmKey(0)));
        }
    }
}

#[test]
fn requests_to_a_dead_sm_go_to_its_successor() {
    for kind in [Kind::Dead, Kind::Silent, Kind::Busy, Kind::BusyWithMoves, Kind::Dies, Kind::None] {
        // Before it was asked, and when it knew moves until then.
        for is_known in [false, true] {
            let mut site = Site::new(if is_known { Kind::Weft } else { kind });
            if is_known {
                assert!(matches!(site.ask(1, SmWish::Hold), SmAnswer::Done(_)));
                site.kind = kind;
            }
            let dies_at = site.now;
            site.next = Some((dies_at + Time::from_secs(3), Kind::Weft, Lid(9)));
            let wish = if is_known { SmWish::Move } else { SmWish::Hold };
            assert!(matches!(site.ask(2, wish), SmAnswer::Done(_)), "{:?}", site.answers);
            let took = site.now - dies_at;
            assert!(took <= Time::from_secs(5), "{took} until the successor is asked");
        }
    }
}

/// A fabric whose port says 0x0004 for a moment, since OpenSM takes over.
#[test]
fn a_successor_that_drops_the_attribute_does_not_know_it() {
    let mut site = Site::new(Kind::Weft);
    assert!(matches!(site.ask(1, SmWish::Hold), SmAnswer::Done(_)));
    site.kind = Kind::Dead;
    site.next = Some((site.now + Time::from_secs(2), Kind::Drops, Lid(9)));
    assert_eq!(site.ask(2, SmWish::Move), SmAnswer::Unknown);
}

#[test]
fn a_new_mastership_is_told_all_addresses_once() {
    let mut site = Site::new(Kind::Weft);
    let word = |first: u64| -> Vec<SmRequest> {
        let of = |number| {
            let mut one = request(number, SmWish::Address);
            one.moves[0].lid = Lid(number as u16);
            one
        };
        (first..first + 200).map(of).collect()
    };
    let tell = |site: &mut Site, first: u64| {
        site.go_on(|site| site.client.wants_word());
        site.client.take_word(&word(first), first + 199, &places());
        site.go_on(|site| site.is_told);
        let mut told = std::mem::take(&mut site.addresses);
        told.sort_unstable();
        let all: Vec<Lid> = (first..first + 200).map(|lid| Lid(lid as u16)).collect();
        assert_eq!(told, all);
    };
    tell(&mut site, 100);
    let until = site.now + Time::from_secs(10);
    site.go_on(|site| site.now >= until);
    assert!(!site.client.wants_word() && site.addresses.is_empty(), "it is told once");
    // Another one comes into charge: at another LID, or the same one after it was restarted.
    for (lid, mastership) in [(Lid(9), 6), (Lid(9), 7)] {
        (site.lid, site.mastership, site.is_told) = (lid, mastership, false);
        let before = site.now;
        tell(&mut site, 1000 * u64::from(mastership));
        let took = site.now - before;
        assert!(took <= Time::from_secs(3), "{took} until it has heard everything");
    }
    assert!(site.answers.is_empty(), "no one else has to do with that: {:?}", site.answers);
}

#[test]
fn a_move_of_nowhere_is_refused() {
    let mut site = Site::new(Kind::Weft);
    let nowhere = SmRequest { moves: Vec::new(), ..request(1, SmWish::Move) };
    site.client.ask(Time::ZERO, &nowhere, &places());
    assert!(matches!(site.client.poll_answer(), Some((1, SmAnswer::Refused(_)))));
}

/// A fabric is swept for longer than a question waits where no one answers.
#[test]
fn a_busy_successor_is_waited_for_longer_than_a_dead_one() {
    for (kind, is_waited_for) in [(Kind::Busy, true), (Kind::BusyWithMoves, true), (Kind::Dead, false)] {
        let mut site = Site::new(kind);
        site.next = Some((ASK_FOR + BUSY_FOR - Time::from_secs(5), Kind::Weft, Lid(3)));
        let answer = site.ask(1, SmWish::Hold);
        assert_eq!(matches!(answer, SmAnswer::Done(_)), is_waited_for, "{answer:?}");
    }
}

/// OpenSM's times: a standby polls every 10 s, and takes over when five polls in a row were not answered.
#[test]
fn standbys_that_poll_slowly_are_waited_for() {
    let options = crate::Options::default().with_standbys(Time::from_secs(10), 4);
    assert_eq!(options.ask_for, ASK_FOR + Time::from_secs(60));
    assert!(options.sm_timeout > options.ask_for + BUSY_FOR && options.answer_within > options.sm_timeout);
    let mut site = Site::new(Kind::Dead);
    site.client = SaClient::new(KEY, MKey(0), 1).waits(options.ask_for);
    site.client.attach(Some(PortNum(1)));
    site.next = Some((Time::from_secs(60), Kind::Weft, Lid(4)));
    assert!(matches!(site.ask(1, SmWish::Hold), SmAnswer::Done(_)), "{:?}", site.answers);
}
