//! Two agents and the cable between them, over real sockets.

use std::time::Duration;

use bytes::Bytes;
use common::{Agent, HIGH, LINK, LOW, VL15, cable, config, free_address, pair, run};
use weft_link::{
    Authority, BindError, Cable, Credentials, DownReason, DropReason, LinkEvent, LinkIndex, Links,
    PeerAddress, SendOutcome,
};
use weft_wire::{DataPacket, FlowControl, PortNum, VirtualLane};

use crate::common;

#[test]
fn packets_pass_both_ways_on_the_management_lane() {
    run(async {
        let (mut low, mut high) = pair(|_| {}).await;
        low.send(VL15, &[1; 290]);
        assert_eq!(high.events.packet().await, (VL15, Bytes::from(vec![1; 290])));
        high.send(VL15, &[2; 290]);
        assert_eq!(low.events.packet().await, (VL15, Bytes::from(vec![2; 290])));
        assert_eq!((low.links.stats(LINK).sent_packets, low.links.stats(LINK).received_packets), (1, 1));
        assert!(low.links.is_up(LINK) && high.links.is_up(LINK));
    });
}

#[test]
fn data_lanes_are_ordered_and_carry_the_longest_packets() {
    run(async {
        let (low, mut high) = pair(|_| {}).await;
        for number in 0..200u8 {
            low.send(VirtualLane(0), &vec![number; 4096 + 200]);
            low.send(VirtualLane(14), &[number]);
        }
        let (mut on_0, mut on_14) = (0, 0);
        while (on_0, on_14) != (200, 200) {
            let (lane, packet) = high.events.packet().await;
            if lane == VirtualLane(0) {
                assert_eq!((packet.len(), packet[0]), (4296, on_0));
                on_0 += 1;
            } else {
                assert_eq!((lane, packet.as_ref()), (VirtualLane(14), &[on_14][..]));
                on_14 += 1;
            }
        }
    });
}

/// A cable whose other end is known by name.
fn named(host: &str, port: u16) -> Cable {
    Cable { remote_addr: PeerAddress::new(host, port).unwrap(), ..cable(LOW, HIGH, free_address()) }
}

#[test]
fn a_peer_is_found_by_name() {
    run(async {
        let authority = Authority::new("test").unwrap();
        let (low_at, high_at) = (free_address(), free_address());
        let identity = authority.issue(&[HIGH]).unwrap();
        let mut high = Agent::start(high_at, &identity, config(1), vec![cable(HIGH, LOW, low_at)]);
        let identity = authority.issue(&[LOW]).unwrap();
        let mut low = Agent::start(low_at, &identity, config(2), vec![named("localhost", high_at.port())]);
        low.events.up().await;
        high.events.up().await;
        assert_eq!(low.links.stats(LINK).unresolved, 0);
    });
}

#[test]
fn a_name_that_does_not_resolve_is_told_once_and_tried_again() {
    run(async {
        let authority = Authority::new("test").unwrap();
        let identity = authority.issue(&[LOW]).unwrap();
        let mut low = Agent::start(free_address(), &identity, config(1), vec![named("nowhere.invalid", 9)]);
        let LinkEvent::Lookup { link: LINK, failure: Some(_) } = low.events.next().await else {
            panic!("another event")
        };
        let patience = tokio::time::timeout(Duration::from_secs(60), async {
            while low.links.stats(LINK).unresolved < 3 {
                tokio::task::yield_now().await;
            }
        });
        patience.await.unwrap();
        assert_eq!(low.links.stats(LINK).dials, 0, "there was nothing to dial");
        assert!(low.events.is_quiet(), "the same failure is no news");
    });
}

