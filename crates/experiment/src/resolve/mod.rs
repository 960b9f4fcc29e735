//! From a file and one of its runs to a plan: every name looked up in the cabling.

mod beff;
mod fabric;
mod managers;
mod names;
mod partitions;
mod traffic;
mod vms;

use std::sync::Arc;

use weft_device::DeviceOptions;
use weft_fault::{Fault, Process};
use weft_host::traffic::Command;
use weft_topology::Loader;

use crate::file::{Choice, Wrong};
use crate::{
    Action, Experiment, ExperimentFile, FileError, Oracle, Paths, Plan, PmMode, PortPlace, RunId, Step,
    VmsPlan, What,
};
use names::Names;

/// The most samples of a run.
const SAMPLES_MAX: u64 = 100_000;

impl ExperimentFile {
    /// One run with every name looked up. `load` gives the texts of topology files: it is called with the path, relative
    /// to wherever the experiment's own name is, and with the name of the file that names it.
    pub fn plan(&self, run: &RunId, load: &mut Loader<'_>) -> Result<Plan, FileError> {
        let choice = self.choice(run).map_err(|wrong| self.error(wrong))?;
        self.resolved(&choice, run, load).map_err(|wrong| self.error(wrong))
    }

    /// Looks up every name of every variant, and says what is wrong with the first that is.
    pub fn check(&self, load: &mut Loader<'_>) -> Result<(), FileError> {
        let first = self.runs().first().map_or(1, |run| run.seed);
        self.runs().iter().filter(|run| run.seed == first).try_for_each(|run| self.plan(run, load).map(drop))
    }

    fn resolved(&self, choice: &Choice, run: &RunId, load: &mut Loader<'_>) -> Result<Plan, Wrong> {
        let experiment = &choice.experiment;
        let whole = vms::virtualised(fabric::fabric(self.name(), choice, load)?, choice)?;
        let fabric = Arc::new(whole.fabric);
        let mut names = Names { fabric: &fabric, adapters: &whole.adapters, machines: &[], choice };
        let machines = vms::machines(&names, experiment)?;
        names.machines = machines.as_ref().map(|plan| plan.vms.as_slice()).unwrap_or_default();
        let mut traffic = traffic::Flows::new(&names, experiment, run.seed);
        traffic.all()?;
        let traffic::Flows { flows, setup, steps: opened, levels, .. } = traffic;
        for expect in experiment.expects.iter().map(|expect| &expect.what) {
            names.check_flows(expect, &flows)?;
            if let What::HotSpots { except } = expect {
                except.iter().try_for_each(|name| names.end(name).map(drop))?;
            }
        }
        for gain in experiment.gains.iter().map(|gain| &gain.what) {
            names.check_flows(gain, &flows)?;
        }
        let mut steps = faults(&names, experiment)?;
        steps.extend(vms::migrations(&names, experiment)?);
        steps.extend(opened);
        steps.sort_by_key(|step| (step.at, order(&step.action)));
        let oracle = oracle(&names, experiment)?;
        let ports =
            experiment.ports.iter().map(|name| Ok(PortPlace { name: name.clone(), port: names.port(name)? }));
        let ports = ports.collect::<Result<Vec<_>, Wrong>>()?;
        samples(experiment)?;
        let shaping = managers::shaping(experiment);
        let delay = |(end, metres): &(String, u32)| Ok((names.cabled(end)?, shaping.cable_delay(*metres)));
        let cable_delays = experiment.rates.cables.iter().map(delay).collect::<Result<Vec<_>, Wrong>>()?;
        let (sm_at, pm_at) = managers::places(&names, experiment, &flows)?;
        let vmm_at = vms::vmm_place(&names, sm_at);
        let learnt = |paths: Paths| paths == Paths::Learnt;
        let learn_paths = oracle.is_some()
            || experiment.flows.iter().any(|flow| learnt(flow.options.paths))
            || experiment.patterns.iter().any(|pattern| learnt(pattern.options.paths))
            || experiment.mixes.iter().any(|mix| learnt(mix.options.paths));
        Ok(Plan {
            file: self.name().to_owned(),
            title: experiment.title.clone(),
            run: run.clone(),
            live: experiment.live,
            simulated: experiment.simulated,
            device: shaping.device(DeviceOptions::default()),
            stack: managers::stack(experiment),
            cable_delay: shaping.cable_delay(experiment.rates.cable_m),
            cable_delays,
            sm: managers::sm(&names, experiment, self.name(), sm_at, load)?,
            sm_at,
            pm: managers::pm(experiment),
            pm_at,
            management: managers::management(experiment),
            congestion: experiment.congestion.clone(),
            oracle,
            levels,
            learn_paths,
            setup,
            steps,
            flows,
            duration: experiment.duration,
            vms: machines.clone().map(|plan| VmsPlan { vmm_at, ..plan }),
            windows: experiment.windows.clone(),
            sample_interval: experiment.sample_interval,
            ports,
            fabric,
        })
    }
}

