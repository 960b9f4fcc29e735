//! The verbs of the command line, one file each.

mod ask;
mod at;
mod bench;
mod capture;
mod chaos;
mod check;
mod compose;
mod containers;
mod down;
mod events;
mod fault;
mod flow;
mod graph;
mod health;
mod hub;
mod identity;
mod k8s;
mod links;
mod metrics;
mod partition;
mod plan;
mod ps;
mod relay;
mod replay;
mod report;
mod routes;
mod run;
mod shell;
mod sim;
mod sm;
mod status;
mod study;
mod sysfs;
mod top;
mod topo;
mod trace;
mod ui;
mod up;
mod vm;

use std::process::ExitCode;

use weft_lab::site::door::Gateway;
use weft_managers::manager::AttachPoint;
use weft_managers::sm::SmConfig;
use weft_sm::LidScheme;

use crate::cli::bench::BenchVerb;
use crate::cli::process::{AgentProcessArgs, MeteredProcessArgs, ProcessArgs, SmProcessArgs, VmmProcessArgs};
use crate::cli::{Cli, Verb, completed};
use crate::output;
use crate::sm_options::{Defaults, sm_options};

/// Does what the command line says.
pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let gateway = at::enter(&cli)?;
    let line = at::line(&cli);
    let lab = || match &gateway {
        Some(gateway) => Ok(gateway.folder().clone()),
        None => at::here(cli.lab.as_deref(), &line),
    };
    match cli.verb {
        Verb::Up(args) => up::run(cli.lab.as_deref(), &args)?,
        Verb::Compose(args) => compose::run(cli.lab.as_deref(), &args)?,
        Verb::K8s(args) => k8s::run(cli.lab.as_deref(), &args)?,
        Verb::Plan(args) => plan::run(cli.lab.as_deref(), &args)?,
        Verb::Identity(verb) => identity::run(lab(), &verb)?,
        Verb::Down(args) => down::run(cli.lab.as_deref(), &args)?,
        Verb::Ps(args) => ps::run(&lab()?, args.json)?,
        Verb::Status(args) => status::run(&lab()?, args.json)?,
        Verb::Top(args) => top::run(&lab()?, &args)?,
        Verb::Metrics(args) => metrics::run(&lab()?, &args)?,
        Verb::Links(args) => links::run(&lab()?, &args)?,
        Verb::Trace(args) => trace::run(&lab()?, &args)?,
        Verb::Graph(args) => graph::run(lab, &args)?,
        Verb::Ui(args) => ui::run(lab, &args)?,
        Verb::Tape(args) => ui::tape(&lab()?, &args)?,
        Verb::Check(args) => return check::run(&lab()?, &args),
        Verb::Hub(args) => match (&args.bundle, &args.run) {
            (Some(bundle), Some(run)) => hub::run_for_remote(bundle, run, &args)?,
            _ => hub::run(&lab()?, &args)?,
        },
        Verb::Events(args) => events::run(&lab()?, &args)?,
        Verb::Ask(args) => ask::run(&lab()?, &args)?,
        Verb::Relay(args) => relay::run(&lab()?, &args)?,
        Verb::Capture(args) => capture::run(&lab()?, &args)?,
        Verb::Shell(args) => return shell::run(&lab()?, args),
        Verb::Sysfs(args) => sysfs::run(&lab()?, &args)?,
        Verb::Record(args) => replay::record(&lab()?, &args)?,
        Verb::Replay(args) => return replay::run(&args),
        Verb::Fault(verb) => fault::run(&lab()?, &verb)?,
        Verb::Chaos(args) => return chaos::run(lab, &args),
        Verb::Run(args) => return run::run(cli.lab.as_deref(), args),
        Verb::Vm(verb) => vm::run(&lab()?, &verb)?,
        Verb::Partition(verb) => partition::run(&lab()?, &verb)?,
        Verb::Flow(verb) => flow::run(&lab()?, &verb)?,
        Verb::Traffic(verb) => flow::traffic(&lab()?, &verb)?,
        Verb::Topo(verb) => return topo::run(lab, &verb),
        Verb::Routes(verb) => return routes::run(&verb),
        Verb::Study(verb) => return study::run(&verb),
        Verb::Bench(BenchVerb::Smp(args)) => return bench::smp(&lab()?, &args),
        Verb::Bench(BenchVerb::Up(args)) => return bench::up(args),
        Verb::Bench(BenchVerb::Door(args)) => return bench::door(args),
        Verb::Bench(BenchVerb::Sa(args)) => return bench::sa(&lab()?, &args),
        Verb::Bench(BenchVerb::Move(args)) => return bench::moves(&lab()?, &args),
        Verb::Sim(args) => sim::run(&args)?,
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut completed(), "weft", &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
        }
        Verb::Sm(args) => match &args.verb {
            Some(verb) => sm::run(&lab()?, verb)?,
            None => run_sm(&args.process)?,
        },
        Verb::Pm(args) => pm(&args)?,
        Verb::Vmm(args) => vmm(&args)?,
        Verb::Ibsim(args) => ibsim(&args)?,
        Verb::Opensm(args) => opensm(&args)?,
        Verb::Health(args) => health::run(&args)?,
        Verb::BenchEcho => bench::echo()?,
    }
    gateway.map_or(Ok(()), Gateway::leave)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs one agent.
