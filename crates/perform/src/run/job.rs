//! The runs that are wanted: experiments from files, and the choice among their variants, seeds and drivers.

use std::path::{Path, PathBuf};

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_experiment::{Driver, ExperimentFile, RunId};
use weft_topology::LoadError;

use super::Options;

/// One run to be made.
pub(super) struct Job {
    pub(super) file: usize,
    pub(super) run: RunId,
    pub(super) driver: Driver,
}

/// The experiments that are meant, in order of their names.
pub(super) fn read_all(options: &Options) -> anyhow::Result<Vec<ExperimentFile>> {
    let mut paths = Vec::new();
    for path in &options.files {
        if !path.is_dir() {
            paths.push(path.clone());
            continue;
        }
        if !options.all {
            return Err(Failure::bad_input(format!("{} is a folder", path.display()))
                .hint("`--all` runs every experiment in it"));
        }
        let entries = std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        found.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        found.sort();
        if found.is_empty() {
            return Err(Failure::bad_input(format!("{} has no experiments", path.display()))
                .hint("experiments are files that end in .toml"));
        }
        paths.append(&mut found);
    }
    paths.iter().map(|path| read(path, options)).collect()
}

fn read(path: &Path, options: &Options) -> anyhow::Result<ExperimentFile> {
    let name = path.display().to_string();
    let text = weft_bundle::input::given(path)?;
    let file = match options.profile {
        Some(profile) => ExperimentFile::parse_with_profile(&name, &text, profile),
        None => ExperimentFile::parse(&name, &text),
    };
    let mut file = file.map_err(|error| Failure::bad_input(error.to_string()))?;
    if let Some(crossbar) = options.crossbar {
        file = file.with_crossbar(crossbar);
    }
    if let Some(lane_share) = options.lane_share {
        file = file.with_lane_share(lane_share);
    }
    if options.conditions {
        file = file.under_conditions().map_err(|error| Failure::bad_input(error.to_string()))?;
    }
    file.check(&mut load).map_err(|error| Failure::bad_input(error.to_string()))?;
    Ok(file)
}

/// The text of a topology file that another file names.
pub(super) fn load(included: &str, from: &str) -> Result<String, LoadError> {
    let beside = Path::new(from).parent().unwrap_or(Path::new("")).join(included);
    weft_bundle::input::read_to_string(&beside).map_err(LoadError::new)
}

/// What is to be run, and how.
pub(super) fn jobs(options: &Options, files: &[ExperimentFile]) -> anyhow::Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for (file, experiment) in files.iter().enumerate() {
        for (axis, _) in &options.only {
            if files.len() == 1 && !experiment.axes().iter().any(|(name, _)| name == axis) {
                let axes: Vec<String> = experiment.axes().into_iter().map(|(name, _)| name).collect();
                return Err(Failure::bad_input(format!("{} has no axis `{axis}`", experiment.name()))
                    .hint(format!("its axes are: {}", axes.join(", "))));
            }
        }
        let (live, simulated) = (experiment.plain().live, experiment.plain().simulated);
        let mut drivers = Vec::new();
        if live && !options.simulated {
            drivers.push(Driver::Live);
        }
        if simulated && (options.simulated || options.both || !live) {
            drivers.push(Driver::Virtual);
        }
        for run in experiment.runs().into_iter().filter(|run| is_wanted(options, run)) {
            jobs.extend(drivers.iter().map(|driver| Job { file, run: run.clone(), driver: *driver }));
        }
    }
    if jobs.is_empty() {
        return Err(Failure::bad_input("no run matches --only and --seed")
            .hint("--only and --seed choose among the variants and seeds of the file, --virtual wants an experiment that may be simulated"));
    }
    Ok(jobs)
}

fn is_wanted(options: &Options, run: &RunId) -> bool {
    let chosen = |(axis, label): &(String, String)| {
        run.choices.iter().all(|(name, choice)| name != axis || choice == label)
    };
    // Several labels of one axis are alternatives.
    let axes = options.only.iter().map(|(axis, _)| axis);
    let fits = |axis: &String| options.only.iter().filter(|(name, _)| name == axis).any(chosen);
    axes.into_iter().all(fits) && (options.seeds.is_empty() || options.seeds.contains(&run.seed))
}

/// The word for a driver.
pub(super) fn driver_name(driver: Driver) -> &'static str {
    if driver == Driver::Live { "live" } else { "virtual" }
}
