//! The states of a subnet manager among others (IBA 14.4.1), and what leads from one to the next.
//!
//! ```text
//!                      a master, or one of higher rank
//!   ┌───────────────┐ ────────────────────────────────▶ ┌───────────┐  DISABLE   ┌────────────┐
//!   │  DISCOVERING  │                                   │  STANDBY  │ ─────────▶ │ NOT-ACTIVE │
//!   └───────────────┘ ◀──────────────────────────────── └───────────┘ ◀───────── └────────────┘
//!       │ no such one    master gone or resigned; DISCOVER  ▲    │      STANDBY
//!       ▼                                                   │    │ HANDOVER
//!   ┌──────────────────────────── MASTER ───────────────────│────▼──────────────────────┐
//!   │             higher master, or higher one in STANDBY   │                           │
//!   │   ┌─────────┐ ─────────────────────────────▶ ┌──────────┐  accepted: STANDBY      │
//!   │   │ Master  │ ◀───────────────────────────── │ Yielding │                         │
//!   │   └─────────┘     refused, or not heard      └──────────┘                         │
//!   │      │   ▲ HANDOVER; the other is gone or resigned                                │
//!   │      ▼   │                                                                        │
//!   │   ┌──────────┐                                                                    │
//!   │   │ Awaiting │ lower master: it must hand over before this one writes             │
//!   │   └──────────┘                                                                    │
//!   └───────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Higher rank is higher priority, then the lower port GUID. The functions here are pure; `mod.rs` asks the questions.

use weft_wire::{Guid, SmState};

/// Who goes first: the higher priority, then the lower GUID. A greater rank wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    pub(crate) priority: u8,
    pub(crate) guid: Guid,
}

impl Rank {
    /// Whether this one wins over the other.
    pub(crate) fn beats(self, other: Self) -> bool {
        (self.priority, other.guid) > (other.priority, self.guid)
    }
}

/// What a manager is at. `Master`, `Awaiting` and `Yielding` are MASTER to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Looks for other managers, and writes nothing.
    #[default]
    Discovering,
    /// Polls the master.
    Standby,
    /// In charge.
    Master,
    /// In charge of its part; waits for another master of lower rank to hand over.
    Awaiting,
    /// In charge until a manager of higher rank accepts.
    Yielding,
    /// Silent until the master says otherwise.
    NotActive,
}

impl State {
    /// How SMInfo names it.
    pub(crate) fn shown(self) -> SmState {
        match self {
            Self::Discovering => SmState::Discovering,
            Self::Standby => SmState::Standby,
            Self::Master | Self::Awaiting | Self::Yielding => SmState::Master,
            Self::NotActive => SmState::NotActive,
        }
    }

    /// Whether it configures the subnet, or did until another one is ready to.
    pub(crate) fn is_in_charge(self) -> bool {
        self.shown() == SmState::Master
    }

    /// Whether it may sweep at all.
    pub(crate) fn sweeps(self) -> bool {
        matches!(self, Self::Discovering | Self::Master | Self::Awaiting)
    }

    /// Whether it polls another manager.
    pub(crate) fn polls(self) -> bool {
        matches!(self, Self::Standby | Self::Awaiting)
    }
}

/// What a discovery says of other managers. Those in NOT-ACTIVE do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Only such as are of lower rank and not in charge, if any.
    Nobody,
    /// A master of lower rank.
    LowerMaster,
    /// A master of higher rank.
    HigherMaster,
    /// No one else in charge, but one of higher rank in STANDBY.
    HigherStandby,
    /// The same in DISCOVERING.
    HigherDiscovering,
}

/// What the manager that is polled says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polled {
    /// It is still there and still to be waited for.
    Alive,
    /// It does not answer any more.
    Gone,
    /// It answers, but is not what is waited for any more.
    Resigned,
}

/// The attribute modifiers of Set(SMInfo) (IBA 14.2.5.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Handover,
    Acknowledge,
    Disable,
    Standby,
    Discover,
}

impl Control {
    /// By the modifier's code.
    pub(crate) fn from_modifier(modifier: u32) -> Option<Self> {
        Some(match modifier {
            1 => Self::Handover,
            2 => Self::Acknowledge,
            3 => Self::Disable,
            4 => Self::Standby,
            5 => Self::Discover,
            _ => return None,
        })
    }

