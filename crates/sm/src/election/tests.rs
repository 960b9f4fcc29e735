use weft_mgmt::DirectedPath;

use super::*;
use crate::{ElectionOptions, KeyOptions};

const OTHER: Guid = Guid(1);

fn peer(state: SmState) -> Peer {
    Peer { guid: OTHER, lid: Lid(1), path: DirectedPath::HERE, priority: 9, state, sm_key: SmKey(1) }
}

fn options() -> Options {
    Options {
        keys: KeyOptions { sm_key: SmKey(1), ..KeyOptions::default() },
        election: ElectionOptions { polling_ms: 1000, polling_retries: 2, ..ElectionOptions::default() },
        ..Options::default()
    }
}

fn election(state: State, peers: &[Peer]) -> Election {
    let mut election = Election { state, guid: Some(Guid(5)), ..Election::default() };
    election.judge(Time::ZERO, peers.to_vec(), &options());
    election
}

#[test]
fn a_stuck_discovering_peer_is_polled_less_and_then_never() {
    let stuck = peer(SmState::Discovering);
    let mut election = election(State::Master, &[stuck]);
    let most = Time::from_secs(10);
    let mut look = |peer| {
        election.judge(Time::ZERO, vec![peer], &options());
        election.look_again = true;
        election.look_delay(most)
    };
    let looks: Vec<Option<Time>> = (0..6).map(|_| look(stuck)).collect();
    let seconds = |seconds| Some(Time::from_secs(seconds));
    assert_eq!(looks, [seconds(1), seconds(2), seconds(4), seconds(8), None, None]);
    assert_eq!(look(peer(SmState::Standby)), seconds(1), "it has settled");
}

#[test]
fn a_handover_claim_starts_one_sweep_per_polling_interval() {
    let claim = |sm_state| SmInfo { guid: OTHER, sm_key: SmKey(1), act_count: 0, priority: 9, sm_state };
    let (master, standby) = (claim(SmState::Master), claim(SmState::Standby));
    let mut stranger = election(State::Master, &[]);
    let heeded: Vec<u64> = (0..3000)
        .step_by(10)
        .filter(|ms| stranger.heeds(Time::from_millis(*ms), &master, &options()))
        .collect();
    assert_eq!(heeded, [0, 1000, 2000]);
    assert!(
        !election(State::Standby, &[]).heeds(Time::ZERO, &master, &options()),
        "it has nothing to hand over"
    );
    let lower = SmInfo { priority: 0, guid: Guid(6), ..master };
    assert!(!election(State::Master, &[]).heeds(Time::ZERO, &lower, &options()));
    let foreign = Peer { sm_key: SmKey(2), ..peer(SmState::Master) };
    assert!(!election(State::Master, &[foreign]).heeds(Time::ZERO, &master, &options()));
    // Beside a master there is no standby of higher rank for long.
    for found in [None, Some(SmState::Standby), Some(SmState::Discovering)] {
        let peers: Vec<Peer> = found.map(peer).into_iter().collect();
        assert!(election(State::Master, &peers).heeds(Time::ZERO, &standby, &options()), "{found:?}");
    }
    let settled = Peer { priority: 0, ..peer(SmState::Standby) };
    let waiting = SmInfo { priority: 0, guid: Guid(6), ..standby };
    assert!(
        !election(State::Master, &[settled]).heeds(Time::ZERO, &waiting, &options()),
        "it is as it should be"
    );
    // One of lower rank takes nothing over, but is to be known as it is.
    let (below, known) =
        (SmInfo { priority: 0, ..standby }, Peer { priority: 0, ..peer(SmState::Discovering) });
    assert!(Rank { priority: 15, guid: Guid(5) }.beats(known.rank()));
    let mut high = options();
    high.election.priority = 15;
    assert!(election(State::Master, &[known]).heeds(Time::ZERO, &below, &high));
}

/// A HANDOVER that was lost, or refused, is not the last one: the standby's polls call for the next, ever more rarely.
#[test]
fn a_failed_handover_is_retried_ever_more_rarely() {
    let options = options();
    let standby = peer(SmState::Standby);
    let shown =
        SmInfo { guid: OTHER, sm_key: SmKey(1), act_count: 0, priority: 9, sm_state: SmState::Standby };
    let mut election = election(State::Master, &[]);
    let (mut now, mut asked, mut heeded) = (Time::ZERO, Vec::new(), false);
    while now < Time::from_secs(40) {
        let (found, target) = election.judge(now, vec![standby], &options);
        if found == Found::HigherStandby {
            (election.state, election.target) = (State::Yielding, target);
            asked.push(now.as_nanos() / 1_000_000_000);
            election.refused(now, &options);
            election.state = State::Master;
        } else {
            assert!(!heeded, "a sweep for nothing at {now}");
        }
        while now < Time::from_secs(40) {
            now += Time::from_millis(100);
            heeded = election.heeds(now, &shown, &options);
            if heeded {
                break;
            }
        }
    }
    assert_eq!(asked, [0, 1, 3, 7, 15, 31]);
    // One that has started again is asked at once.
    election.judge(now, vec![peer(SmState::Discovering)], &options);
    assert_eq!(election.judge(now, vec![standby], &options).0, Found::HigherStandby);
}

/// What a poll hears changes what is known of the other, and one that was to take over and does not is waited for no
/// longer than one that is silent.
#[test]
fn polls_tell_what_has_become_of_the_other() {
    let options = options();
    let mut election = election(State::Standby, &[peer(SmState::Master)]);
    election.target = Some(peer(SmState::Master));
    election.begin_polls(Time::ZERO);
    let mut now = Time::ZERO;
    let mut poll = |election: &mut Election, sm_state| {
        now += options.polling();
        let (asked, _) = election.expire(now, &options, 0);
        let mut answer = asked.expect("a poll").mad;
        let info = SmInfo { guid: OTHER, sm_key: SmKey(1), act_count: 0, priority: 10, sm_state };
        answer.set_smp_data(&info.encode());
        Smp::method.set(&mut answer.0, Method::GetResp);
        election.answered(now, &answer, &options)
    };
    let polled = |polled| Some(Signal::Polled(polled));
    assert_eq!(poll(&mut election, SmState::Master), polled(Polled::Alive));
    assert_eq!((election.peers[0].priority, election.peers[0].state), (10, SmState::Master));
    for _ in 0..2 {
        assert_eq!(poll(&mut election, SmState::Standby), polled(Polled::Alive));
        assert_eq!(election.peers[0].state, SmState::Standby);
    }
    assert_eq!(poll(&mut election, SmState::Standby), polled(Polled::Resigned));
}
