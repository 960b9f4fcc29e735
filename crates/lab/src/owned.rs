//! Laboratories that end with the process that has started them, however that ends.
//!
//! ```text
//!   with ──pipe──▶ guard: when the pipe ends, it takes down what is left
//!     └─▶ start ──▶ Running ──▶ faults, check … ──▶ taken down
//! ```

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use weft_bundle::config::hub::HubConfig;
use weft_bundle::config::run::RunOptions;
use weft_bundle::failure::Failure;
use weft_bundle::folder::Base;
use weft_bundle::plan::wanted::Wanted;
use weft_fault::FaultTimes;

use crate::launch::Launcher;
use crate::process::GUARD;
use crate::view::Lab;
use crate::{faults, start, teardown};

/// How long a laboratory may take to come up while nothing moves.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// A laboratory that is up, and ends with this process.
pub struct Running<'a> {
    /// Its record and its cabling.
    pub lab: Lab,
    launcher: Launcher<'a>,
}

/// Starts a laboratory, gives it to `then`, and takes it down. It is taken down, too, when `then` panics or this process is killed.
/// Its name is `name` and the number of this process, so no two processes mean the same one.
///
/// The processes are runs of the front end's program, which calls [`child_main`](crate::child::child_main) first.
///
/// # Errors
/// Where the laboratory does not come up, and those of `then`. SIGINT and SIGTERM are one: they end the wait for something.
pub fn with<T>(
    base: &Base,
    name: &str,
    wanted: &Wanted<'_>,
    then: impl FnOnce(&mut Running<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let name = format!("{name}-{}", std::process::id());
    let _guard = Guard::begin(base, &name)?;
    let goal = start::goal(wanted.fabric, wanted.leaders(), PATIENCE);
    let options = RunOptions::default();
    let run = start::Run { options: &options, hub: HubConfig::default(), tape: None };
    start::with(base, &name, &start::From::Plan(wanted), run, goal, Instant::now(), |launcher| {
        let lab = Lab::load(&base.lab(&name)?)?;
        then(&mut Running { lab, launcher })
    })
}

impl Running<'_> {
    /// Waits until a look finds something.
    ///
    /// # Errors
    /// When it does not within `patience`, and those of the look.
    pub fn wait_for<T>(
        &mut self,
        what: &str,
        patience: Duration,
        mut look: impl FnMut(&Lab) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(found) = look(&self.lab)? {
                return Ok(found);
            }
            if Instant::now() >= deadline {
                return Err(Failure::new(format!("{what}: not within {} s", patience.as_secs())).into());
            }
            self.launcher.serve_until(Instant::now() + LOOK)?;
        }
    }

    /// Waits until the subnet manager has routed round every fault so far, and tells what each cost.
    ///
    /// # Errors
    /// When it has not within `patience`, or no fault has begun.
    pub fn rerouted(&mut self, patience: Duration) -> anyhow::Result<Vec<FaultTimes<String>>> {
        self.wait_for("rerouted", patience, |lab| {
            let times = faults::times::of(lab)?;
            let all = !times.is_empty() && times.iter().all(|fault| fault.rerouted_after_ns.is_some());
            Ok(all.then_some(times))
        })
    }
}

/// Another process, which outlives this one and takes its laboratory down. Its standard input ends with this process.
struct Guard(Child);

impl Guard {
    fn begin(base: &Base, name: &str) -> anyhow::Result<Self> {
        let program = base.front().program().context("cannot tell which program this is")?;
        let child = Command::new(&program)
            .args(["--lab", name, GUARD])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self(child))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Waits for the end of standard input, and takes down what is left of a laboratory then.
pub(crate) fn guard(base: &Base, name: &str) -> anyhow::Result<()> {
    std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink())?;
    teardown::clear_unfinished(base)?;
    teardown::take_down(&base.lab(name)?).map(drop)
}
