//! Schedules in virtual time.

use weft_bundle::failure::Failure;
use weft_bundle::folder::front::Work;
use weft_bundle::plan::vfs::{self, Functions, VfCount};
use weft_bundle::topology_file;
use weft_chaos::Laboratory;
use weft_experiment::Beside;
use weft_lab::signals::{Interruption, SIGINT, SIGTERM};
use weft_sim::ChaosSite;
use weft_sm::LidScheme;
use weft_topology::{Fabric, Virtualised};

use super::{Options, Outcome, Place, Replay, Step, Violation, fabric_of, found};

/// Smaller schedules that are tried.
const TRIES: u32 = 1000;

/// A laboratory in virtual time, and how a file describes it.
pub(super) struct Site {
    pub(super) whole: ChaosSite,
    cabling: Fabric,
    beside: Beside,
}

/// The laboratory that the command line and the schedule of a replay describe.
pub(super) fn site(options: &Options, replay: Option<&Replay>) -> anyhow::Result<Site> {
    let cabling = match (&options.file, replay) {
        (Some(file), _) => topology_file::load(file)?,
        (None, Some(replay)) => fabric_of(replay)?,
        (None, None) => {
            return Err(Failure::bad_input("virtual time needs a topology file")
                .hint("`weft chaos FILE --virtual`; `weft topo gen` makes files"));
        }
    };
    if cabling.cables().next().is_none() {
        return Err(Failure::bad_input("the fabric has no cable, so nothing can be broken").into());
    }
    let known = replay.map(|replay| replay.file.beside).unwrap_or_default();
    let wanted = options.beside;
    let beside = Beside {
        pm: wanted.pm || known.pm,
        standbys: wanted.standbys.max(known.standbys),
        vfs: wanted.vfs.or(known.vfs),
        is_dynamic: wanted.lids.map_or(known.is_dynamic, |lids| lids == LidScheme::Dynamic),
        vmm: known.vmm,
    };
    let lids = if beside.is_dynamic { LidScheme::Dynamic } else { LidScheme::Prepopulated };
    let counts = beside.vfs.map(VfCount::of_all).into_iter().collect();
    let functions = Functions { counts, lids };
    let virtualised = vfs::cabling(cabling.clone(), &functions, 0)?;
    if let Some(hca) = virtualised.hca_of_several() {
        let label = virtualised.fabric.label(hca);
        return Err(Failure::bad_input(format!(
            "--vfs: `{label}` has several cabled ports, and in virtual time an adapter with virtual functions has one"
        ))
        .hint("leave out --vfs, or run the schedule in a laboratory of `weft up --vfs`"));
    }
    let Virtualised { fabric, mut adapters } = virtualised;
    if beside.vfs.is_none() && (beside.vmm || beside.is_dynamic) {
        adapters = fabric.virtualised_adapters();
        if adapters.is_empty() {
            let message =
                "there is to be a VM manager or `--lids dynamic`, and the fabric has no virtual functions";
            return Err(Failure::bad_input(message)
                .hint("give --vfs COUNT, or the topology file that lies beside the schedule"));
        }
    }
    let vmm = functions.is_any() || beside.vmm;
    let laboratory = Laboratory { standbys: beside.standbys, pm: beside.pm, vmm };
    let laboratory = laboratory.with(replay.map_or(&[], |replay| replay.file.faults.as_slice()));
    let empty_slots = beside.is_dynamic && !adapters.is_empty();
    let whole = ChaosSite { fabric, adapters, empty_slots, laboratory };
    Ok(Site { whole, cabling, beside })
}

pub(super) fn run(
    options: &Options,
    replay: Option<&Replay>,
    mut work: Box<dyn Work>,
) -> anyhow::Result<Outcome> {
    let site = site(options, replay)?;
    if let Some(replay) = replay {
        let schedule = replay.in_fabric(&site.whole.fabric)?;
        let mut outcome = Outcome { seed: replay.file.seed, ok: true, ..Outcome::default() };
        one(options, &site, replay.file.seed, schedule, &mut outcome)?;
        return Ok(outcome);
    }
    let interruption = Interruption::watch(&[SIGINT, SIGTERM])?;
    let mut outcome = Outcome { seed: options.seed, ok: true, ..Outcome::default() };
    for seed in options.seed..options.seed + options.schedules {
        if interruption.check().is_err() {
            outcome.interrupted = true;
            break;
        }
        work.is_at(&|| format!("schedule {} of {}, seed {seed}", outcome.schedules + 1, options.schedules));
        one(options, &site, seed, site.whole.draw(seed), &mut outcome)?;
        if !outcome.ok {
            break;
        }
    }
    Ok(outcome)
}