#[test]
fn only_packets_without_room_are_dropped_and_counted() {
    run(async {
        let (low, mut high) = pair(|config| {
            config.vl15_queue_packets = 4;
            config.datagram_send_bytes = 2048;
        })
        .await;
        // All in one turn of the loop, so that QUIC cannot empty its buffer meanwhile.
        let outcomes: Vec<_> =
            (0..100u8).map(|number| low.links.send(LINK, VL15, Bytes::from(vec![number; 290]))).collect();
        let kept: Vec<u8> = (0..100u8)
            .filter(|number| !matches!(outcomes[usize::from(*number)], SendOutcome::Dropped(_)))
            .collect();
        assert!(outcomes.contains(&SendOutcome::Sent) && outcomes.contains(&SendOutcome::Queued));
        assert_eq!(outcomes.last(), Some(&SendOutcome::Dropped(DropReason::QueueFull)));
        assert_eq!(low.links.stats(LINK).dropped_packets, 100 - kept.len() as u64);
        for number in kept {
            assert_eq!(high.events.packet().await.1[0], number);
        }
        low.send(VL15, b"the queue is free again");
        assert_eq!(high.events.packet().await.1.as_ref(), b"the queue is free again");
    });
}

fn data(number: u64, vl: u8) -> DataPacket {
    let opcode = weft_wire::opcode::RC_SEND_ONLY;
    DataPacket { opcode, sequence: number, payload: 2048, vl: VirtualLane(vl), ..DataPacket::default() }
}

fn credit(fccl: u16, vl: u8) -> FlowControl {
    FlowControl { op: 0, fctbs: 7, vl: VirtualLane(vl), fccl }
}

#[test]
fn packets_and_flow_control_of_a_lane_stay_in_order() {
    run(async {
        let (low, mut high) = pair(|_| {}).await;
        for number in 0..300 {
            assert_eq!(low.links.send_data(LINK, data(number, 3)), SendOutcome::Queued);
            assert_eq!(low.links.send_credit(LINK, credit(number as u16, 3)), SendOutcome::Queued);
            low.send(VirtualLane(3), &[number as u8; 290]);
        }
        for number in 0..300 {
            match high.events.next().await {
                LinkEvent::ReceivedData { packet, .. } => assert_eq!(packet, data(number, 3)),
                other => panic!("{other:?}"),
            }
            match high.events.next().await {
                LinkEvent::Credit { flow_control, .. } => assert_eq!(flow_control, credit(number as u16, 3)),
                other => panic!("{other:?}"),
            }
            assert_eq!(high.events.packet().await.1[0], number as u8);
        }
        let (sent, received) = (low.links.stats(LINK), high.links.stats(LINK));
        assert_eq!((sent.sent_packets, sent.sent_credits), (600, 300));
        assert_eq!((received.received_packets, received.received_credits), (600, 300));
    });
}

#[test]
fn a_data_lane_that_finds_no_room_takes_the_link_down() {
    run(async {
        let (mut low, mut high) = pair(|config| config.lane_queue_frames = 3).await;
        let send = |lane, length| low.links.send(LINK, VirtualLane(lane), Bytes::from(vec![0; length]));
        assert_eq!(send(7, 5000), SendOutcome::Dropped(DropReason::TooLong));
        assert_eq!(send(15, 5000), SendOutcome::Dropped(DropReason::TooLong));
        assert_eq!(send(16, 10), SendOutcome::Dropped(DropReason::NoSuchLane));
        assert_eq!(low.links.send_data(LINK, data(0, 15)), SendOutcome::Dropped(DropReason::NoSuchLane));
        let nowhere = low.links.send(LinkIndex(9), VL15, Bytes::new());
        assert_eq!(nowhere, SendOutcome::Dropped(DropReason::NoSuchLane));
        for _ in 0..3 {
            assert_eq!(send(5, 10), SendOutcome::Queued);
        }
        assert_eq!(send(6, 10), SendOutcome::Queued, "lanes have bounds of their own");
        assert!(low.links.is_up(LINK), "so far nothing was lost");
        assert_eq!(low.links.send_credit(LINK, credit(1, 5)), SendOutcome::Dropped(DropReason::QueueFull));
        assert!(!low.links.is_up(LINK));
        assert_eq!(send(5, 10), SendOutcome::Dropped(DropReason::LinkDown));
        let stats = low.links.stats(LINK);
        assert_eq!((stats.overflows, stats.dropped_packets, stats.sent_packets), (1, 5, 4));
        assert_eq!(low.events.down().await, DownReason::Overflow);
        // The link's next life begins without anything of the last one.
        while let LinkEvent::Received { .. } = high.events.next().await {}
        high.events.up().await;
        low.events.up().await;
        low.send(VirtualLane(5), b"anew");
        assert_eq!(high.events.packet().await, (VirtualLane(5), Bytes::from_static(b"anew")));
    });
}

