//! The tool matrix: what each of infiniband-diags' programs prints, checked against what is known beforehand.

mod congestion;
mod discovery;
mod gmp;
mod perf;
mod sa;
mod smp;

use std::fmt::Write;

use crate::{Site, Way};

/// One tool, with options, and what it must say.
pub struct Case {
    /// The command as people type it.
    pub command: &'static str,
    /// What is compared with what is known.
    pub checks: &'static str,
    /// Runs the tool and tells what is wrong.
    pub run: fn(&Site<'_>) -> Result<(), String>,
    /// Why the stock shim, or ibsim's protocol, cannot carry it, if so.
    pub beyond_protocol: Option<&'static str>,
}

/// A case that both ways of attaching carry.
const fn case(command: &'static str, checks: &'static str, run: fn(&Site<'_>) -> Result<(), String>) -> Case {
    Case { command, checks, run, beyond_protocol: None }
}

impl Case {
    /// The same, for weft's own layer alone.
    const fn beyond_protocol(mut self, why: &'static str) -> Self {
        self.beyond_protocol = Some(why);
        self
    }
}

/// All cases, in the order in which they are run and shown.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    [discovery::CASES, smp::CASES, perf::CASES, sa::CASES, congestion::CASES, gmp::CASES]
        .into_iter()
        .flatten()
}

/// What became of a case: nothing wrong, or what.
pub type Verdict = Result<(), String>;

/// Runs every case at a site, and says what comes of it as it goes.
pub fn run(site: &Site<'_>) -> Vec<Verdict> {
    let run = |case: &Case| {
        let verdict = (case.run)(site);
        let said = verdict.as_ref().err().map_or("right", String::as_str);
        println!("{:?}: {}: {said:.300}", site.way, case.command);
        verdict
    };
    cases().map(run).collect()
}

fn cell(way: Way, case: &Case, verdict: &Verdict) -> &'static str {
    match (verdict, way, case.beyond_protocol) {
        (Ok(()), ..) => "right",
        (Err(_), Way::Protocol, Some(_)) => "no (1)",
        (Err(_), ..) => "no",
    }
}

/// The table of `docs/compatibility.md`.
pub fn table(columns: &[(Way, Vec<Verdict>)]) -> String {
    let mut text = String::from("| command | what is compared |");
    for (way, _) in columns {
        let name = match way {
            Way::Layer => "weft",
            Way::Protocol => "weft, ibsim's protocol",
            Way::Ibsim => "ibsim 0.10",
        };
        write!(text, " {name} |").expect("a string takes all");
    }
    text.push_str("\n|---|---|");
    text.push_str(&"---|".repeat(columns.len()));
    text.push('\n');
    for (index, case) in cases().enumerate() {
        write!(text, "| `{}` | {} |", case.command, case.checks).expect("a string takes all");
        for (way, verdicts) in columns {
            write!(text, " {} |", cell(*way, case, &verdicts[index])).expect("a string takes all");
        }
        text.push('\n');
    }
    text
}
