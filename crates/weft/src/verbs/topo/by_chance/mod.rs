//! Verbs drawn by chance are carried out on the files of a laboratory whose processes do not run. After each of them the files say
//! what a plain model says, and a verb that is refused has changed nothing. In the end a simulated fabric is recabled in the same
//! way, and its subnet manager leaves tables that lead everywhere in the piece that it reaches. Others may be cut off, and come back.
//!
//! `WEFT_SCHEDULES` says how many seeds (300 if not said), `WEFT_SEED` replays one. Processes are recabled by chance in
//! `tests/recabling_by_chance.rs`.

mod checks;
mod model;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use clap::Parser as _;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use tempfile::TempDir;
use weft_agent_config::AgentPart;
use weft_bundle::folder::LabFolder;
use weft_bundle::folder::bundle::{self, Bundle};
use weft_bundle::place::hosts::AgentPlace;
use weft_bundle::record::LabRecord;
use weft_bundle::topology_file;
use weft_lab::recabling::Change;
use weft_link::CableEnd;
use weft_machine::Time;
use weft_sim::{SimOptions, Simulation, Violation};
use weft_topology::{Fabric, PortRef};
use weft_wire::Guid;

use super::add::{Newcomer, begin, draft_host, draft_removal, draft_switch, fresh_guid};
use super::recable::Bench;
use crate::cli::topo::TopoVerb;
use crate::cli::{Cli, Verb};
use model::{Drawn, Model, Step};

const SEEDS: u64 = 300;
/// Verbs of each seed.
const VERBS: usize = 8;
/// How long a simulated fabric may take to come to rest.
const PATIENCE: Time = Time::from_secs(60);
/// The delay of cables that were planned. Those that a verb puts in have none.
const DELAY_NS: u64 = 700;
const LAB: &str = "chance";
/// What seeds begin with: what is generated, and how many devices share an agent.
const PLANS: [(&str, &str); 5] = [
    ("ring --switches 4 --hosts 1 --radix 6", "1"),
    ("ring --switches 3 --hosts 2 --radix 6", "leaf"),
    ("mesh --dims 2,2 --hosts 1 --radix 5", "3"),
    ("xgft --children 2,2 --parents 1,2 --radix 5", "1"),
    ("ring --switches 3 --hosts 1 --radix 5", "all"),
];

/// Beside the verbs in [`Totals`].
const CUT_OFF: &str = "cut off";

/// How often each verb was carried out, and how often it was refused; and in how many fabrics a switch was cut off, and in how many none.
type Totals = BTreeMap<&'static str, [u32; 2]>;

/// A laboratory that was planned, of which seeds have copies.
struct Plan {
    bundle: Bundle,
    record: LabRecord,
    fabric: Fabric,
}

impl Plan {
    fn write(base: &Path, number: usize) -> anyhow::Result<Self> {
        let (kind, pack) = PLANS[number];
        let (file, out) = (base.join(format!("{number}.topo")), base.join(number.to_string()));
        let (file_name, out_name) = (file.to_str().context("no UTF-8")?, out.to_str().context("no UTF-8")?);
        let words: Vec<&str> = kind.split(' ').chain(["-o", file_name]).collect();
        let Verb::Topo(TopoVerb::Gen(args)) = parse(&[&["topo", "gen"][..], &words].concat())? else {
            bail!("another verb")
        };
        super::make(&args)?;
        // Named hosts, so that no port of this machine is claimed.
        let words = ["plan", file_name, "--hosts", "127.0.0.1", "--pack", pack, "--out", out_name];
        let Verb::Plan(args) = parse(&words)? else { bail!("another verb") };
        super::super::plan::run(Some(LAB), &args)?;
        let bundle = Bundle::at(&out);
        let record = LabRecord::of_bundle(&bundle)?;
        for agent in &record.agents {
            let path = bundle.agent(&agent.name);
            let mut part: AgentPart = bundle::load(&path)?;
            part.cables.iter_mut().for_each(|cable| cable.delay_ns = DELAY_NS);
            bundle::store(&path, &part)?;
        }
        let fabric = topology_file::load(&bundle.topology())?;
        Ok(Self { bundle, record, fabric })
    }

    /// A laboratory's folder with it.
    fn copy_to(&self, folder: &Path) -> anyhow::Result<LabFolder> {
        let lab = LabFolder::of_run(folder, LAB)?;
        lab.prepare_for("hub")?;
        self.bundle.copy_to(&lab.bundle())?;
        std::fs::copy(self.bundle.authority_key(), lab.bundle().authority_key())?;
        Ok(lab)
    }
}

