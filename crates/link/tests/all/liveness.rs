//! Agents that die, and agents that come back.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use common::{Agent, HIGH, LOW, VL15, Victim, cable, config, free_address, run};
use weft_link::{Authority, DownReason, Identity, LinkConfig, LinkEvent};
use weft_machine::Random;

use crate::common;

struct Ends {
    low: Identity,
    high: Identity,
    low_at: std::net::SocketAddr,
    high_at: std::net::SocketAddr,
}

impl Ends {
    fn new() -> Self {
        let authority = Authority::new("test").unwrap();
        Self {
            low: authority.issue(&[LOW]).unwrap(),
            high: authority.issue(&[HIGH]).unwrap(),
            low_at: free_address(),
            high_at: free_address(),
        }
    }

    fn low_victim(&self, config: LinkConfig) -> Victim {
        Victim::start(self.low_at, &self.low, config, vec![cable(LOW, HIGH, self.high_at)])
    }

    fn high_victim(&self, config: LinkConfig) -> Victim {
        Victim::start(self.high_at, &self.high, config, vec![cable(HIGH, LOW, self.low_at)])
    }

    fn low_agent(&self, config: LinkConfig) -> Agent {
        Agent::start(self.low_at, &self.low, config, vec![cable(LOW, HIGH, self.high_at)])
    }

    fn high_agent(&self, config: LinkConfig) -> Agent {
        Agent::start(self.high_at, &self.high, config, vec![cable(HIGH, LOW, self.low_at)])
    }
}

fn with_timeout(incarnation: u64, link_timeout_ms: u64) -> LinkConfig {
    LinkConfig { link_timeout_ms, ..config(incarnation) }
}

#[test]
fn a_killed_acceptor_is_noticed_by_its_silence() {
    run(async {
        let ends = Ends::new();
        let victim = ends.high_victim(with_timeout(1, 400));
        let mut low = ends.low_agent(with_timeout(2, 400));
        low.events.up().await;
        victim.kill();
        assert_eq!(low.events.down().await, DownReason::Silent);
    });
}

const LONG: Duration = Duration::from_secs(3);

/// Kills a peer of a quiet link, sends it something when half the link timeout is about over, and sees that its silence
/// is noticed in time all the same: QUIC's own idle timer begins again with this packet.
async fn send_to_the_dead(agent: &mut Agent, victim: Victim) {
    agent.events.up().await;
    let last_words = tokio::time::timeout(LONG / 10, agent.events.next()).await;
    assert!(last_words.is_err(), "{last_words:?}");
    victim.kill();
    let killed = Instant::now();
    let early = tokio::time::timeout(LONG.mul_f64(0.45), agent.events.next()).await;
    assert!(early.is_err(), "down long before the link timeout: {early:?}");
    agent.send(VL15, b"is anybody there");
    assert_eq!(agent.events.down().await, DownReason::Silent);
    let took = killed.elapsed();
    // From what was sent on it would be 1.45 times as long.
    assert!(took < LONG.mul_f64(1.3), "down only after {took:?}");
}

#[test]
fn sending_to_a_killed_acceptor_does_not_keep_its_link_alive() {
    run(async {
        let ends = Ends::new();
        let victim = ends.high_victim(with_timeout(1, 3000));
        let mut low = ends.low_agent(with_timeout(2, 3000));
        send_to_the_dead(&mut low, victim).await;
    });
}

#[test]
fn sending_to_a_killed_dialler_does_not_keep_its_link_alive() {
    run(async {
        let ends = Ends::new();
        let mut high = ends.high_agent(with_timeout(1, 3000));
        let victim = ends.low_victim(with_timeout(2, 3000));
        send_to_the_dead(&mut high, victim).await;
    });
}

/// Suspends an agent for a third of its link timeout, and sees that its link outlives that at both ends.
async fn suspend(sleeper: &mut Victim, other: &mut Agent) {
    sleeper.events.up().await;
    other.events.up().await;
    sleeper.suspend(Duration::from_secs(2)).await;
    other.send(VL15, b"good morning");
    assert_eq!(sleeper.events.packet().await.1.as_ref(), b"good morning");
    assert!(other.events.is_quiet());
}

