//! A host's subscriptions to the manager's notices (IBA 13.4.11).
//!
//! ```text
//!   the port is up, the manager is another,
//!   or asks its clients to register again          answered
//!  ──────────────────────────────────────▶ Wanted ─▶ Asked ─────────▶ Held
//!                                             ▲         │ refused, or not answered
//!                                             └ a while ┘
//! ```

use serde::{Deserialize, Serialize};
use weft_wire::{TrapNumber, trap};

/// Ports that come and go, and paths that change.
pub(super) const TRAPS: [TrapNumber; 4] =
    [trap::GID_IN_SERVICE, trap::GID_OUT_OF_SERVICE, trap::UNPATH, trap::REPATH];

weft_wire::named! {
    /// Notices that a host subscribes to, and who of a server's functions does (paper 004, lines 2597–2655).
    #[derive(Default)]
    pub enum Notices {
        /// Every port: ports that come and go, and paths that change.
        #[default]
        All = "all",
        /// Every port, paths that change alone: where a peer has moved to only a notice says.
        Repath = "repath",
        /// The same by physical functions alone, which hand on what they hear to the virtual functions of their adapter.
        Server = "server",
        /// None.
        None = "none",
    }
}

impl Notices {
    /// Whether a port subscribes to a trap; `is_function`: it is a virtual function's.
    pub(super) fn wants(self, trap_number: TrapNumber, is_function: bool) -> bool {
        match self {
            Self::All => true,
            Self::Repath => trap_number == trap::REPATH,
            Self::Server => trap_number == trap::REPATH && !is_function,
            Self::None => false,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    #[default]
    Wanted,
    Asked {
        again: bool,
    },
    Held,
    Failed,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Subscriptions {
    states: [State; TRAPS.len()],
}

impl Subscriptions {
    /// All are to be asked for, because the manager may know none of them any more.
    pub(super) fn renew(&mut self) {
        for state in &mut self.states {
            *state = match *state {
                State::Asked { .. } => State::Asked { again: true },
                _ => State::Wanted,
            };
        }
    }

    /// No one will answer any more.
    pub(super) fn abandon(&mut self) {
        self.states = Default::default();
    }

    /// No one will answer what was asked; what stands does.
    pub(super) fn forget_questions(&mut self) {
        for state in self.states.iter_mut().filter(|state| matches!(state, State::Asked { .. })) {
            *state = State::Wanted;
        }
    }

    /// What failed is to be asked for again. Whether there is any.
    pub(super) fn retry(&mut self) -> bool {
        let mut any = false;
        for state in self.states.iter_mut().filter(|state| **state == State::Failed) {
            *state = State::Wanted;
            any = true;
        }
        any
    }

    /// The next one to ask for of those that the host wants; it counts as asked for from now on.
    pub(super) fn poll_wanted(&mut self, wants: impl Fn(TrapNumber) -> bool) -> Option<(usize, TrapNumber)> {
        let mut all = self.states.iter().zip(TRAPS);
        let at = all.position(|(state, number)| *state == State::Wanted && wants(number))?;
        self.states[at] = State::Asked { again: false };
        Some((at, TRAPS[at]))
    }

    /// Takes an answer. Whether it stands, or is to be tried again.
    pub(super) fn answered(&mut self, at: usize, stands: bool) {
        let Some(state) = self.states.get_mut(at) else { return };
        *state = match *state {
            State::Asked { again: true } => State::Wanted,
            _ if stands => State::Held,
            _ => State::Failed,
        };
    }

    /// Those that the manager has confirmed.
    pub(super) fn held(&self) -> impl Iterator<Item = (usize, TrapNumber)> {
        let all = self.states.iter().zip(TRAPS).enumerate();
        all.filter(|(_, (state, _))| **state == State::Held).map(|(at, (_, trap))| (at, trap))
    }
}
