//! Processes of a laboratory, as runs of the program that started it.
//!
//! ```text
//!   program ──▶ program --lab NAME hub ──▶ program agent|sm|pm|vmm|ibsim|opensm --as NAME --bundle DIR --run DIR …
//!           └─▶ program --lab NAME guard
//! ```

use std::collections::BTreeMap;
use std::ffi::OsString;

use anyhow::Context;
use weft_bundle::config::hub::HubConfig;
use weft_bundle::folder::Base;
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::folder::front::Front;
use weft_bundle::names::{AGENT, HUB, IBSIM, OPENSM, PM, SM, VMM, is_plain};
use weft_control::fault::FaultId;
use weft_fault::Process;
use weft_managers::sm::{SmConfig, SmFiles};
use weft_managers::start::Start;

use crate::process::{GUARD, PROMETHEUS, TAPER, THAW};
use crate::scene::{TapeTo, taping};
use crate::view::Lab;
use crate::{faults, hub, owned, watch};

/// Runs the process of a laboratory that this program was started as; `None` when it was started as something else. A program whose
/// laboratories run on itself calls it before anything else:
///
/// ```no_run
/// use weft_bundle::folder::front::Front;
///
/// fn main() -> anyhow::Result<()> {
///     if let Some(ended) = weft_lab::child::child_main(Front::default()) {
///         return ended;
///     }
///     // From here on it is a program of its own.
///     Ok(())
/// }
/// ```
///
/// # Errors
/// `Some(Err(_))` when the process fails; a program says why on standard error, which is the process's log.
pub fn child_main(front: Front) -> Option<anyhow::Result<()>> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    Some(Child::of(&arguments)?.run(front))
}

/// Leaves the session of the terminal, so that what happens to it does not happen to the laboratory.
pub fn leave_session() {
    // It fails for the leader of a process group, whose session is its own affair.
    let _ = rustix::process::setsid();
}

/// A process of a laboratory, by its command line.
#[derive(Debug)]
enum Child {
    /// A manager or an agent.
    Process { verb: &'static str, start: Start, is_detached: bool, files: BTreeMap<String, OsString> },
    /// The hub of the laboratory of this name, in the background.
    Hub { lab: String },
    /// What ends a fault of a frozen process.
    Thaw { lab: String, process: Process<String>, id: FaultId },
    /// The Prometheus of a laboratory, which is to answer at this address.
    Prometheus { lab: String, address: String },
    /// What tapes the laboratory.
    Taper { lab: String, to: TapeTo },
    /// What takes the laboratory down when its owner is gone.
    Guard { lab: String },
}

/// The processes that a bundle configures, and the options that name further files for each.
const PROCESSES: [(&str, &[&str]); 6] = [
    (AGENT, &["--record"]),
    (SM, &["--guid2lid", "--history"]),
    (PM, &[]),
    (VMM, &[]),
    (IBSIM, &[]),
    (OPENSM, &[]),
];

impl Child {
    /// The process that these arguments are of, if they are as a laboratory gives them.
    fn of(arguments: &[OsString]) -> Option<Self> {
        let words: Vec<&str> = arguments.iter().map_while(|argument| argument.to_str()).collect();
        match words[..] {
            ["--lab", lab, HUB, "--background"] => Some(Self::Hub { lab: lab.to_owned() }),
            ["--lab", lab, GUARD] => Some(Self::Guard { lab: lab.to_owned() }),
            ["--lab", lab, PROMETHEUS, address] => {
                Some(Self::Prometheus { lab: lab.to_owned(), address: address.to_owned() })
            }
            ["--lab", lab, THAW, process, id] => {
                Some(Self::Thaw { lab: lab.to_owned(), process: process.parse().ok()?, id: id.parse().ok()? })
            }
            ["--lab", lab, TAPER, bytes, ..] => {
                let path = arguments.get(4).filter(|_| arguments.len() == 5)?.into();
                let to = TapeTo { path, bytes_max: bytes.parse().ok()? };
                Some(Self::Taper { lab: lab.to_owned(), to })
            }
            [verb, ..] => {
                let (verb, files) = PROCESSES.into_iter().find(|(own, _)| *own == verb)?;
                Self::process(verb, files, &arguments[1..])
            }
            [] => None,
        }
    }

