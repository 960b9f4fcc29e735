//! RMPP over a pipe that loses, repeats and reorders. proptest prints the case, and its seed is in the case.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weft_machine::Time;
use weft_mgmt::rmpp::{Endpoint, InboxLimits, OutboxLimits, Timing, TransferId};
use weft_wire::{
    AddressedMad, Lid, Mad, MadHeader, Method, MgmtClass, RMPP_END, RmppHeader, RmppType, ServiceLevel,
    TransactionId,
};

/// A small generator, so that a case is one number.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// How bad the pipe is: of a hundred packets, how many are lost and how many come twice; and the longest delay.
#[derive(Clone, Copy, Debug)]
struct Pipe {
    loss: u64,
    twice: u64,
    delay_us: u64,
}

fn message(class: MgmtClass, method: Method, id: u64, data: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..class.data_offset() + data).map(|at| (at * 7 + id as usize) as u8).collect();
    let transaction_id = TransactionId(id);
    let header =
        MadHeader { base_version: 1, mgmt_class: class, method, transaction_id, ..Default::default() };
    bytes[..MadHeader::SIZE].copy_from_slice(&header.encode());
    bytes
}

struct World {
    ends: [Endpoint; 2],
    dice: Dice,
    pipe: Pipe,
    /// By time and order: to which end.
    flying: BTreeMap<(Time, u64), (usize, AddressedMad)>,
    serial: u64,
    now: Time,
    received: Vec<(TransferId, Vec<u8>)>,
    finished: Vec<(TransferId, bool)>,
}

impl World {
    fn new(seed: u64, pipe: Pipe, inbox: InboxLimits) -> Self {
        let end = || Endpoint::new(OutboxLimits::default(), inbox);
        Self {
            ends: [end(), end()],
            dice: Dice(seed),
            pipe,
            flying: BTreeMap::new(),
            serial: 0,
            now: Time::ZERO,
            received: Vec::new(),
            finished: Vec::new(),
        }
    }

    fn drain(&mut self, end: usize) {
        while let Some(mut mad) = self.ends[end].poll_transmit(self.now) {
            // What goes to lid 2 comes from lid 1, and the other way round.
            mad.lid = Lid(end as u16 + 1);
            let copies = 1 + u64::from(self.dice.roll(100) < self.pipe.twice);
            for _ in 0..copies {
                if self.dice.roll(100) >= self.pipe.loss {
                    let delay = Time::from_micros(10 + self.dice.roll(self.pipe.delay_us + 1));
                    self.flying.insert((self.now + delay, self.serial), (1 - end, mad));
                    self.serial += 1;
                }
            }
        }
        while let Some(finished) = self.ends[end].poll_finished() {
            self.finished.push((finished.id, finished.failure.is_none()));
        }
    }

    /// Runs until nothing is to be sent or received any more.
    fn run(&mut self) {
        for end in [0, 1] {
            self.drain(end);
        }
        for _ in 0..2_000_000 {
            let idle = |end: &Endpoint| end.outbox.is_empty() && end.inbox.receiving() == 0;
            if self.ends.iter().all(idle) && self.flying.is_empty() {
                return;
            }
            let arrival = self.flying.first_key_value().map(|(&(at, _), _)| at);
            let timers = [0, 1].map(|end| self.ends[end].next_timer().map(|timer| timer.at));
            let next = timers.into_iter().chain([arrival]).flatten().min().expect("somebody waits");
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let (_, (end, mad)) = self.flying.pop_first().expect("it was there");
                if let Some(received) = self.ends[end].handle(self.now, &mad) {
                    self.received.push((received.id, received.data));
                }
                self.drain(end);
            } else {
                for end in [0, 1] {
                    self.ends[end].handle_timeout(self.now);
                    self.drain(end);
                }
            }
        }
        panic!("it does not come to an end");
    }
}

