//! Working data of one pass over all paths.

use crate::tables::Routes;

use super::dependencies::Dependencies;
use super::ground::Ground;
use super::loads::Loads;
use super::rows::Rows;
use super::sources::Sources;

/// What the pass is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass<'a> {
    pub(crate) ground: &'a Ground<'a>,
    pub(crate) routes: &'a Routes,
    /// By channel: whether it leads up, where that matters.
    pub(crate) ups: Option<&'a [bool]>,
    /// Senders by lanes, where that matters.
    pub(crate) flows: Option<Flows<'a>>,
}

/// Senders by lanes, and where to write down which channels wait for which.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flows<'a> {
    pub(crate) rows: &'a Rows,
    pub(crate) sources: &'a Sources<'a>,
    pub(crate) dependencies: &'a Dependencies<'a>,
    /// By channel: how many pairs of hosts use it, where that is wanted.
    pub(crate) loads: Option<&'a Loads>,
}

impl Pass<'_> {
    /// Whether nothing is asked that wants the order of switches where packets come nearer with every channel: whether they turn up,
    /// how many use a channel, or which lanes they change to.
    pub(super) fn needs_no_order(&self) -> bool {
        let is_plain = |flows: Flows<'_>| flows.loads.is_none() && flows.rows.constant().is_some();
        self.ups.is_none() && self.flows.is_none_or(is_plain)
    }
}
