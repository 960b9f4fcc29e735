//! One combination: its migrations one after the other, and what is left of the bandwidth after each tenth of them.

use std::collections::BTreeSet;

use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde::Serialize;
use weft_routing::moves::{Kept, KeptError, LatePolicy, Method, Move, PlanError, Planner, UpdateOrder};
use weft_routing::quality::{
    Participants, Paths, Pattern as Traffic, SimulateOptions, Summary, UnknownLid, simulate,
};
use weft_routing::{Engine, EngineOptions, Input, LidError, Lids, Refusal, Routing};
use weft_topology::generate::GenerateError;
use weft_topology::{Fabric, PortRef};
use weft_wire::{Lid, PortNum};

use super::case::{Case, cases};
use super::pattern::{Migration, migrations};
use super::placement::Placement;

/// The engine of the first routing, and of the fresh ones.
const ENGINE: &str = "vswitch-ftree";

/// The methods whose tables are followed. Bandwidth is measured by the first one's.
const METHODS: [Method; 2] = [Method::FtreeMinrc, Method::Itrc];

/// In how many parts the migrations are divided.
const PARTS: usize = 10;

/// How a study is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StudyOptions {
    /// Decides all that is random: starts, patterns and bisections. No result depends on the number of threads, or on
    /// which other combinations are studied.
    pub seed: u64,
    /// How many random bisections each bandwidth is the mean of.
    pub bisections: u32,
    /// How many seeds, from `seed` on, the losses of figures 8b and 8e are the mean of: they begin with a random placement.
    pub seeds: u32,
}

/// Why a combination cannot be studied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// The tree cannot be built.
    #[error(transparent)]
    Tree(#[from] GenerateError),
    /// There are not enough LIDs.
    #[error(transparent)]
    Lids(#[from] LidError),
    /// The engine does not route the tree.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No engine has this name.
    #[error("no engine is called {0}")]
    NoEngine(&'static str),
    /// The tables cannot be planned from.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// A migration cannot be planned.
    #[error("migration {nth} cannot be planned: {reason}")]
    Plan {
        /// Its number, from 1.
        nth: usize,
        /// Why.
        reason: PlanError,
    },
    /// A migration was planned by another method than the one that is studied.
    #[error("migration {nth}: {method} gave way to another method")]
    Fallback {
        /// Its number, from 1.
        nth: usize,
        /// The method that is studied.
        method: Method,
    },
    /// A machine cannot be addressed.
    #[error(transparent)]
    Unknown(#[from] UnknownLid),
    /// Packets do not arrive.
    #[error("{flows} flows do not arrive after {migrations} migrations")]
    Lost {
        /// How many.
        flows: u64,
        /// After how many migrations.
        migrations: usize,
    },
}

/// What one combination comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseResult {
    /// Which.
    #[serde(flatten)]
    pub case: Case,
    /// The number of virtual machines.
    pub machines: usize,
    /// How many switches FTreeMinRC updates in a migration.
    pub ftreeminrc: Summary,
    /// How many ItRC updates.
    pub itrc: Summary,
    /// Bandwidths before the first migration and after each tenth of them.
    pub tenths: Vec<Tenth>,
    /// Each migration.
    #[serde(skip)]
    pub migrations: Vec<Migrated>,
}

/// A migration, and how many switches it updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// What moves where.
    pub migration: Migration,
    /// Switches that FTreeMinRC updates.
    pub ftreeminrc: u32,
    /// Those among them that packets between the old place and the new one pass, which are updated first.
    pub active: u32,
    /// Switches that ItRC updates.
    pub itrc: u32,
}

/// Bandwidths after a part of the migrations. Bandwidth is the share that a flow of a bisection gets of a link, on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tenth {
    /// How much of the migrations, in percent.
    pub percent: u32,
    /// How many that are.
    pub migrations: usize,
    /// By the tables that FTreeMinRC has left.
    pub ftreeminrc: Bandwidth,
    /// By a fresh routing.
    pub fresh: Bandwidth,
}

/// A mean over random bisections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bandwidth {
    /// The mean.
    pub mean: f64,
    /// Half of its 95 % interval.
    pub interval: f64,
}

impl Tenth {
    /// How much less bandwidth there is than by a fresh routing, in percent of that; negative where there is more.
    pub fn loss_percent(&self) -> f64 {
        (1.0 - self.ftreeminrc.mean / self.fresh.mean) * 100.0
    }
}

impl CaseResult {
    /// The loss after all migrations, in percent.
    pub fn last_loss_percent(&self) -> f64 {
        self.tenths.last().map_or(0.0, Tenth::loss_percent)
    }