#[test]
fn a_link_outlives_that_its_acceptor_is_suspended() {
    run(async {
        let ends = Ends::new();
        let mut sleeper = ends.high_victim(with_timeout(1, 6000));
        let mut low = ends.low_agent(with_timeout(2, 6000));
        suspend(&mut sleeper, &mut low).await;
    });
}

#[test]
fn a_link_outlives_that_its_dialler_is_suspended() {
    run(async {
        let ends = Ends::new();
        let mut high = ends.high_agent(with_timeout(1, 6000));
        let mut sleeper = ends.low_victim(with_timeout(2, 6000));
        suspend(&mut sleeper, &mut high).await;
    });
}

#[test]
fn an_agent_that_stops_has_told_all_its_peers_before_it_is_gone() {
    run(async {
        let authority = Authority::new("test").unwrap();
        let (low_at, high_at) = (free_address(), free_address());
        let cables = |from_low: bool| {
            let ports = (1..=200).map(|port| {
                let mut cable = if from_low { cable(LOW, HIGH, high_at) } else { cable(HIGH, LOW, low_at) };
                (cable.local.port.0, cable.remote.port.0) = (port, port);
                cable
            });
            ports.collect::<Vec<_>>()
        };
        let low = authority.issue(&[LOW]).unwrap();
        let high = authority.issue(&[HIGH]).unwrap();
        let victim = Victim::start(high_at, &high, with_timeout(1, 120_000), cables(false));
        let mut low = Agent::start(low_at, &low, with_timeout(2, 120_000), cables(true));
        // On a busy machine a handshake may be tried twice, and the link then comes up again.
        let mut up = BTreeSet::new();
        while up.len() < 200 {
            match low.events.next().await {
                LinkEvent::Up { link, .. } => assert!(up.insert(link)),
                LinkEvent::Down { link, .. } => assert!(up.remove(&link)),
                other => panic!("{other:?}"),
            }
        }
        victim.stop();
        let mut told = 0;
        while let Some(&last) = up.last() {
            match low.events.next().await {
                LinkEvent::Down { link, reason: DownReason::PeerShutdown } => {
                    assert!(up.remove(&link));
                    told += 1;
                }
                // Of a handshake tried twice, the second connection replaces the first.
                LinkEvent::Down { link, reason: DownReason::CutByPeer } => assert!(up.remove(&link)),
                LinkEvent::Up { link, .. } => assert!(up.insert(link)),
                other => panic!("{} links are up, {last:?} the last of them: {other:?}", up.len()),
            }
        }
        assert!(told >= 100, "{told} of 200");
    });
}

#[test]
fn a_killed_dialler_is_noticed_by_its_silence() {
    run(async {
        let ends = Ends::new();
        let mut high = ends.high_agent(with_timeout(1, 400));
        let victim = ends.low_victim(with_timeout(2, 400));
        high.events.up().await;
        victim.kill();
        assert_eq!(high.events.down().await, DownReason::Silent);
    });
}

#[test]
fn a_restarted_acceptor_relinks_long_before_the_timeout() {
    run(async {
        let ends = Ends::new();
        // So long that only the restarted agent's resets can be what ends the link within the test's patience.
        let victim = ends.high_victim(with_timeout(1, 120_000));
        let mut low = ends.low_agent(with_timeout(2, 120_000));
        low.events.up().await;
        victim.kill();
        let mut again = ends.high_victim(with_timeout(3, 120_000));
        // Whatever is sent to it next tells.
        low.send(VL15, &[0; 290]);
        assert_eq!(low.events.down().await, DownReason::Reset);
        low.events.up().await;
        again.events.up().await;
        low.send(VL15, b"new life");
        assert_eq!(again.events.packet().await.1.as_ref(), b"new life");
    });
}

