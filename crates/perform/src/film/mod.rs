//! Tapes of virtual time: what the page would show of a simulated fabric, state by state.
//!
//! ```text
//!   Simulation, rows of flows ──▶ Scene::state ──▶ weft_page::Film ──▶ a tape, whose times are the virtual clock's
//! ```

mod flows;
mod scene;

use std::fs::File;
use std::io::BufWriter;

use weft_control::flow::FlowLine;
use weft_experiment::{Mark as Told, MarkKind};
use weft_lab::scene::TapeTo;
use weft_machine::Time;
use weft_page::tape::TapeError;
use weft_page::{Film, Mark};
use weft_sim::{BringUp, BringUpError, SimOptions, Simulation, bring_up_watched};
use weft_topology::Fabric;

pub(crate) use flows::PlanFlows;
use scene::Scene;

/// States of a tape, in their order, that come in even steps; twice as long ones follow.
const STATES_IN_STEP: u64 = 300;
/// The first steps of a tape of a start.
const FIRST_STEP: Time = Time::from_micros(20);

/// Which unit the milliseconds of a tape stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Millis,
    /// Microseconds: it is played a thousand times slower.
    Micros,
}

impl Unit {
    fn of(self, at: Time) -> u64 {
        match self {
            Self::Millis => at.as_millis(),
            Self::Micros => at.as_nanos() / 1000,
        }
    }

    fn clock(self) -> &'static str {
        match self {
            Self::Millis => "virtual",
            Self::Micros => "virtual-us",
        }
    }
}

/// A tape of a simulated fabric.
pub(crate) struct SimFilm {
    to: TapeTo,
    /// None once the tape has reached its bound.
    film: Option<Film<BufWriter<File>>>,
    scene: Scene,
    unit: Unit,
}

impl SimFilm {
    /// Begins the tape of a simulation.
    pub(crate) fn begin(
        simulation: &Simulation,
        to: &TapeTo,
        name: &str,
        unit: Unit,
    ) -> anyhow::Result<Self> {
        let film = Some(Film::new(to.begin(name, 0)?));
        let scene = Scene::new(simulation, name, unit.clock());
        Ok(Self { to: to.clone(), film, scene, unit })
    }

    /// Shows the fabric as it is. `at`: what the tape's clock shows.
    pub(crate) fn show(
        &mut self,
        simulation: &Simulation,
        at: Time,
        flows: &[FlowLine],
        told: &[Told],
    ) -> anyhow::Result<()> {
        let Some(film) = &mut self.film else { return Ok(()) };
        let mark = |told: &Told| Mark {
            at_ms: self.unit.of(told.at),
            kind: word(&told.kind).to_owned(),
            text: told.text.clone(),
        };
        // The scene notes sweeps itself.
        let told = told.iter().filter(|told| told.kind != MarkKind::Rerouted);
        let mut marks: Vec<Mark> = told.map(mark).collect();
        let state = self.scene.state(simulation, self.unit.of(at), flows, &mut marks);
        match film.show(state, marks) {
            // What is on the tape can be shown.
            Err(TapeError::Full(_)) => self.film = None,
            shown => shown.map_err(|error| self.to.cannot(&error))?,
        }
        Ok(())
    }

    /// Ends the tape.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        let ended = self.film.take().map(Film::end).transpose();
        ended.map(drop).map_err(|error| self.to.cannot(&error))
    }
}

/// What a mark of a report is called on a tape.
fn word(kind: &MarkKind) -> &'static str {
    match kind {
        MarkKind::Fault => "fault",
        MarkKind::HotSpot => "hot-spot",
        MarkKind::HotSpotEnded => "hot-spot-ended",
        MarkKind::Migration => "move-started",
        MarkKind::Rerouted => "subnet-up",
        MarkKind::Repath => "repathed",
        MarkKind::Note => "note",
    }
}

/// Switches a fabric on as [`weft_sim::bring_up`] does, and tapes it: states come in short steps at first, and in longer ones the longer
/// it takes.
///
/// # Errors
/// Those of the start, and when the tape cannot be written.
pub fn bring_up_taped(
    fabric: &Fabric,
    options: SimOptions,
    seed: u64,
    limit: Time,
    to: &TapeTo,
) -> anyhow::Result<Result<BringUp, BringUpError>> {
    let name = to.path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let mut film = None;
    let (mut next, mut step, mut states) = (Time::ZERO, FIRST_STEP, 0);
    let mut problem = None;
    let up = bring_up_watched(fabric, options, seed, limit, |simulation, has_ended| {
        let now = simulation.now();
        if (now < next && !has_ended) || problem.is_some() {
            return;
        }
        states += 1;
        if states % STATES_IN_STEP == 0 {
            step = step + step;
        }
        next = now + step;
        let shown = match &mut film {
            Some(film) => Ok(film),
            none => SimFilm::begin(simulation, to, &name, Unit::Micros).map(|begun| none.insert(begun)),
        };
        problem = shown.and_then(|film| film.show(simulation, now, &[], &[])).err();
    });
    match (problem, film) {
        (Some(problem), _) => Err(problem),
        (None, film) => film.map_or(Ok(()), SimFilm::end).map(|()| up),
    }
}
