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
        let weft_sm::KeyOptions { m_key, sm_key, sa_key, .. } = options.keys;
        Self { m_key, sm_key, sa_key }
    }

    /// The options without their keys, which are kept in a file of their own.
    pub fn taken_from(options: weft_sm::Options) -> weft_sm::Options {
        Self::of(&weft_sm::Options::default()).put_into(options)
    }

    /// The options with these keys.
    pub fn put_into(self, mut options: weft_sm::Options) -> weft_sm::Options {
        let Self { m_key, sm_key, sa_key } = self;
        options.keys = weft_sm::KeyOptions { m_key, sm_key, sa_key, ..options.keys };
        options
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