    /// The greatest loss after any tenth, in percent.
    pub fn greatest_loss_percent(&self) -> f64 {
        self.tenths.iter().map(Tenth::loss_percent).fold(0.0, f64::max)
    }
}

/// How many flows are followed for a combination: what its study costs. `further`: seeds of which the end alone is measured.
pub(super) fn flows(case: &Case, options: &StudyOptions, further: u32) -> u64 {
    // At first both routings are the same one.
    let bandwidths = 2 * PARTS as u64 + 1 + 2 * u64::from(further);
    bandwidths * u64::from(options.bisections) * (case.machines() / 2) as u64
}

/// A tree with virtual machines, and the tables of each method.
struct Site<'a> {
    fabric: &'a Fabric,
    engine: &'static Engine,
    options: EngineOptions,
    study: &'a StudyOptions,
    tell: &'a (dyn Fn(u64) + Sync),
    kept: &'a Kept,
    /// By host: its port and the LID of its physical function.
    hosts: Vec<(PortRef, Lid)>,
    /// By machine.
    machines: Vec<Lid>,
    lids: Lids,
    routings: [Routing; METHODS.len()],
}

/// Studies one combination in the current rayon pool. `tell` hears of flows as they are done, of as many in all as
/// [`Study::flows`](super::Study::flows) says.
///
/// # Errors
///
/// When the tree cannot be built, routed or planned for; none of table 4's does that.
pub fn run(
    case: &Case,
    options: &StudyOptions,
    tell: &(dyn Fn(u64) + Sync),
) -> Result<CaseResult, StudyError> {
    walk(case, options, &|_| true, tell)
}

/// The loss after all migrations with another seed, in percent.
///
/// # Errors
///
/// As of [`run`].
pub(super) fn last_loss(
    case: &Case,
    options: &StudyOptions,
    seed: u64,
    tell: &(dyn Fn(u64) + Sync),
) -> Result<f64, StudyError> {
    let options = StudyOptions { seed, ..*options };
    Ok(walk(case, &options, &|part| part == PARTS, tell)?.last_loss_percent())
}

/// `measures`: the parts after which bandwidth is measured.
fn walk(
    case: &Case,
    options: &StudyOptions,
    measures: &dyn Fn(usize) -> bool,
    tell: &(dyn Fn(u64) + Sync),
) -> Result<CaseResult, StudyError> {
    let fabric = case.topology.fabric()?;
    let begin = start(case, options.seed);
    let all = migrations(case.pattern, &begin, &mut generator(options.seed, Draw::Pattern(case)));
    let (hosts, machines, lids) = addresses(&fabric, &begin)?;
    let engine = Engine::by_name(ENGINE).ok_or(StudyError::NoEngine(ENGINE))?;
    let engine_options = EngineOptions::default();
    let routing = engine.route(&Input { fabric: &fabric, lids: &lids, options: &engine_options })?;
    let kept = Kept::new(&fabric, &lids, &routing, &engine_options, &[], &BTreeSet::new())?;
    let mut site = Site {
        fabric: &fabric,
        engine,
        options: engine_options,
        study: options,
        tell,
        kept: &kept,
        hosts,
        machines,
        lids,
        routings: [routing.clone(), routing],
    };
    let mut tenths = Vec::new();
    let mut migrated = Vec::with_capacity(all.len());
    for part in 0..=PARTS {
        let until = (all.len() * part + PARTS / 2) / PARTS;
        for migration in &all[migrated.len()..until] {
            migrated.push(site.migrate(migration, migrated.len() + 1)?);
        }
        if measures(part) {
            tenths.push(site.tenth(part, until)?);
        }
    }
    let counts = |pick: fn(&Migrated) -> u32| Summary::of(migrated.iter().map(|one| f64::from(pick(one))));
    Ok(CaseResult {
        case: *case,
        machines: site.machines.len(),
        ftreeminrc: counts(|one| one.ftreeminrc),
        itrc: counts(|one| one.itrc),
        tenths,
        migrations: migrated,
    })
}