/// Carries out one schedule.
fn one(
    options: &Options,
    Site { whole, cabling, beside }: &Site,
    seed: u64,
    schedule: Vec<Step>,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let judge = |list: &[Step]| whole.judge(list, seed, options.seeded_bug);
    outcome.schedules += 1;
    outcome.faults += schedule.len() as u64;
    match judge(&schedule) {
        Ok(report) => outcome.cost = outcome.cost.and(report.cost),
        Err(what) => {
            outcome.ok = false;
            let report = options.report.as_deref();
            let place = Place { fabric: &whole.fabric, cabling, beside: *beside, report };
            let fails = |list: &[Step]| judge(list).err().map(|what| what.to_string());
            outcome.violation =
                Some(found(place, Violation { seed, schedule, what: what.to_string() }, TRIES, fails)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use weft_chaos::named;
    use weft_topology::generate::{GenerateOptions, xgft};

    use super::super::{BesideOptions, read_schedule};
    use super::*;

    fn site_of(
        file: Option<&str>,
        replay: Option<&str>,
        (vfs, lids): (Option<u32>, Option<LidScheme>),
    ) -> anyhow::Result<Site> {
        let beside = BesideOptions { vfs, lids, ..BesideOptions::default() };
        let options = Options { file: file.map(Into::into), beside, ..Options::default() };
        let replay = replay.map(|path| read_schedule(path.as_ref())).transpose()?;
        site(&options, replay.as_ref())
    }

    /// A live laboratory's file has the vSwitches in it, and says that there was a VM manager.
    #[test]
    fn a_live_schedule_replays_with_its_vm_manager() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let physical = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
        let file = write("physical.topo", &physical.write_ibnetdiscover());
        let whole = physical.virtualised(2).unwrap().fabric;
        let rest = "topology = \"fabric.topo\"\nseed = 4\n";
        write("fabric.topo", &whole.write_ibnetdiscover());
        let with = write("with.toml", &format!("{rest}vmm = true\n"));
        let without = write("without.toml", rest);

        let drawn = |Site { whole, .. }: &Site| -> Vec<String> {
            (1..30)
                .flat_map(|seed| whole.draw(seed))
                .map(|one| format!("{:?}", named(&whole.fabric, &one)))
                .collect()
        };
        let replayed = |schedule: &str| site_of(None, Some(schedule), (None, None)).unwrap();
        let live = replayed(&with);
        let planned = site_of(Some(&file), None, (Some(2), None)).unwrap();
        assert_eq!(live.whole.adapters.len(), 4);
        assert!(
            live.whole.laboratory.vmm && live.whole.adapters.iter().all(|adapter| adapter.vfs.len() == 2)
        );
        assert_eq!(drawn(&live), drawn(&planned), "both are one laboratory");
        assert!(drawn(&live).iter().any(|fault| fault.contains("Vmm")), "its manager is among what may die");
        let other = replayed(&without);
        assert!(other.whole.adapters.is_empty() && !other.whole.laboratory.vmm);
        let slots = write("slots.toml", &format!("{rest}lids = \"dynamic\"\n"));
        let slots = replayed(&slots).whole;
        assert!(slots.empty_slots && slots.adapters.len() == 4 && !slots.laboratory.vmm, "as with --no-vmm");
        assert!(site_of(Some(&file), None, (None, Some(LidScheme::Dynamic))).is_err(), "of what?");
        let error = site_of(Some(&file), Some(&with), (None, None)).err().unwrap().to_string();
        assert!(error.contains("the fabric has no virtual functions"), "{error}");
    }
}