#[test]
fn the_dialler_s_own_keepalive_finds_a_restarted_acceptor() {
    run(async {
        let ends = Ends::new();
        let victim = ends.high_victim(with_timeout(1, 2000));
        let mut low = ends.low_agent(with_timeout(2, 2000));
        low.events.up().await;
        victim.kill();
        let _again = ends.high_victim(with_timeout(3, 2000));
        assert_eq!(low.events.down().await, DownReason::Reset);
        low.events.up().await;
    });
}

#[test]
fn a_restarted_dialler_is_down_and_up() {
    run(async {
        let ends = Ends::new();
        let mut high = ends.high_agent(with_timeout(1, 120_000));
        let victim = ends.low_victim(with_timeout(2, 120_000));
        high.events.up().await;
        victim.kill();
        let mut again = ends.low_victim(with_timeout(3, 120_000));
        assert_eq!(high.events.down().await, DownReason::NewIncarnation);
        high.events.up().await;
        again.events.up().await;
        high.send(VL15, b"new life");
        assert_eq!(again.events.packet().await.1.as_ref(), b"new life");
    });
}

#[test]
fn a_second_connection_of_the_same_process_is_down_and_up() {
    run(async {
        let ends = Ends::new();
        let mut high = ends.high_agent(config(1));
        let mut first = ends.low_agent(config(2));
        first.events.up().await;
        high.events.up().await;
        // The same incarnation once more, from another port: as if its first connection had been forgotten.
        let cables = vec![cable(LOW, HIGH, ends.high_at)];
        let mut second = Agent::start(free_address(), &ends.low, config(2), cables);
        second.events.up().await;
        assert_eq!(high.events.down().await, DownReason::SecondConnection);
        high.events.up().await;
        // The one that was replaced hears of it, and what it sends no longer arrives.
        assert_eq!(first.events.down().await, DownReason::SecondConnection);
        first.links.set_enabled(common::LINK, false);
        second.send(VL15, b"newest");
        assert_eq!(high.events.packet().await.1.as_ref(), b"newest");
    });
}

#[test]
fn a_link_without_traffic_stays_up() {
    run(async {
        let ends = Ends::new();
        let mut high = ends.high_agent(with_timeout(1, 300));
        let mut low = ends.low_agent(with_timeout(2, 300));
        low.events.up().await;
        high.events.up().await;
        let five_timeouts = Duration::from_millis(1500);
        let happened = tokio::time::timeout(five_timeouts, low.events.next()).await;
        assert!(happened.is_err() && high.events.is_quiet(), "{happened:?}");
        assert!(low.links.stats(common::LINK).asked >= 5, "the dialler keeps it up");
        assert_eq!(low.links.stats(common::LINK).downs, 0);
    });
}

/// Passes packets between a dialler and an acceptor, each after a while, until dropped.
struct Detour(Vec<tokio::task::JoinHandle<()>>);

/// What loses packets, and the same ones each time.
const SEED: u64 = 17;

impl Detour {
    async fn to(acceptor: std::net::SocketAddr, delay: Duration) -> (Self, std::net::SocketAddr) {
        Self::lossy(acceptor, delay, 0).await
    }

