//! An engine that this crate does not have: a program of the operator's, which whoever drives the chain runs.

use std::fmt;
use std::sync::Arc;

use super::pftree::KeptPaths;
use super::{Engine, Input, Refusal};
use crate::collapse::Collapsed;
use crate::routing::Routing;

/// How a list of engines begins the name of a program: `exec:./mine.py`.
pub const PROGRAM: &str = "exec:";

/// The fields of [`EngineOptions`](crate::EngineOptions) that a program reads, or its driver for it.
pub const PROGRAM_OPTIONS: [&str; 4] = ["lanes", "roots", "exec_timeout", "exec_memory"];

/// A program has no routing: a sentence that says why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProgramFailed(pub String);

/// Runs programs that route. This crate does no I/O, so a driver gives its chain one ([`Chain::set_outside`](super::Chain::set_outside)).
pub trait Outside: Send + Sync {
    /// The routing of the program with this command.
    ///
    /// # Errors
    /// When it has none.
    fn route(&self, command: &str, input: &Input<'_>) -> Result<Routing, ProgramFailed>;
}

/// Who runs a chain's programs, if anyone does. It is no part of what a chain says, so that all are equal.
#[derive(Clone, Default)]
pub(super) struct Runner(pub(super) Option<Arc<dyn Outside>>);

impl PartialEq for Runner {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Runner {}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Runner" } else { "no Runner" })
    }
}

/// Whether an engine of this name is a program.
pub(crate) fn is_program(name: &str) -> bool {
    name.starts_with(PROGRAM)
}

/// An engine that a list names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// One of this crate's.
    Engine(&'static Engine),
    /// A program, with `exec:` before its command.
    Program(Arc<str>),
}

impl PartialEq<Engine> for Named {
    fn eq(&self, other: &Engine) -> bool {
        matches!(self, Self::Engine(engine) if **engine == *other)
    }
}

impl Named {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Engine(engine) => engine.name,
            Self::Program(name) => name,
        }
    }

    pub(super) fn options(&self) -> &[&'static str] {
        match self {
            Self::Engine(engine) => engine.options,
            Self::Program(_) => &PROGRAM_OPTIONS,
        }
    }
}

/// An engine whose turn it is.
#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    Engine(&'a Engine),
    Program(&'a Arc<str>, Option<&'a dyn Outside>),
}

impl Step<'_> {
    pub(super) fn is(&self, other: &Engine) -> bool {
        matches!(self, Self::Engine(engine) if *engine == other)
    }

    /// Whether it promises that no packets wait for each other in a circle. A program promises nothing.
    pub(super) fn is_deadlock_free(&self) -> bool {
        matches!(self, Self::Engine(engine) if engine.deadlock_free)
    }

    pub(super) fn refusal(&self, reason: String) -> Refusal {
        match self {
            Self::Engine(engine) => engine.refusal(reason),
            Self::Program(name, _) => Refusal { engine: name.to_string().into(), reason },
        }
    }

    /// Routes a fabric as [`Self::run_here`], with paths that are kept.
    pub(super) fn run_keeping(
        &self,
        input: &Input<'_>,
        kept: Option<&mut KeptPaths>,
    ) -> Result<Routing, Refusal> {
        match (self, kept) {
            (Self::Engine(engine), Some(kept)) if KeptPaths::serve(engine) => {
                engine.run_by(input, |input| kept.route(engine, input))
            }
            _ => self.run_here(input),
        }
    }

    /// Routes a fabric in the pool that this is called in; its vSwitches as part of their hosts.
    pub(super) fn run_here(&self, input: &Input<'_>) -> Result<Routing, Refusal> {
        let (name, outside) = match self {
            Self::Engine(engine) => return engine.run_here(input),
            Self::Program(name, outside) => (name, outside),
        };
        let Some(outside) = outside else {
            return Err(self.refusal("no programs are run here".to_owned()));
        };
        let command = name.strip_prefix(PROGRAM).unwrap_or(name);
        let routing = match Collapsed::of(input) {
            Some(collapsed) => outside
                .route(command, &collapsed.input(input))
                .map(|routing| collapsed.expand(input, routing)),
            None => outside.route(command, input),
        };
        let named = |mut routing: Routing| {
            routing.report.engine = name.to_string();
            routing
        };
        routing.map(named).map_err(|ProgramFailed(reason)| self.refusal(reason))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use weft_topology::generate::{GenerateOptions, xgft};
    use weft_wire::{Lid, PortNum};

    use super::super::{Chain, ChainError};
    use super::*;
    use crate::lids::Lids;
    use crate::options::EngineOptions;

    /// Min-hop as a program, whose first tables send everything for the first LID by a port that leads nowhere.
    #[derive(Default)]
    struct Program(Mutex<u32>);

    impl Outside for Program {
        fn route(&self, command: &str, input: &Input<'_>) -> Result<Routing, ProgramFailed> {
            let mut runs = self.0.lock().unwrap();
            if command != "mine" {
                return Err(ProgramFailed("it is not there".to_owned()));
            }
            *runs += 1;
            let mut routing = Routing::on_one_lane("any", super::super::minhop(input.fabric, input.lids));
            let tables = routing.routes.tables.iter_mut().take(if *runs == 1 { usize::MAX } else { 0 });
            tables.for_each(|table| table.set(Lid(1), PortNum(99)));
            Ok(routing)
        }
    }

    #[test]
    fn a_program_is_proved_like_any_engine() {
        let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        let mut chain: Chain = "exec:other,exec:mine,exec:mine,no_fallback".parse().unwrap();
        let route = |chain: &Chain| chain.route(&fabric, &lids, &EngineOptions::default());
        let refusals = route(&chain).unwrap_err();
        assert_eq!(refusals[0].to_string(), "exec:other: no programs are run here");
        chain.set_outside(Arc::new(Program::default()));
        let report = route(&chain).unwrap().report;
        assert_eq!((report.engine.as_str(), report.fallbacks.len()), ("exec:mine", 2), "{report:?}");
        assert_eq!(report.fallbacks[0], "exec:other: it is not there");
        let lost = "exec:mine: its tables do not bring every packet home: ";
        assert!(report.fallbacks[1].starts_with(lost), "{report:?}");
    }

    #[test]
    fn a_program_reads_options_of_its_own() {
        let chain: Chain = "exec:mine,minhop".parse().unwrap();
        assert_eq!(chain.check_options(&["roots", "exec_timeout"]), Ok(()));
        let error = chain.check_options(&["order"]).unwrap_err();
        assert_eq!(error.to_string(), "the option order means nothing to exec:mine, minhop");
        assert!("minhop".parse::<Chain>().unwrap().check_options(&["exec_timeout"]).is_err());
        assert_eq!("exec:".parse::<Chain>(), Err(ChainError::NoProgram));
    }
}
