//! Bugs that are put in on purpose, so that a test can see them found. Nothing but [`SimOptions::bug`](crate::SimOptions::bug)
//! switches them on.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A bug that is put in on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeededBug {
    /// The subnet manager takes no notice of a change that leaves every link up: it forgets that a link came back.
    ForgottenLinkUp,
    /// A device keeps the credit of a data packet that its cable lost: it never hears that there was one.
    KeptCredit,
    /// A node that is restarted loses the faults that last.
    LostFault,
}

impl SeededBug {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ForgottenLinkUp, Self::KeptCredit, Self::LostFault];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ForgottenLinkUp => "forgotten-link-up",
            Self::KeptCredit => "kept-credit",
            Self::LostFault => "lost-fault",
        }
    }
}

/// The name is no bug's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("use one of {}", SeededBug::ALL.map(SeededBug::name).join(", "))]
pub struct UnknownBug;

impl FromStr for SeededBug {
    type Err = UnknownBug;

    fn from_str(text: &str) -> Result<Self, UnknownBug> {
        let known = Self::ALL.into_iter().find(|bug| bug.name() == text);
        known.ok_or(UnknownBug)
    }
}