fn parse(words: &[&str]) -> anyhow::Result<Verb> {
    Ok(Cli::try_parse_from(std::iter::once(&"weft").chain(words))?.verb)
}

/// A folder in memory, where there is such a place: every file is synchronised many times.
fn scratch() -> anyhow::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    Ok(if memory.is_dir() { tempfile::tempdir_in(memory)? } else { tempfile::tempdir()? })
}

/// A laboratory while verbs are carried out.
struct Run {
    lab: LabFolder,
    model: Model,
    random: Pcg64,
    totals: Totals,
}

impl Run {
    fn verb(&mut self) -> anyhow::Result<()> {
        let drawn = self.model.draw(&mut self.random);
        let words = self.model.words(&drawn);
        let shown = || format!("weft topo {}", words.join(" "));
        let words: Vec<&str> = std::iter::once("topo").chain(words.iter().map(String::as_str)).collect();
        let Verb::Topo(verb) = parse(&words)? else { bail!("another verb") };
        let allowed = self.model.allows(&drawn);
        self.totals.entry(drawn.verb()).or_default()[usize::from(!allowed)] += 1;
        let done = if allowed { self.does(&drawn, &verb) } else { self.refuses(&verb) };
        done.and_then(|()| checks::files_are(&self.lab, &self.model)).with_context(shown)
    }

    fn does(&mut self, drawn: &Drawn, verb: &TopoVerb) -> anyhow::Result<()> {
        let gone = match drawn {
            Drawn::Remove(guid) => Some(self.model.nodes[guid].agent.clone()),
            _ => None,
        };
        let gone =
            gone.map(|agent| checks::identity(&self.lab, &agent).map(|had| (agent, had))).transpose()?;
        let (bench, change) = self.draft(verb)?;
        change.carry_out_unheard(&bench.turn)?;
        let added = change.added().map(str::to_owned);
        let new = match added {
            None => None,
            Some(agent) => {
                ensure!(!self.model.agents.contains(&agent), "{agent} is the name of an agent that was");
                let record = LabRecord::load(&self.lab)?;
                let own = record.agents.into_iter().find(|own| own.name == agent).context("no new agent")?;
                Some((own.devices.first().context("no device")?.guid, agent))
            }
        };
        self.model.apply(drawn, new);
        gone.map_or(Ok(()), |(agent, identity)| checks::is_revoked(&self.lab, &agent, &identity))
    }

    fn refuses(&mut self, verb: &TopoVerb) -> anyhow::Result<()> {
        let before = checks::files(&self.lab)?;
        let Err(error) = self.draft(verb) else { bail!("it is not refused") };
        let message = format!("{error:#}");
        ensure!(!message.is_empty() && !message.contains('\n'), "refused with `{message}`");
        let now = checks::files(&self.lab)?;
        let changed = now.iter().find(|(path, bytes)| before.get(*path) != Some(bytes));
        ensure!(now.len() == before.len() && changed.is_none(), "refused, and {changed:?} is new");
        Ok(())
    }

    /// What the verb would do.
    fn draft(&mut self, verb: &TopoVerb) -> anyhow::Result<(Bench, Change)> {
        let mut bench = match verb {
            TopoVerb::AddHost(args) => begin(&self.lab, &args.name)?,
            TopoVerb::AddSwitch(args) => begin(&self.lab, &args.name)?,
            _ => Bench::begin(&self.lab)?,
        };
        let change = match verb {
            TopoVerb::Connect(args) => bench.connect(args)?,
            TopoVerb::Disconnect(args) => bench.disconnect(args)?,
            TopoVerb::Move(args) => bench.relocate(args)?,
            TopoVerb::AddHost(args) => {
                let newcomer = self.newcomer(&bench.lab.fabric)?;
                draft_host(&mut bench, args, &newcomer)?
            }
            TopoVerb::AddSwitch(args) => {
                let newcomer = self.newcomer(&bench.lab.fabric)?;
                draft_switch(&mut bench, args, &newcomer)?
            }
            TopoVerb::Remove(args) => draft_removal(&mut bench, args)?,
            _ => bail!("another verb"),
        };
        Ok((bench, change))
    }

    fn newcomer(&mut self, fabric: &Fabric) -> anyhow::Result<Newcomer> {
        let guid = fresh_guid(fabric, || self.random.random());
        let bind = format!("127.0.0.1:{}", 30_000 + self.model.agents.len()).parse()?;
        Ok(Newcomer::of(guid, AgentPlace { bind, address: bind.into() }))
    }
}

