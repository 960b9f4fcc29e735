//! The keys of management: what managers and ports show each other.

use std::path::Path;

use serde::{Deserialize, Serialize};
use weft_wire::{MKey, SmKey};

use crate::folder::{LabFolder, bundle};

/// `identities/keys.json`
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// The key that ports ask of their manager.
    pub m_key: MKey,
    /// What subnet managers that trust each other share.
    pub sm_key: SmKey,
    /// What subnet administration trusts a request by.
    pub sa_key: SmKey,
}

impl Keys {
    /// Those in a subnet manager's options.
    pub fn of(options: &weft_sm::Options) -> Self {
        Self { m_key: options.m_key, sm_key: options.sm_key, sa_key: options.sa_key }
    }

    /// The options without their keys, which are kept elsewhere.
    pub fn taken_from(options: weft_sm::Options) -> weft_sm::Options {
        let none = weft_sm::Options::default();
        weft_sm::Options { m_key: none.m_key, sm_key: none.sm_key, sa_key: none.sa_key, ..options }
    }

    /// The options with these keys.
    pub fn put_into(self, options: weft_sm::Options) -> weft_sm::Options {
        weft_sm::Options { m_key: self.m_key, sm_key: self.sm_key, sa_key: self.sa_key, ..options }
    }

    /// Those of a running laboratory.
    pub fn of_lab(lab: &LabFolder) -> anyhow::Result<Self> {
        Self::load(&lab.bundle().keys())
    }

    /// Reads them.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        bundle::load(path)
    }
}