fn pipe() -> impl Strategy<Value = Pipe> {
    (0u64..30, 0u64..20, 0u64..5000).prop_map(|(loss, twice, delay_us)| Pipe { loss, twice, delay_us })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// With tries enough, every message arrives whole and once, whatever happens to its packets.
    #[test]
    fn messages_arrive_whole_and_once(
        seed: u64,
        pipe in pipe(),
        window in 1u32..70,
        sizes in prop::collection::vec((0usize..9000, 0usize..3, any::<bool>()), 1..5),
    ) {
        let inbox = InboxLimits {
            window,
            total: Time::from_secs(1_000_000),
            linger: Time::from_secs(1_000_000),
            ..InboxLimits::default()
        };
        let mut world = World::new(seed, pipe, inbox);
        let timing = Timing { retries: 10_000, total: Time::from_secs(1_000_000), ..Timing::default() };
        let mut wanted = Vec::new();
        for (id, (size, class, answer)) in (0u64..).zip(sizes) {
            let class = [MgmtClass::SubnAdm, MgmtClass::OpenIbPing, MgmtClass::DevMgmt][class];
            let method = if answer { Method::GetTableResp } else { Method::GetMulti };
            let bytes = message(class, method, id, size);
            let end = (id % 2) as usize;
            let to = AddressedMad::gmp(Lid(2 - end as u16), ServiceLevel(0), Mad::default());
            world.ends[end].offer(Time::ZERO, &to, bytes.clone(), &timing).expect("there is room");
            wanted.push(bytes[RMPP_END..].to_vec());
        }
        world.run();
        prop_assert!(world.finished.iter().all(|(_, arrived)| *arrived), "{:?}", world.finished);
        prop_assert_eq!(world.finished.len(), wanted.len());
        let body = |(id, data): &(TransferId, Vec<u8>)| (id.transaction_id, data[RMPP_END..].to_vec());
        let mut received: Vec<_> = world.received.iter().map(body).collect();
        received.sort();
        let wanted: Vec<_> = (0u64..).map(TransactionId).zip(wanted).collect();
        prop_assert_eq!(received, wanted);
        prop_assert_eq!(world.ends.iter().map(|end| end.inbox.bytes() + end.outbox.bytes()).sum::<usize>(), 0);
    }

    /// With few tries on a bad pipe some fail; what is said to have arrived has, and nothing is left behind.
    #[test]
    fn a_message_reported_as_delivered_has_arrived(seed: u64, loss in 30u64..90, size in 0usize..6000) {
        let mut world = World::new(seed, Pipe { loss, twice: 5, delay_us: 100 }, InboxLimits::default());
        let bytes = message(MgmtClass::SubnAdm, Method::GetTableResp, 1, size);
        let to = AddressedMad::gmp(Lid(2), ServiceLevel(0), Mad::default());
        world.ends[0].offer(Time::ZERO, &to, bytes.clone(), &Timing::default()).expect("there is room");
        world.run();
        prop_assert_eq!(world.finished.len(), 1);
        prop_assert!(world.received.len() >= usize::from(world.finished[0].1));
        for (_, data) in &world.received {
            prop_assert_eq!(&data[RMPP_END..], &bytes[RMPP_END..]);
        }
        prop_assert!(world.ends.iter().all(|end| end.outbox.is_empty() && end.inbox.receiving() == 0));
    }

    /// Whatever comes in, an endpoint answers each packet with few, and holds no more than it may.
    #[test]
    fn nothing_from_outside_breaks_the_bounds(
        packets in prop::collection::vec((0u16..4, 0u8..6, 0u32..70, 0u32..900, any::<u8>(), 0u8..3), 0..400),
    ) {
        let limits = InboxLimits {
            transfers: 3, message_bytes: 2000, bytes: 4000, lingering: 2, ..InboxLimits::default()
        };
        let mut end = Endpoint::new(OutboxLimits::default(), limits);
        let to = AddressedMad::gmp(Lid(1), ServiceLevel(0), Mad::default());
        let own = message(MgmtClass::SubnAdm, Method::GetTableResp, 0, 5000);
        end.offer(Time::ZERO, &to, own, &Timing::default()).expect("there is room");
        let mut now = Time::ZERO;
        for (lid, kind, segment, length, flags, status) in packets {
            now += Time::from_millis(50);
            let mut mad = Mad::default();
            let head = message(MgmtClass::SubnAdm, Method::from_code(0x12 | flags & 0x80), 0, 0);
            mad.0[..head.len()].copy_from_slice(&head);
            mad.set_rmpp(&RmppHeader {
                version: 1,
                kind: RmppType::from_code(kind),
                resp_time: flags >> 3,
                last: flags & 2 != 0,
                first: flags & 1 != 0,
                active: true,
                status: if status == 2 { 120 } else { status },
                segment,
                length,
            });
            end.handle(now, &AddressedMad { mad, lid: Lid(lid), ..to });
            let said = std::iter::from_fn(|| end.poll_transmit(now)).count();
            prop_assert!(said <= 70, "{} packets for one", said);
            end.handle_timeout(now);
            prop_assert!(end.inbox.receiving() <= 3);
            prop_assert!(end.inbox.bytes() <= 4000, "{}", end.inbox.bytes());
        }
    }
}