pub(crate) fn agent(args: &AgentProcessArgs) -> anyhow::Result<()> {
    detach(args.metered.process.detached);
    let AgentProcessArgs { metered, record } = args;
    weft_managers::agent::run(&metered.process.start(), metered.metrics_port, record.clone())
}

/// Runs the performance manager.
pub(crate) fn pm(args: &MeteredProcessArgs) -> anyhow::Result<()> {
    detach(args.process.detached);
    weft_managers::pm::run(&args.process.start(), args.metrics_port)
}

/// Runs the VM manager.
pub(crate) fn vmm(args: &VmmProcessArgs) -> anyhow::Result<()> {
    detach(args.metered.process.detached);
    let VmmProcessArgs { metered, die_after } = args;
    weft_managers::vmm::run(&metered.process.start(), metered.metrics_port, die_after.clone())
}

/// Runs the subnet manager.
pub(crate) fn run_sm(args: &SmProcessArgs) -> anyhow::Result<()> {
    detach(args.detached);
    weft_managers::sm::run(match args.process() {
        Some(process) => SmConfig::of_bundle(&process.start(), args.files())?,
        None => {
            // As OpenSM does.
            let defaults = Defaults { qos: false, lids: LidScheme::Prepopulated };
            let options = sm_options(&args.sm, None, &defaults)?;
            let (server, node) =
                (args.ibsim.clone().unwrap_or_default(), args.at.clone().unwrap_or_default());
            let at = AttachPoint::Ibsim { server, node };
            // No one may be reading; that is no fault.
            let announce = |line: &str| drop(output::print(line));
            SmConfig { once: args.once, ..SmConfig::alone(at, args.files(), options, announce) }
        }
    })
}

/// Serves programs under ibsim's library.
fn ibsim(args: &ProcessArgs) -> anyhow::Result<()> {
    detach(args.detached);
    weft_managers::ibsim::run(&args.start())
}

/// Runs unmodified OpenSM.
fn opensm(args: &ProcessArgs) -> anyhow::Result<()> {
    detach(args.detached);
    weft_managers::opensm::run(&args.start(), &crate::front::program()?)
}

/// Leaves the session of the terminal where that is wanted.
fn detach(detached: bool) {
    if detached {
        weft_lab::child::leave_session();
    }
}

/// A duration as people read it.
fn seconds(duration: std::time::Duration) -> String {
    format!("{:.3}", duration.as_secs_f64())
}