fn run_seed(seed: u64, plans: &[Plan], folder: &Path) -> anyhow::Result<Totals> {
    let mut random = Pcg64::seed_from_u64(seed);
    let plan = &plans[random.random_range(0..plans.len())];
    let lab = plan.copy_to(folder)?;
    let model = Model::of(&plan.record, &plan.fabric, DELAY_NS);
    let mut run = Run { lab, model, random, totals: Totals::new() };
    checks::files_are(&run.lab, &run.model).context("at first")?;
    for _ in 0..VERBS {
        run.verb()?;
    }
    checks::certificates_are_listed(&run.lab, &run.model)?;
    recable_simulated(&plan.fabric, &run.model, &mut run.random, seed).context("in the simulator")?;
    let cut = usize::from(!run.model.was_cut);
    run.totals.entry(CUT_OFF).or_default()[cut] += 1;
    Ok(run.totals)
}

/// Makes the same changes to a simulated fabric, some of them while the manager is at work on those before.
fn recable_simulated(first: &Fabric, model: &Model, random: &mut Pcg64, seed: u64) -> anyhow::Result<()> {
    let mut fabric = first.clone();
    for (guid, known) in &model.come {
        fabric = fabric.with(known.node(*guid))?.0;
    }
    let node = |guid: Guid| fabric.by_guid(guid).with_context(|| format!("no node {guid}"));
    let port = |end: CableEnd| anyhow::Ok(PortRef::new(node(end.guid)?, end.port));
    let options = SimOptions { recabling: true, sm_port: Some(port(model.seat)?), ..SimOptions::default() };
    let mut simulation = Simulation::new(&fabric, options, seed);
    simulation.run_until_quiet(PATIENCE)?;
    for step in &model.steps {
        let change = match *step {
            Step::TakenOut(end) => weft_sim::Change::Disconnect(port(end)?),
            Step::PutIn([a, b]) => weft_sim::Change::Connect([port(a)?, port(b)?]),
            Step::Removed(guid) => weft_sim::Change::Remove(node(guid)?),
        };
        ensure!(simulation.change(change), "{change:?} cannot be");
        let pause = Time::from_micros(random.random_range(0..20_000));
        simulation.run_until(simulation.now() + pause);
    }
    simulation.run_until_quiet(simulation.now() + PATIENCE)?;
    let all = |violations: Vec<Violation>| {
        anyhow::anyhow!(violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    };
    let report = simulation.check().map_err(all)?;
    simulation.check_picture().map_err(all)?;
    ensure!(report.pairs > 0, "no way through the tables was looked at: {report:?}");
    let reached = model.reached().len();
    ensure!(report.nodes == reached, "{} nodes are within reach, not {reached}", report.nodes);
    let cabled = simulation.fabric().cables().count();
    ensure!(cabled == model.cables.len(), "{cabled} cables, not {}", model.cables.len());
    Ok(())
}

/// The seeds of one of two parts, so that they run beside each other.
fn part(part: u64) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let base = scratch().expect("a folder");
    let plans: Vec<Plan> = (0..PLANS.len())
        .map(|number| Plan::write(base.path(), number).unwrap_or_else(|error| panic!("{error:#}")))
        .collect();
    let count = number("WEFT_SCHEDULES").unwrap_or(SEEDS);
    let seeds: Vec<u64> = match number("WEFT_SEED") {
        Some(seed) if seed % 2 == part => vec![seed],
        Some(_) => Vec::new(),
        None => (part..count).step_by(2).collect(),
    };
    let mut totals = Totals::new();
    for seed in &seeds {
        let folder = base.path().join(format!("seed-{seed}"));
        let done = run_seed(*seed, &plans, &folder);
        let done = done.unwrap_or_else(|error| panic!("WEFT_SEED={seed} replays it: {error:#}"));
        for (verb, [carried_out, refused]) in done {
            let total = totals.entry(verb).or_default();
            *total = [total[0] + carried_out, total[1] + refused];
        }
        std::fs::remove_dir_all(&folder).expect("its folder goes");
    }
    eprintln!("{} seeds, carried out and refused: {totals:?}", seeds.len());
    let kinds = totals.len() == 7 && totals.values().flatten().all(|count| *count > 0);
    assert!(kinds || seeds.len() < 100, "something never happened: {totals:?}");
}

#[test]
fn files_follow_verbs_by_chance_with_even_seeds() {
    part(0);
}

#[test]
fn files_follow_verbs_by_chance_with_odd_seeds() {
    part(1);
}