    fn process(verb: &'static str, files: &[&str], arguments: &[OsString]) -> Option<Self> {
        let (mut flags, mut values) = (Vec::new(), BTreeMap::new());
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.to_str()? {
                flag @ ("--detached" | "--wait") => flags.push(flag),
                option
                    if ["--as", "--bundle", "--run", "--door"].contains(&option)
                        || files.contains(&option) =>
                {
                    if values.insert(option.to_owned(), rest.next()?.clone()).is_some() {
                        return None;
                    }
                }
                _ => return None,
            }
        }
        let mut text = |option: &str| values.remove(option).map(|value| value.into_string().ok());
        let name = text("--as")??;
        let door = match text("--door") {
            Some(door) => Some(door?.parse().ok()?),
            None => None,
        };
        let start = Start {
            bundle: Bundle::at(values.remove("--bundle")?.as_ref()),
            name: Some(name).filter(|name| is_plain(name))?,
            identity: None,
            run: values.remove("--run")?.into(),
            door,
            waits: flags.contains(&"--wait"),
        };
        Some(Self::Process { verb, start, is_detached: flags.contains(&"--detached"), files: values })
    }

    fn run(self, front: Front) -> anyhow::Result<()> {
        if let Self::Process { verb, .. } = &self
            && [AGENT, SM, PM, VMM].contains(verb)
        {
            // Where that cannot be had, signals have their usual effect.
            let _ = weft_process::early::end_when_told();
        }
        // Whoever closes the terminal of the verb that began a fault does not end its thaw with that.
        if !matches!(self, Self::Process { is_detached: false, .. }) {
            leave_session();
        }
        let base = |front| Base::locate().with_front(front);
        match self {
            Self::Process { verb, start, files, .. } => run_process(verb, &start, files, &front),
            Self::Hub { lab } => {
                let lab = base(front).select(Some(&lab))?;
                hub::run(&lab, HubConfig::load(&lab)?, || ())
            }
            Self::Thaw { lab, process, id } => {
                let lab = Lab::load(&base(front).select(Some(&lab))?)?;
                faults::frozen::thaw_when_over(&lab, &process, &id)
            }
            Self::Prometheus { lab, address } => {
                watch::run(&base(front).select(Some(&lab))?, &address).map(|never| match never {})
            }
            Self::Taper { lab, to } => taping::run(&base(front).select(Some(&lab))?, &to),
            Self::Guard { lab } => owned::guard(&base(front), &lab),
        }
    }
}

fn run_process(
    verb: &str,
    start: &Start,
    mut files: BTreeMap<String, OsString>,
    front: &Front,
) -> anyhow::Result<()> {
    let mut file = |option| files.remove(option).map(Into::into);
    match verb {
        AGENT => weft_managers::agent::run(start, None, file("--record")),
        SM => {
            let (guid2lid, history) = (file("--guid2lid"), file("--history"));
            let files = SmFiles { guid2lid, history, metrics_port: None };
            weft_managers::sm::run(SmConfig::of_bundle(start, files)?)
        }
        PM => weft_managers::pm::run(start, None),
        VMM => weft_managers::vmm::run(start, None, None),
        IBSIM => weft_managers::ibsim::run(start),
        _ => {
            let program = front.program().context("cannot tell which program this is")?;
            weft_managers::opensm::run(start, &program)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<Child> {
        Child::of(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_laboratory_knows_its_own_command_lines() {
        let Some(Child::Process { verb, start, is_detached, files }) =
            of("agent --detached --as a0007 --bundle /b --run /r --door 127.0.0.1:7 --record /x --wait")
        else {
            panic!("an agent")
        };
        assert_eq!((verb, start.name.as_str(), is_detached, start.waits), (AGENT, "a0007", true, true));
        assert_eq!((start.run.to_str(), start.door.map(|door| door.port())), (Some("/r"), Some(7)));
        assert_eq!(files, BTreeMap::from([("--record".to_owned(), "/x".into())]));
        assert!(matches!(of("--lab x hub --background"), Some(Child::Hub { lab }) if lab == "x"));
        let Some(Child::Taper { lab, to }) = of("--lab x taper 4000 /t/day.tape") else { panic!("a tape") };
        assert_eq!((lab.as_str(), to.path.to_str(), to.bytes_max), ("x", Some("/t/day.tape"), 4000));
        assert!(matches!(of("--lab x guard"), Some(Child::Guard { lab }) if lab == "x"));
        assert!(matches!(of("--lab x thaw sm freeze-1"), Some(Child::Thaw { process: Process::Sm, .. })));
    }

    #[test]
    fn other_command_lines_are_left_to_the_program() {
        for line in [
            "",
            "agent",
            "agent --help",
            "agent --as a0 --bundle /b",
            "agent --as a0 --bundle /b --run /r --history /h",
            "agent --as a0 --as a1 --bundle /b --run /r",
            "agent --as ../a --bundle /b --run /r",
            "sm --ibsim x",
            "sm sweep",
            "hub",
            "--lab x taper 4000",
            "--lab x taper much /t/day.tape",
            "--lab x up y",
        ] {
            assert!(of(line).is_none(), "{line}");
        }
    }
}