    /// The same, where this number of a hundred packets does not arrive.
    async fn lossy(
        acceptor: std::net::SocketAddr,
        delay: Duration,
        lost: u32,
    ) -> (Self, std::net::SocketAddr) {
        let chance = |seed| {
            let mut random = Random::new(seed);
            move || random.below(100) < lost
        };
        let (mut lost_forth, mut lost_back) = (chance(SEED), chance(SEED + 1));
        let near = std::rc::Rc::new(tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let far = std::rc::Rc::new(tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap());
        far.connect(acceptor).await.unwrap();
        let at = near.local_addr().unwrap();
        let dialler = std::rc::Rc::new(std::cell::Cell::new(None));
        let (to, from, heard) = (far.clone(), near.clone(), dialler.clone());
        let forth = tokio::task::spawn_local(async move {
            let mut packet = vec![0; 65_536];
            while let Ok((length, sender)) = from.recv_from(&mut packet).await {
                heard.set(Some(sender));
                if lost_forth() {
                    continue;
                }
                let (to, packet) = (to.clone(), packet[..length].to_vec());
                tokio::task::spawn_local(async move {
                    tokio::time::sleep(delay).await;
                    let _ = to.send(&packet).await;
                });
            }
        });
        let back = tokio::task::spawn_local(async move {
            let mut packet = vec![0; 65_536];
            while let Ok(length) = far.recv(&mut packet).await {
                if lost_back() {
                    continue;
                }
                let (to, packet, dialler) = (near.clone(), packet[..length].to_vec(), dialler.clone());
                tokio::task::spawn_local(async move {
                    tokio::time::sleep(delay).await;
                    if let Some(dialler) = dialler.get() {
                        let _ = to.send_to(&packet, dialler).await;
                    }
                });
            }
        });
        (Self(vec![forth, back]), at)
    }
}

impl Drop for Detour {
    fn drop(&mut self) {
        self.0.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// A round trip of 300 ms does not fit into a link timeout of 200 ms: there the link would go up and down for ever. It has eight
/// round trips instead, and is down after that.
#[test]
fn a_link_over_a_long_way_has_eight_round_trips() {
    run(async {
        let ends = Ends::new();
        let (detour, at) = Detour::to(ends.high_at, Duration::from_millis(150)).await;
        let mut high = ends.high_agent(with_timeout(1, 200));
        let mut low = Agent::start(ends.low_at, &ends.low, with_timeout(2, 200), vec![cable(LOW, HIGH, at)]);
        low.events.up().await;
        high.events.up().await;
        let link = low.links.links()[0];
        let (timeout, round_trip) = low.links.patience(link).unwrap();
        assert!(round_trip >= Duration::from_millis(300), "{round_trip:?}");
        assert!(
            timeout >= Duration::from_millis(2400) && timeout <= Duration::from_millis(3200),
            "{timeout:?}"
        );
        // Ten times the link timeout without a word but the questions.
        let stood = tokio::time::timeout(Duration::from_secs(2), low.events.next()).await;
        assert!(stood.is_err(), "{stood:?}");
        drop(detour);
        let cut = std::time::Instant::now();
        assert_eq!(low.events.down().await, DownReason::Silent);
        // QUIC's own timer would take 20 s.
        assert!(cut.elapsed() <= Duration::from_secs(10), "{:?}", cut.elapsed());
        assert_eq!(low.links.patience(link), None);
    });
}

/// Of twenty packets one is lost, in both directions: a silence of one link timeout would be chance too often.
#[test]
fn a_link_over_a_lossy_way_has_two_timeouts() {
    run(async {
        eprintln!("seed {SEED}");
        let ends = Ends::new();
        let (_detour, at) = Detour::lossy(ends.high_at, Duration::from_millis(5), 5).await;
        let mut high = ends.high_agent(with_timeout(1, 2000));
        let mut low = Agent::start(ends.low_at, &ends.low, with_timeout(2, 2000), vec![cable(LOW, HIGH, at)]);
        low.events.up().await;
        high.events.up().await;
        let link = low.links.links()[0];
        let timeout = || low.links.patience(link).unwrap().0.as_millis();
        assert_eq!(timeout(), 2000, "nothing is known of the way yet");
        // Of 600 about 30 are lost, and 8 are 5 of a thousand beside the thousand that are taken to have arrived.
        for _ in 0..60 {
            // No two of this size share a packet of QUIC's.
            (0..10).for_each(|_| low.send(VL15, &[0; 3500]));
            // QUIC counts a packet as lost when later ones were acknowledged.
            while tokio::time::timeout(Duration::from_millis(20), high.events.next()).await.is_ok() {}
        }
        assert_eq!(timeout(), 4000);
    });
}
