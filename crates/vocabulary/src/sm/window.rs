//! The window of outstanding SMPs.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

weft_wire::named! {
    /// Why a window is as wide as it is.
    #[derive(Default)]
    pub enum WindowReason {
        /// It was set.
        #[default]
        Fixed = "fixed",
        /// Answers have come faster the wider it was.
        Growing = "growing",
        /// Answers came no faster when it was wider.
        NoFaster = "no_faster",
        /// Requests were lost when it was wider.
        Loss = "loss",
        /// Answers came late when it was wider.
        Delay = "delay",
        /// It is as wide as it may become.
        Most = "most",
    }
}

/// How many SMPs may be outstanding, and why not more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowState {
    /// The most SMPs outstanding.
    pub most: u32,
    /// Why it is not more: `fixed`, `growing`, `no_faster`, `loss`, `delay` or `most`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub reason: WindowReason,
    /// The reason, for people.
    pub text: Cow<'static, str>,
}

impl WindowState {
    /// With the text of its reason.
    pub fn new(most: u32, reason: WindowReason) -> Self {
        let text = match reason {
            WindowReason::Fixed => "as --max-wire-smps says",
            WindowReason::Growing => "growing: a wider window brings answers faster",
            WindowReason::NoFaster => "a wider window brought no speed-up",
            WindowReason::Loss => "a wider window lost requests",
            WindowReason::Delay => "a wider window delayed answers",
            WindowReason::Most => "at its limit",
        };
        Self { most, reason, text: text.into() }
    }
}
