//! Schedules in virtual time.

use weft_chaos::Laboratory;
use weft_experiment::Beside;
use weft_sim::ChaosSite;
use weft_topology::{Fabric, Virtualised};

use super::{Outcome, Place, Replay, Step, fabric_of, found};
use crate::cli::{ChaosArgs, VfArgs, VfLids};
use crate::failure::Failure;
use crate::lab::signals::{Interruption, SIGINT, SIGTERM};
use crate::lab::vfs;
use crate::output::Ticker;
use crate::topology_file;

/// Smaller schedules that are tried.
const TRIES: u32 = 1000;

/// A laboratory in virtual time, and how a file describes it.
pub(super) struct Site {
    pub(super) whole: ChaosSite,
    cabling: Fabric,
    beside: Beside,
}

/// The laboratory that the command line and the schedule of a replay describe.
pub(super) fn site(args: &ChaosArgs, replay: Option<&Replay>) -> anyhow::Result<Site> {
    let cabling = match (&args.file, replay) {
        (Some(file), _) => topology_file::load(file)?,
        (None, Some(replay)) => fabric_of(replay)?,
        (None, None) => {
            return Err(Failure::bad_input("virtual time needs a topology file")
                .hint("`weft chaos FILE --virtual`; `weft topo gen` makes files")
                .into());
        }
    };
    if cabling.cables().next().is_none() {
        return Err(Failure::bad_input("the fabric has no cable, so nothing can be broken").into());
    }
    let known = replay.map(|replay| replay.file.beside).unwrap_or_default();
    let beside = Beside {
        pm: args.pm || known.pm,
        standbys: args.standby.max(known.standbys),
        vfs: args.vfs.or(known.vfs),
        is_dynamic: args.lids.map_or(known.is_dynamic, |lids| lids == VfLids::Dynamic),
    };
    let lids = beside.is_dynamic.then_some(VfLids::Dynamic);
    let vfs = VfArgs { vfs: beside.vfs, lids, ..VfArgs::default() };
    let Virtualised { fabric, adapters } = vfs::cabling(cabling.clone(), &vfs, 0)?;
    let laboratory = Laboratory { standbys: beside.standbys, pm: beside.pm, vmm: vfs.starts_manager() };
    let laboratory = laboratory.with(replay.map_or(&[], |replay| replay.file.faults.as_slice()));
    let whole = ChaosSite { fabric, adapters, empty_slots: vfs.is_dynamic(), laboratory };
    Ok(Site { whole, cabling, beside })
}

pub(super) fn run(args: &ChaosArgs, replay: Option<&Replay>) -> anyhow::Result<Outcome> {
    let site = site(args, replay)?;
    if let Some(replay) = replay {
        let schedule = replay.in_fabric(&site.whole.fabric)?;
        let mut outcome = Outcome { seed: replay.file.seed, ok: true, ..Outcome::default() };
        one(args, &site, (replay.file.seed, schedule), &mut outcome)?;
        return Ok(outcome);
    }
    let interruption = Interruption::watch(&[SIGINT, SIGTERM])?;
    let mut ticker = Ticker::begin();
    let mut outcome = Outcome { seed: args.seed, ok: true, ..Outcome::default() };
    for seed in args.seed..args.seed + args.schedules {
        if interruption.check().is_err() {
            outcome.interrupted = true;
            break;
        }
        ticker.tell(|| format!("schedule {} of {}, seed {seed}", outcome.schedules + 1, args.schedules));
        one(args, &site, (seed, site.whole.draw(seed)), &mut outcome)?;
        if !outcome.ok {
            break;
        }
    }
    Ok(outcome)
}

/// Carries out one schedule.
fn one(
    args: &ChaosArgs,
    Site { whole, cabling, beside }: &Site,
    (seed, schedule): (u64, Vec<Step>),
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let judge = |list: &[Step]| whole.judge(list, seed, args.seeded_bug);
    outcome.schedules += 1;
    outcome.faults += schedule.len() as u64;
    match judge(&schedule) {
        Ok(report) => outcome.cost = outcome.cost.and(report.cost),
        Err(what) => {
            outcome.ok = false;
            let report = args.report.as_deref();
            let place = Place { fabric: &whole.fabric, cabling, beside: *beside, report };
            let fails = |list: &[Step]| judge(list).err();
            outcome.violation = Some(found(place, seed, (schedule, what), (TRIES, fails))?);
        }
    }
    Ok(())
}
