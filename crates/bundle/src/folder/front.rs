//! The front end that handles a laboratory: who hears of what is done to it, and which program its processes are.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Hears of what is done to a laboratory. A front end shows it to people.
pub trait Listener: fmt::Debug + Send + Sync {
    /// A line for people: a warning, or what was done beside what was asked for.
    fn line(&self, line: &str);
    /// What went wrong while work goes on.
    fn problem(&self, error: &anyhow::Error);
    /// Work begins that may take long. It has ended when what is returned is dropped.
    fn work(&self) -> Box<dyn Work>;
    /// A laboratory begins to start, in phases of these names.
    fn start(&self, phases: &[&'static str]) -> Box<dyn Phases>;
}

/// Work that may take long.
pub trait Work: fmt::Debug {
    /// How far it is: called often, and the text is made only where somebody sees it.
    fn is_at(&mut self, text: &dyn Fn() -> String);
}

/// The phases of a start, each by its place in the list.
pub trait Phases: fmt::Debug {
    /// `done` of `total` are done.
    fn is_at(&mut self, phase: usize, done: u64, total: u64);
    /// A phase has ended, so long after the start.
    fn has_ended(&mut self, phase: usize, at: Duration);
    /// The start has ended, well or not. Called once.
    fn end(&mut self);
}

/// A front end.
#[derive(Clone, Debug)]
pub struct Front {
    /// The program that processes are started with; this one where it is not said.
    pub program: Option<PathBuf>,
    /// Who hears.
    pub listener: Arc<dyn Listener>,
}

impl Default for Front {
    /// What is heard goes into the log of this process.
    fn default() -> Self {
        Self { program: None, listener: Arc::new(Log) }
    }
}

impl Front {
    /// The program that processes are started with.
    ///
    /// # Errors
    /// Where it was not said, and the system does not tell which program this is.
    pub fn program(&self) -> io::Result<PathBuf> {
        self.program.clone().map_or_else(std::env::current_exe, Ok)
    }
}

/// Writes lines into the log.
#[derive(Debug)]
struct Log;

impl Listener for Log {
    fn line(&self, line: &str) {
        tracing::warn!("{line}");
    }

    fn problem(&self, error: &anyhow::Error) {
        tracing::error!("{}", crate::failure::in_words(error));
    }

    fn work(&self) -> Box<dyn Work> {
        Box::new(Self)
    }

    fn start(&self, _: &[&'static str]) -> Box<dyn Phases> {
        Box::new(Self)
    }
}

impl Work for Log {
    fn is_at(&mut self, _: &dyn Fn() -> String) {}
}

impl Phases for Log {
    fn is_at(&mut self, _: usize, _: u64, _: u64) {}
    fn has_ended(&mut self, _: usize, _: Duration) {}
    fn end(&mut self) {}
}