/// Purposes of random numbers: each has a generator of its own.
#[derive(Clone, Copy)]
enum Draw<'a> {
    /// The start, which all patterns of a topology and occupancy share.
    Start(&'a Case),
    /// The migrations.
    Pattern(&'a Case),
}

/// A generator for each draw: the seed and the place of a combination among all decide, so no result depends on which others
/// are studied.
fn generator(seed: u64, draw: Draw<'_>) -> Pcg64 {
    let place = |fits: &dyn Fn(&Case) -> bool| cases().position(|case| fits(&case)).unwrap_or(0) as u64;
    let stream = match draw {
        Draw::Start(case) => {
            let shares = |other: &Case| {
                (other.topology, other.start, other.occupancy) == (case.topology, case.start, case.occupancy)
            };
            2 * place(&shares)
        }
        Draw::Pattern(case) => 2 * place(&|other| other == case) + 1,
    };
    // The odd constant keeps the draws of neighbouring seeds apart.
    Pcg64::seed_from_u64(seed.wrapping_add((stream + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

fn start(case: &Case, seed: u64) -> Placement {
    let mut random = generator(seed, Draw::Start(case));
    Placement::new(case.start, case.topology.hosts, case.machines(), &mut random)
}

/// The hosts from the left with their own LIDs, the LIDs of machines, and all LIDs.
type Addresses = (Vec<(PortRef, Lid)>, Vec<Lid>, Lids);

/// LIDs for all ports in GUID order, and then one for each machine.
fn addresses(fabric: &Fabric, begin: &Placement) -> Result<Addresses, StudyError> {
    let mut lids = Lids::in_guid_order(fabric, 0)?;
    let ports = fabric.hosts().map(|(host, _)| PortRef::new(host, PortNum(1)));
    let hosts: Vec<(PortRef, Lid)> =
        ports.filter_map(|port| lids.of(port).map(|lids| (port, lids.base))).collect();
    let mut machines = Vec::with_capacity(begin.machines());
    for machine in 0..begin.machines() {
        let lid = Lid(lids.top().0.saturating_add(1));
        lids.insert(hosts[begin.host(machine)].0, lid, 0)?;
        machines.push(lid);
    }
    Ok((hosts, machines, lids))
}

impl Site<'_> {
    /// Carries a migration out by every method.
    fn migrate(&mut self, migration: &Migration, nth: usize) -> Result<Migrated, StudyError> {
        let lid = self.machines[migration.machine];
        let ((from, _), (to, of)) = (self.hosts[migration.from], self.hosts[migration.to]);
        let mut found = [(0, 0); METHODS.len()];
        for ((method, routing), found) in METHODS.into_iter().zip(&mut self.routings).zip(&mut found) {
            let (fabric, lids) = (self.fabric, &self.lids);
            let planner =
                Planner { kept: self.kept, fabric, lids, routing, fresh: None, late: LatePolicy::default() };
            let plan = planner.plan(&[Move::Copy { lid, from, to, of }], method, UpdateOrder::Unordered);
            let plan = plan.map_err(|reason| StudyError::Plan { nth, reason })?;
            if plan.method != method {
                return Err(StudyError::Fallback { nth, method });
            }
            for write in plan.writes() {
                routing.routes.tables[write.switch.index()].set_block(write.block, &write.ports);
            }
            *found = (plan.physical, plan.writes().filter(|write| write.is_active).count() as u32);
        }
        self.lids.transfer(lid, to);
        let [(ftreeminrc, active), (itrc, _)] = found;
        Ok(Migrated { migration: *migration, ftreeminrc, active, itrc })
    }

    /// Bandwidths by the tables that are left, and by fresh ones.
    fn tenth(&self, part: usize, migrations: usize) -> Result<Tenth, StudyError> {
        let [left, _] = &self.routings;
        let left = self.bandwidth(left, migrations)?;
        let fresh = if migrations == 0 {
            left
        } else {
            let input = Input { fabric: self.fabric, lids: &self.lids, options: &self.options };
            self.bandwidth(&self.engine.route(&input)?, migrations)?
        };
        Ok(Tenth { percent: (part * 100 / PARTS) as u32, migrations, ftreeminrc: left, fresh })
    }

    /// The effective bisection bandwidth between machines. All routings of a combination see the same bisections.
    fn bandwidth(&self, routing: &Routing, migrations: usize) -> Result<Bandwidth, StudyError> {
        let &StudyOptions { bisections: runs, seed, .. } = self.study;
        let paths = Paths::new(self.fabric, &self.lids, &routing.routes);
        let participants = Participants::all(self.machines.clone());
        let options = SimulateOptions { runs, seed, ..SimulateOptions::default() };
        let simulation = simulate(&paths, &participants, Traffic::Bisect, &options)?;
        if simulation.failures > 0 {
            return Err(StudyError::Lost { flows: simulation.failures, migrations });
        }
        (self.tell)(simulation.flows);
        let summary = simulation.bandwidth();
        Ok(Bandwidth { mean: summary.mean, interval: summary.interval() })
    }
}
