//! Engines in the order in which they are tried.

use weft_topology::Fabric;

use super::{ENGINES, Engine, Input, Refusal};
use crate::lids::Lids;
use crate::options::EngineOptions;
use crate::routing::Routing;

/// Says that min-hop is not to be tried after all others.
const NO_FALLBACK: &str = "no_fallback";

/// Engines in the order in which they are tried. The last resort is min-hop, as in OpenSM, unless the list has the
/// word `no_fallback`.
#[derive(Clone, Debug)]
pub struct Chain {
    engines: Vec<&'static Engine>,
}

/// Why a list of engines is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// No such engine.
    #[error("no engine is called `{0}`; there are {known}", known = names())]
    Unknown(String),
    /// An empty list.
    #[error("no engine is named; there are {known}", known = names())]
    Empty,
    /// An option that no engine of the list reads.
    #[error("the option {option} means nothing to {engines}")]
    Unread {
        /// The field of [`EngineOptions`].
        option: &'static str,
        /// The engines.
        engines: String,
    },
}

fn names() -> String {
    ENGINES.map(|engine| engine.name).join(", ")
}

impl Chain {
    /// Reads a list like `ftree,updn` or `dfsssp,no_fallback`.
    pub fn parse(list: &str) -> Result<Self, ChainError> {
        let (mut engines, mut fallback) = (Vec::new(), true);
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match Engine::by_name(name) {
                Some(engine) => engines.push(engine),
                None if name == NO_FALLBACK => fallback = false,
                None => return Err(ChainError::Unknown(name.to_owned())),
            }
        }
        if engines.is_empty() {
            return Err(ChainError::Empty);
        }
        if fallback && engines.iter().all(|engine| engine.name != "minhop") {
            engines.extend(Engine::by_name("minhop"));
        }
        Ok(Self { engines })
    }

    /// The engines, in order.
    pub fn engines(&self) -> impl Iterator<Item = &'static Engine> {
        self.engines.iter().copied()
    }

    /// Fails when an option is given that no engine of the chain reads.
    pub fn check_options(&self, given: &[&'static str]) -> Result<(), ChainError> {
        let reads = |option: &str| self.engines().any(|engine| engine.options.contains(&option));
        match given.iter().find(|option| !reads(option)) {
            None => Ok(()),
            Some(option) => {
                let engines = self.engines().map(|engine| engine.name).collect::<Vec<_>>().join(", ");
                Err(ChainError::Unread { option, engines })
            }
        }
    }

    /// The routing of the first engine that serves the fabric; its report tells why those before it did not. When
    /// none does, why not.
    pub fn route(
        &self,
        fabric: &Fabric,
        lids: &Lids,
        options: &EngineOptions,
    ) -> Result<Routing, Vec<Refusal>> {
        let mut refusals: Vec<Refusal> = Vec::new();
        for engine in self.engines() {
            match engine.route(&Input { fabric, lids, options }) {
                Ok(mut routing) => {
                    let reasons = refusals.iter().map(ToString::to_string);
                    routing.report.fallbacks.splice(0..0, reasons);
                    return Ok(routing);
                }
                Err(refusal) => refusals.push(refusal),
            }
        }
        Err(refusals)
    }
}
