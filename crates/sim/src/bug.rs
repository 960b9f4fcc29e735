//! Bugs that are put in on purpose, so that a test can see them found. Nothing but [`SimOptions::bug`](crate::SimOptions::bug)
//! switches them on.

use std::str::FromStr;

weft_wire::named! {
    /// A bug that is put in on purpose.
    pub enum SeededBug {
        /// The subnet manager takes no notice of a change that leaves every link up: it forgets that a link came back.
        ForgottenLinkUp = "forgotten-link-up",
        /// A device keeps the credit of a data packet that its cable lost: it never hears that there was one.
        KeptCredit = "kept-credit",
        /// A node that is restarted loses the faults that last.
        LostFault = "lost-fault",
    }
}

/// The name is no bug's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("use one of {}", SeededBug::ALL.map(SeededBug::name).join(", "))]
pub struct UnknownBug;

impl FromStr for SeededBug {
    type Err = UnknownBug;

    fn from_str(text: &str) -> Result<Self, UnknownBug> {
        Self::named(text).ok_or(UnknownBug)
    }
}