    /// The modifier's code.
    pub(crate) fn modifier(self) -> u32 {
        match self {
            Self::Handover => 1,
            Self::Acknowledge => 2,
            Self::Disable => 3,
            Self::Standby => 4,
            Self::Discover => 5,
        }
    }

    /// Whether a manager in this state may send it: the master commands, and who takes over acknowledges.
    pub(crate) fn may_come_from(self, sender: SmState) -> bool {
        match self {
            Self::Acknowledge => matches!(sender, SmState::Standby | SmState::Master),
            _ => sender == SmState::Master,
        }
    }
}

/// What became of a HANDOVER that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handed {
    /// The other has accepted.
    Accepted,
    /// The other refuses.
    Refused,
    /// No one answers.
    Unheard,
}

/// Everything that can happen to the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// The manager is attached to a port.
    Attached,
    /// A discovery has ended.
    Found(Found),
    /// The manager that is polled.
    Polled(Polled),
    /// Set(SMInfo) from somebody who may.
    Control(Control),
    /// The HANDOVER that was sent.
    Handed(Handed),
    /// The operator wants to have a look around.
    Command,
}

/// What is to be done on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    /// The sweep goes on to LIDs and tables.
    Configure,
    /// Discover everything again.
    Sweep,
    /// Somebody else was in charge until now: discover everything, and tell hosts.
    TakeOver,
    /// Poll who was found.
    Poll,
    /// Hand over to who was found.
    HandOver,
    /// Not in charge any more: poll who is.
    Resign,
    /// Say and do no more.
    FallSilent,
}

/// The next state and what to do; `None` where the signal makes no sense, and a Set(SMInfo) is answered with an error.
pub(crate) fn next(state: State, signal: Signal) -> Option<(State, Action)> {
    match signal {
        Signal::Attached => Some((State::Discovering, Action::Sweep)),
        Signal::Found(found) => discovered(state, found),
        Signal::Polled(polled) => polled_state(state, polled),
        Signal::Control(control) => controlled(state, control),
        Signal::Handed(handed) => handed_over(state, handed),
        Signal::Command => Some(match state {
            State::Standby | State::NotActive => (State::Discovering, Action::Sweep),
            State::Yielding => (state, Action::Nothing),
            State::Discovering | State::Master | State::Awaiting => (state, Action::Sweep),
        }),
    }
}

fn discovered(state: State, found: Found) -> Option<(State, Action)> {
    Some(match (state, found) {
        (State::Discovering, Found::Nobody) => (State::Master, Action::Configure),
        (State::Discovering, _) => (State::Standby, Action::Poll),
        (State::Master | State::Awaiting, Found::Nobody | Found::HigherDiscovering) => {
            (State::Master, Action::Configure)
        }
        (State::Master | State::Awaiting, Found::LowerMaster) => (State::Awaiting, Action::Poll),
        (State::Master | State::Awaiting, Found::HigherMaster | Found::HigherStandby) => {
            (State::Yielding, Action::HandOver)
        }
        (State::Standby | State::Yielding | State::NotActive, _) => return None,
    })
}

fn polled_state(state: State, polled: Polled) -> Option<(State, Action)> {
    Some(match (state, polled) {
        (State::Standby | State::Awaiting, Polled::Alive) => (state, Action::Nothing),
        (State::Standby, Polled::Gone | Polled::Resigned) => (State::Discovering, Action::Sweep),
        (State::Awaiting, Polled::Gone | Polled::Resigned) => (State::Master, Action::TakeOver),
        _ => return None,
    })
}

fn controlled(state: State, control: Control) -> Option<(State, Action)> {
    Some(match (state, control) {
        (State::NotActive, Control::Standby) => (State::Standby, Action::Poll),
        (State::NotActive, _) => return None,
        (_, Control::Handover) => (State::Master, Action::TakeOver),
        (State::Yielding, Control::Acknowledge) => (State::Standby, Action::Resign),
        (State::Standby, Control::Acknowledge) => (State::Standby, Action::Nothing),
        (State::Standby, Control::Disable) => (State::NotActive, Action::FallSilent),
        (State::Standby, Control::Discover) => (State::Discovering, Action::Sweep),
        _ => return None,
    })
}

fn handed_over(state: State, handed: Handed) -> Option<(State, Action)> {
    if state != State::Yielding {
        return None;
    }
    Some(match handed {
        Handed::Accepted => (State::Standby, Action::Resign),
        Handed::Refused | Handed::Unheard => (State::Master, Action::Sweep),
    })
}

#[cfg(test)]
mod tests;
