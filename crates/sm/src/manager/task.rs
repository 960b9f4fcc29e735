//! The manager's current task, and its step.

use crate::knowledge::{Held, Subnet};
use crate::moves::{Carry, Plug};
use crate::requests::Step;
use crate::sa::AskedTables;
use crate::sweep::{Activate, Check, Discover, Program, ReadTables, Regulate};
use crate::{Event, Reason, SweepPhase};
use weft_machine::Time;

/// What is under way. A step owns the subnet while it works on it.
#[derive(Debug)]
pub(super) enum Task {
    Detached,
    Idle,
    Discover(Box<Discover>),
    ReadTables(Box<ReadTables>),
    Program(Box<Program>),
    /// With what the nodes hold, which is remembered when it is done.
    Activate(Box<Activate>, Vec<Held>),
    /// Settings of congestion control.
    Regulate(Box<Regulate>),
    Verify(Box<Check>),
    Light(Box<Check>),
    Look(Box<Check>, Reason),
    /// Tables that subnet administration is asked for.
    Tables(Box<AskedTables>),
    /// A round of a move of LIDs.
    Move(Box<Carry>),
    /// The same, until packets under way have arrived or are dropped.
    Drain(Box<Carry>, Time),
    /// Whether those who have moved are there.
    Plug(Box<Plug>),
}

impl Task {
    /// The phase of a heavy sweep or a repair that it is.
    pub(super) fn phase(&self) -> Option<SweepPhase> {
        match self {
            Self::Discover(_) => Some(SweepPhase::Discover),
            Self::ReadTables(_) => Some(SweepPhase::ReadTables),
            Self::Program(_) => Some(SweepPhase::Program),
            Self::Activate(..) | Self::Regulate(_) => Some(SweepPhase::Activate),
            Self::Verify(_) => Some(SweepPhase::Verify),
            Self::Detached
            | Self::Idle
            | Self::Light(_)
            | Self::Look(..)
            | Self::Tables(_)
            | Self::Move(_)
            | Self::Drain(..)
            | Self::Plug(_) => None,
        }
    }

    pub(super) fn is_detached(&self) -> bool {
        matches!(self, Self::Detached)
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    pub(super) fn step(&mut self) -> Option<&mut dyn Step> {
        Some(match self {
            Self::Detached | Self::Idle | Self::Drain(..) => return None,
            Self::Discover(step) => step.as_mut(),
            Self::ReadTables(step) => step.as_mut(),
            Self::Program(step) => step.as_mut(),
            Self::Activate(step, _) => step.as_mut(),
            Self::Regulate(step) => step.as_mut(),
            Self::Verify(step) | Self::Light(step) | Self::Look(step, _) => step.as_mut(),
            Self::Tables(step) => step.as_mut(),
            Self::Move(step) => step.as_mut(),
            Self::Plug(step) => step.as_mut(),
        })
    }

    /// The subnet that the step works on.
    pub(super) fn subnet(&self) -> Option<&Subnet> {
        match self {
            Self::Detached | Self::Idle | Self::Tables(_) => None,
            Self::Discover(step) => step.before_again(),
            Self::ReadTables(step) => Some(&step.subnet),
            Self::Program(step) => Some(&step.subnet),
            Self::Activate(step, _) => Some(&step.subnet),
            Self::Regulate(step) => Some(&step.subnet),
            Self::Verify(step) | Self::Light(step) | Self::Look(step, _) => Some(&step.subnet),
            Self::Move(step) | Self::Drain(step, _) => Some(&step.subnet),
            Self::Plug(step) => Some(&step.subnet),
        }
    }

    pub(super) fn into_subnet(self) -> Option<Subnet> {
        match self {
            Self::Detached | Self::Idle | Self::Tables(_) => None,
            Self::Discover(mut step) => step.take_before_again(),
            Self::ReadTables(step) => Some(step.subnet),
            Self::Program(step) => Some(step.subnet),
            Self::Activate(step, _) => Some(step.subnet),
            Self::Regulate(step) => Some(step.subnet),
            Self::Verify(step) | Self::Light(step) | Self::Look(step, _) => Some(step.subnet),
            Self::Move(step) | Self::Drain(step, _) => Some(step.subnet),
            Self::Plug(step) => Some(step.subnet),
        }
    }

    pub(super) fn take_events(&mut self) -> Vec<Event> {
        match self {
            Self::Discover(step) => std::mem::take(&mut step.events),
            Self::ReadTables(step) => std::mem::take(&mut step.events),
            Self::Program(step) => std::mem::take(&mut step.events),
            Self::Activate(step, _) => std::mem::take(&mut step.events),
            Self::Regulate(step) => std::mem::take(&mut step.events),
            Self::Move(step) | Self::Drain(step, _) => std::mem::take(&mut step.events),
            Self::Detached
            | Self::Idle
            | Self::Verify(_)
            | Self::Light(_)
            | Self::Look(..)
            | Self::Tables(_)
            | Self::Plug(_) => Vec::new(),
        }
    }

    /// Whether a sweep is on that writes, or is about to.
    pub(super) fn is_writing(&self) -> bool {
        let is_before = |phase| matches!(phase, SweepPhase::Discover | SweepPhase::Verify);
        self.phase().is_some_and(|phase| !is_before(phase))
    }

    /// Whether a heavy sweep is on that has yet to ask the switches whether anything changed.
    pub(super) fn will_verify(&self) -> bool {
        self.phase().is_some_and(|phase| phase != SweepPhase::Verify)
    }
}
