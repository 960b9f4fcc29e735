use super::*;

use Action::{Configure, FallSilent, HandOver, Nothing, Poll, Resign, Sweep, TakeOver};
use State::{Awaiting, Discovering, Master, NotActive, Standby, Yielding};

const STATES: [State; 6] = [Discovering, Standby, Master, Awaiting, Yielding, NotActive];

/// A row: what happens, and what comes of it in each of [`STATES`].
type Row = (Signal, [Option<(State, Action)>; 6]);

fn to(state: State, action: Action) -> Option<(State, Action)> {
    Some((state, action))
}

fn table() -> Vec<Row> {
    use Signal::{Attached, Command, Handed as H, Polled as P};
    let found = Signal::Found;
    let control = Signal::Control;
    let (none, sweep) = (None, to(Master, Sweep));
    let (standby, look) = (to(Standby, Poll), to(Discovering, Sweep));
    let (goes_on, waits, yields) = (to(Master, Configure), to(Awaiting, Poll), to(Yielding, HandOver));
    let taken = to(Master, TakeOver);
    vec![
        //            Discovering  Standby                     Master   Awaiting               Yielding                NotActive
        (Attached, [look, look, look, look, look, look]),
        (found(Found::Nobody), [goes_on, none, goes_on, goes_on, none, none]),
        (found(Found::LowerMaster), [standby, none, waits, waits, none, none]),
        (found(Found::HigherMaster), [standby, none, yields, yields, none, none]),
        (found(Found::HigherStandby), [standby, none, yields, yields, none, none]),
        (found(Found::HigherDiscovering), [standby, none, goes_on, goes_on, none, none]),
        (P(Polled::Alive), [none, to(Standby, Nothing), none, to(Awaiting, Nothing), none, none]),
        (P(Polled::Gone), [none, look, none, taken, none, none]),
        (P(Polled::Resigned), [none, look, none, taken, none, none]),
        (control(Control::Handover), [taken, taken, taken, taken, taken, none]),
        (control(Control::Acknowledge), [none, to(Standby, Nothing), none, none, to(Standby, Resign), none]),
        (control(Control::Disable), [none, to(NotActive, FallSilent), none, none, none, none]),
        (control(Control::Standby), [none, none, none, none, none, standby]),
        (control(Control::Discover), [none, look, none, none, none, none]),
        (H(Handed::Accepted), [none, none, none, none, to(Standby, Resign), none]),
        (H(Handed::Refused), [none, none, none, none, sweep, none]),
        (H(Handed::Unheard), [none, none, none, none, sweep, none]),
        (Command, [look, look, sweep, to(Awaiting, Sweep), to(Yielding, Nothing), look]),
    ]
}

#[test]
fn every_signal_in_every_state_leads_where_the_table_says() {
    for (signal, row) in table() {
        for (state, wanted) in STATES.into_iter().zip(row) {
            assert_eq!(next(state, signal), wanted, "{signal:?} in {state:?}");
        }
    }
}

#[test]
fn the_table_has_every_signal_once() {
    let found = [
        Found::Nobody,
        Found::LowerMaster,
        Found::HigherMaster,
        Found::HigherStandby,
        Found::HigherDiscovering,
    ];
    let controls = (0..=6).filter_map(Control::from_modifier);
    let all: Vec<Signal> = found
        .map(Signal::Found)
        .into_iter()
        .chain([Polled::Alive, Polled::Gone, Polled::Resigned].map(Signal::Polled))
        .chain(controls.map(Signal::Control))
        .chain([Handed::Accepted, Handed::Refused, Handed::Unheard].map(Signal::Handed))
        .chain([Signal::Attached, Signal::Command])
        .collect();
    let rows: Vec<Signal> = table().into_iter().map(|(signal, _)| signal).collect();
    assert_eq!(all.len(), rows.len());
    assert!(all.iter().all(|signal| rows.iter().filter(|row| *row == signal).count() == 1));
}

#[test]
fn modifiers_are_those_of_the_architecture() {
    for modifier in 1..=5 {
        assert_eq!(Control::from_modifier(modifier).map(Control::modifier), Some(modifier));
    }
    assert_eq!((Control::from_modifier(0), Control::from_modifier(6)), (None, None));
    for sender in [SmState::NotActive, SmState::Discovering, SmState::Standby, SmState::Master] {
        let (master, standby) = (sender == SmState::Master, sender == SmState::Standby);
        assert_eq!(Control::Handover.may_come_from(sender), master);
        assert_eq!(Control::Disable.may_come_from(sender), master);
        assert_eq!(Control::Acknowledge.may_come_from(sender), master || standby);
    }
}

#[test]
fn the_higher_priority_wins_and_then_the_lower_guid() {
    let rank = |priority, guid| Rank { priority, guid: Guid(guid) };
    assert!(rank(1, 9).beats(rank(0, 1)) && !rank(0, 1).beats(rank(1, 9)));
    assert!(rank(1, 1).beats(rank(1, 9)) && !rank(1, 9).beats(rank(1, 1)));
    assert!(!rank(1, 1).beats(rank(1, 1)));
}

#[test]
fn a_master_alone_writes_and_who_waits_polls() {
    for state in STATES {
        assert_eq!(state.is_in_charge(), matches!(state, Master | Awaiting | Yielding), "{state:?}");
        assert_eq!(state.polls(), matches!(state, Standby | Awaiting), "{state:?}");
        assert_eq!(state.sweeps(), matches!(state, Discovering | Master | Awaiting), "{state:?}");
    }
}
