//! `--at`: verbs on a laboratory that runs elsewhere.

use std::path::PathBuf;

use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_lab::gateway::Gateway;
use weft_lab::spread::{self, Spread};
use weft_process::raise_file_limit;

use crate::cli::{BenchVerb, Cli, TopoVerb, Verb};

/// Where the identity is, if the command line does not say.
const IDENTITY: &str = "WEFT_IDENTITY";

/// What to do with verbs that need more of a process than its hub passes on.
const WHERE_IT_RUNS: &str = "run it where the process runs";

/// The way into the laboratory that the command line names by its hub, if it does.
pub(super) fn enter(cli: &Cli) -> anyhow::Result<Option<Gateway>> {
    let Some(hub) = &cli.at else { return Ok(None) };
    if cli.lab.is_some() {
        return Err(Failure::bad_input("--at and --lab name different laboratories")
            .hint("give one of them")
            .into());
    }
    if let Err(hint) = goes(&cli.verb) {
        return Err(Failure::bad_input("this verb does not act on a laboratory that runs elsewhere")
            .hint(hint)
            .into());
    }
    let named = || std::env::var_os(IDENTITY).filter(|value| !value.is_empty()).map(PathBuf::from);
    let identity = cli.identity.clone().or_else(named).ok_or_else(|| {
        Failure::bad_input("--at needs an identity of the laboratory")
            .hint(format!("give --identity DIR/identities/operator.pem, or set {IDENTITY}"))
    })?;
    raise_file_limit();
    Gateway::open(&crate::front::base(), hub, &identity).map(Some)
}

/// How a verb means a laboratory of this machine.
pub(super) enum Means {
    /// Its processes, wherever they run; where they are on other hosts, with what to do instead, if anything.
    Processes(Result<(), &'static str>),
    /// What of it is here.
    Here,
}

impl Means {
    pub(super) fn of(verb: &Verb) -> Self {
        // This says which process serves where.
        if matches!(verb, Verb::Hub(_) | Verb::Metrics(_)) { Self::Here } else { Self::Processes(goes(verb)) }
    }
}

/// The laboratory of this machine that is meant.
pub(super) fn here(name: Option<&str>, means: &Means) -> anyhow::Result<LabFolder> {
    let lab = crate::front::base().select(name)?;
    match (means, Spread::load(&lab)?) {
        (Means::Here, _) | (_, None) => Ok(lab),
        (Means::Processes(Ok(())), Some(_)) => spread::seen(lab),
        (Means::Processes(Err(hint)), Some(_)) => {
            let message =
                format!("this verb does not act on `{}`, whose processes run on other hosts", lab.name());
            let hint = match *hint {
                WHERE_IT_RUNS => format!("{hint}: `ssh HOST weft --lab {} …`", lab.name()),
                hint => hint.to_owned(),
            };
            Err(Failure::bad_input(message).hint(hint).into())
        }
    }
}

/// Whether a verb needs nothing of a laboratory but what its hub passes on; else what to do instead.
fn goes(verb: &Verb) -> Result<(), &'static str> {
    match verb {
        Verb::Ps(_)
        | Verb::Status(_)
        | Verb::Top(_)
        | Verb::Links(_)
        | Verb::Trace(_)
        | Verb::Check(_)
        | Verb::Events(_)
        | Verb::Ask(_)
        | Verb::Capture(_)
        | Verb::Fault(_)
        | Verb::Identity(_)
        | Verb::Sysfs(_)
        | Verb::Vm(_) => Ok(()),
        Verb::Chaos(args) if !args.simulated => Ok(()),
        Verb::Shell(args) if args.ibsim.is_none() => Ok(()),
        Verb::Sm(args) if args.verb.is_some() => Ok(()),
        Verb::Topo(
            TopoVerb::Diff(_) | TopoVerb::Connect(_) | TopoVerb::Disconnect(_) | TopoVerb::Move(_),
        ) => Ok(()),
        Verb::Topo(TopoVerb::AddHost(_) | TopoVerb::AddSwitch(_) | TopoVerb::Remove(_)) => Err(
            "nodes come and go where the laboratory's processes are started; cables can be moved from here",
        ),
        Verb::Up(_) | Verb::Down(_) => Err(
            "take it down where it was started: `docker compose -f FILE down`, `docker stack rm NAME`, or `kubectl delete namespace NAME`",
        ),
        Verb::Shell(_) => Err("leave out --ibsim, whose server runs where the laboratory does"),
        Verb::Bench(BenchVerb::Smp(_) | BenchVerb::Move(_))
        | Verb::Record(_)
        | Verb::Replay(_)
        | Verb::Metrics(_) => Err(WHERE_IT_RUNS),
        _ => Err("leave out --at: it works without a laboratory"),
    }
}
