//! Routing engines that are programs, in any language (`--engine exec:./mine.py`).
//!
//! A program reads one JSON document on standard input, [`EngineFabric`](weft_control::report::engine::EngineFabric), and writes
//! one on standard output, [`EngineTables`](weft_control::report::engine::EngineTables). It has a process group of its own, limited
//! time and memory, and no process of it outlives its answer. What it answers is proved like the routing of any engine.
//!
//! ```text
//!   Input ──fabric_of──▶ JSON ──stdin──▶ program ──stdout──▶ JSON ──routing_of──▶ Routing ──▶ verifier
//! ```

mod answer;
mod child;
mod fabric;
mod left;

use std::sync::Arc;
use std::time::Duration;

use weft_routing::{EngineOptions, Input, Outside, ProgramFailed, Routing};

use child::{Finished, Limits};

/// How much of what a program answers is quoted.
const QUOTED_CHARS: usize = 60;

/// Runs programs that route. `said` gets each line that a program writes to standard error, with the command before it.
pub fn programs(said: impl Fn(&str, &str) + Send + Sync + 'static) -> Arc<dyn Outside> {
    Arc::new(Programs { said: Box::new(said) })
}

/// Gets a line that a program wrote to standard error, after its command.
type Hears = dyn Fn(&str, &str) + Send + Sync;

struct Programs {
    said: Box<Hears>,
}

impl Outside for Programs {
    fn route(&self, command: &str, input: &Input<'_>) -> Result<Routing, ProgramFailed> {
        self.routed(command, input).map_err(ProgramFailed)
    }
}

impl Programs {
    fn routed(&self, command: &str, input: &Input<'_>) -> Result<Routing, String> {
        let document = serde_json::to_vec(&fabric::fabric_of(input)).map_err(|error| error.to_string())?;
        let limits = limits(input.options);
        let Finished { answer, said, left_out } = child::run(command, &document, &limits)?;
        if left_out > 0 {
            (self.said)(command, &format!("… {left_out} bytes before this are left out"));
        }
        let said = String::from_utf8_lossy(&said);
        said.lines().for_each(|line| (self.said)(command, line));
        let answer = answer.map_err(|reason| with_last_words(reason, &said, &limits))?;
        if answer.iter().all(u8::is_ascii_whitespace) {
            return Err(with_last_words("it wrote nothing to standard output".to_owned(), &said, &limits));
        }
        let tables = serde_json::from_slice(&answer).map_err(|error| {
            let begin: String = String::from_utf8_lossy(&answer).chars().take(QUOTED_CHARS).collect();
            format!("its answer is not a JSON document of tables: {error}; it begins {begin:?}")
        })?;
        answer::routing_of(tables, input)
    }
}

fn limits(options: &EngineOptions) -> Limits {
    Limits {
        timeout: Duration::from_millis(options.exec_timeout_ms),
        memory_bytes: options.exec_memory_bytes,
    }
}

/// A reason with the last line of standard error, which most often is the error.
fn with_last_words(mut reason: String, said: &str, limits: &Limits) -> String {
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
    if let Some(last) = last {
        let last: String = last.chars().take(4 * QUOTED_CHARS).collect();
        reason.push_str(&format!("; its last words: {last}"));
        let about_memory = ["memory", "alloc"].iter().any(|word| last.to_lowercase().contains(word));
        if about_memory {
            let mebibytes = limits.memory_bytes >> 20;
            reason.push_str(&format!("; --exec-memory limits it to {mebibytes} MiB"));
        }
    }
    reason
}