#[test]
fn a_peer_that_overruns_its_credit_is_disconnected_and_counted() {
    run(async {
        let (mut low, mut high) = pair(|_| {}).await;
        high.links.overrun(LINK);
        assert!(!high.links.is_up(LINK));
        assert_eq!(high.events.down().await, DownReason::Overrun);
        let told = low.events.down().await;
        assert!(matches!(&told, DownReason::ClosedByPeer(text) if text.contains("credit")), "{told:?}");
        assert_eq!((high.links.stats(LINK).overruns, low.links.stats(LINK).overruns), (1, 0));
        low.events.up().await;
        high.events.up().await;
    });
}

#[test]
fn a_cut_link_stays_down_until_it_is_mended() {
    run(async {
        let (mut low, mut high) = pair(|_| {}).await;
        for cut_by_dialler in [true, false] {
            let (one, other) = if cut_by_dialler { (&mut low, &mut high) } else { (&mut high, &mut low) };
            one.links.set_enabled(LINK, false);
            assert!(!one.links.is_up(LINK));
            let outcome = one.links.send(LINK, VL15, Bytes::from_static(b"x"));
            assert_eq!(outcome, SendOutcome::Dropped(DropReason::LinkDown));
            assert_eq!(one.events.down().await, DownReason::Cut);
            assert_eq!(other.events.down().await, DownReason::CutByPeer);
            if !cut_by_dialler {
                // The dialler has been sent away at least once before the link is mended.
                while one.links.stats(LINK).refused == 0 {
                    tokio::task::yield_now().await;
                }
            }
            one.links.set_enabled(LINK, true);
            one.events.up().await;
            other.events.up().await;
        }
        assert!(low.events.is_quiet() && high.events.is_quiet(), "cuts are not reported as refusals");
    });
}

#[test]
fn an_agent_that_stops_says_so() {
    run(async {
        let (mut low, mut high) = pair(|_| {}).await;
        low.links.shutdown().await;
        assert_eq!(high.events.down().await, DownReason::PeerShutdown);
        assert_eq!(low.events.down().await, DownReason::Shutdown);
        assert_eq!(high.links.stats(LINK).downs, 1);
    });
}

#[test]
fn dialling_waits_for_the_word_and_for_the_peer() {
    run(async {
        let authority = Authority::new("test").unwrap();
        let (low_at, high_at) = (free_address(), free_address());
        let low_identity = authority.issue(&[LOW]).unwrap();
        // The dialler is there first and finds no one.
        let mut low = Agent::start(low_at, &low_identity, config(1), vec![cable(LOW, HIGH, high_at)]);
        while low.links.stats(LINK).dials == 0 {
            tokio::task::yield_now().await;
        }
        let high_identity = authority.issue(&[HIGH]).unwrap();
        let mut high = Agent::start(high_at, &high_identity, config(2), vec![cable(HIGH, LOW, low_at)]);
        low.events.up().await;
        high.events.up().await;
        assert_eq!(high.links.stats(LINK).dials, 0, "only the lower end dials");
    });
}