/// What comes first of what happens at the same moment.
fn order(action: &Action) -> u8 {
    match action {
        Action::Host(_, Command::Stop { .. } | Command::Close { .. }) => 0,
        Action::Host(..) => 2,
        _ => 1,
    }
}

fn samples(experiment: &Experiment) -> Result<(), Wrong> {
    let count = experiment.duration.as_nanos() / experiment.sample_interval.as_nanos().max(1);
    if count > SAMPLES_MAX {
        let message = format!("the run would be sampled {count} times");
        let wrong = Wrong::new(crate::file::At::default(), message);
        return Err(wrong.allowed(format!("{SAMPLES_MAX} are allowed: make `interval` of [record] longer")));
    }
    Ok(())
}

fn faults(names: &Names<'_>, experiment: &Experiment) -> Result<Vec<Step>, Wrong> {
    let process = |process: Process<String>| match process {
        Process::Sm | Process::Pm | Process::Agent(_) => process,
        Process::Vmm if experiment.vms.is_some() => process,
        // An experiment has no such process, but may have a node of that name.
        _ => Process::Agent(process.to_string()),
    };
    let step = |spec: &crate::FaultSpec| {
        let fault = match spec.fault.clone() {
            Fault::Kill(name) => Fault::Kill(process(name)),
            Fault::Restart(name) => Fault::Restart(process(name)),
            Fault::Freeze(name) => Fault::Freeze(process(name)),
            Fault::Thaw(name) => Fault::Thaw(process(name)),
            fault => fault,
        };
        let fault = fault.try_map(|node| names.node(&node), |port| names.cabled(&port))?;
        Ok(Step { at: spec.at, action: Action::Fault(fault) })
    };
    experiment.faults.iter().map(step).collect()
}

fn oracle(names: &Names<'_>, experiment: &Experiment) -> Result<Option<Oracle>, Wrong> {
    if experiment.pm.mode != PmMode::Oracle {
        return Ok(None);
    }
    let of_mixes = || experiment.mixes.iter().flat_map(|mix| &mix.hot_spots).cloned().collect::<Vec<_>>();
    let told = &experiment.pm.hot_spots;
    let listed = if told.is_empty() { of_mixes() } else { told.clone() };
    let mut hot_spots = Vec::new();
    for name in names.hosts(&listed)? {
        hot_spots.push(names.port_guid(name));
    }
    hot_spots.sort_unstable();
    hot_spots.dedup();
    if hot_spots.is_empty() {
        let wrong = Wrong::new(crate::file::At::default(), "the oracle of [pm] knows of no hot spot");
        return Err(wrong.allowed("name `hot_spots` in [pm] or in a mix"));
    }
    Ok(Some(Oracle { hot_spots, slow_sl: experiment.pm.slow_sl }))
}

/// Converts Gb/s of whole packets in fabric time to bytes of body per second of machine time.
fn body_rate(gbps: f64, dilation: u32, body: u16, overhead: u64) -> u64 {
    let whole = gbps * 1e9 / 8.0 / f64::from(dilation.max(1));
    let share = f64::from(body) / (f64::from(body) + overhead as f64);
    (whole * share).round().max(1.0) as u64
}