#[test]
fn one_agent_with_several_devices_dials_with_the_name_of_each() {
    run(async {
        let authority = Authority::new("test").unwrap();
        let (many_at, high_at) = (free_address(), free_address());
        let guids = [LOW, weft_wire::Guid(0x11), weft_wire::Guid(0x12)];
        let many = authority.issue(&guids).unwrap();
        let cables = |far: bool| {
            guids
                .iter()
                .map(|guid| {
                    let mut cable = cable(*guid, HIGH, high_at);
                    cable.remote.port.0 = guid.0 as u8;
                    if far {
                        (cable.local, cable.remote, cable.remote_addr) =
                            (cable.remote, cable.local, many_at.into());
                    }
                    cable
                })
                .collect::<Vec<_>>()
        };
        let mut high = Agent::start(high_at, &authority.issue(&[HIGH]).unwrap(), config(1), cables(true));
        let mut many = Agent::start(many_at, &many, config(2), cables(false));
        for _ in guids {
            assert!(matches!(many.events.next().await, weft_link::LinkEvent::Up { .. }));
            assert!(matches!(high.events.next().await, weft_link::LinkEvent::Up { .. }));
        }
        assert_eq!((many.links.up_count(), high.links.up_count()), (3, 3));
    });
}

#[test]
fn a_busy_port_and_a_cable_listed_twice_are_errors() {
    run(async {
        let (low, _high) = pair(|_| {}).await;
        let identity = Authority::new("test").unwrap().issue(&[LOW]).unwrap();
        let credentials = Credentials::new(identity).unwrap();
        let handler = std::rc::Rc::new(Nobody);
        let busy = low.links.local_addr().unwrap();
        let error = Links::bind(busy, &credentials, config(1), vec![], handler.clone()).err().unwrap();
        assert!(matches!(error, BindError::Socket { address, .. } if address == busy), "{error:?}");
        let twice = vec![cable(LOW, HIGH, busy); 2];
        let error = Links::bind(free_address(), &credentials, config(1), twice, handler).err().unwrap();
        assert!(matches!(error, BindError::DuplicateCable(..)), "{error:?}");
    });
}

/// Cables that come and go leave tables as long as they were: an index is given again once the last task of its cable has ended.
#[test]
fn a_thousand_cables_that_come_and_go_leave_no_trace() {
    run(async {
        let (low, high) = pair(|_| {}).await;
        let nobody = free_address();
        let of_port = |local, remote, at, port| {
            let mut cable = cable(local, remote, at);
            (cable.local.port, cable.remote.port) = (PortNum(port), PortNum(port));
            cable
        };
        for round in 0..1000 {
            // One is dialled in vain, and the peer of the other does not come.
            let links = [
                low.links.add(of_port(LOW, HIGH, nobody, 2)).unwrap(),
                high.links.add(of_port(HIGH, LOW, nobody, 2)).unwrap(),
            ];
            assert!(links.iter().all(|link| link.0 <= 2), "round {round}: {links:?}");
            for _ in 0..round % 7 {
                tokio::task::yield_now().await;
            }
            low.links.remove(links[0]);
            high.links.remove(links[1]);
            tokio::task::yield_now().await;
        }
        assert!(low.links.is_up(LINK) && high.links.is_up(LINK));
    });
}

/// The same with links that come up; what the old one still tells is never the new one's.
#[test]
fn an_index_is_not_given_again_before_the_last_word_of_its_link() {
    run(async {
        let (mut low, mut high) = pair(|_| {}).await;
        let (at_low, at_high) = (low.links.local_addr().unwrap(), high.links.local_addr().unwrap());
        let mut links = [LINK; 2];
        for _ in 0..50 {
            low.links.remove(links[0]);
            high.links.remove(links[1]);
            links[1] = high.links.add(cable(HIGH, LOW, at_low)).unwrap();
            links[0] = low.links.add(cable(LOW, HIGH, at_high)).unwrap();
            assert!(links.iter().all(|link| link.0 <= 3), "{links:?}");
            for (agent, link) in [(&mut low, links[0]), (&mut high, links[1])] {
                loop {
                    match agent.events.next().await {
                        LinkEvent::Up { link: up, .. } if up == link => break,
                        LinkEvent::Down { link: down, .. } => assert_ne!(down, link),
                        LinkEvent::Refused { .. } => {}
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
        assert!(low.links.is_up(links[0]) && high.links.is_up(links[1]));
    });
}

struct Nobody;

impl weft_link::Handler for Nobody {
    fn on_event(&self, event: weft_link::LinkEvent) {
        panic!("nobody listens for {event:?}");
    }
}
