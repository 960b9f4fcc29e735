//! `weft shell`: programs that use libibumad, or a shell for them, at a node of the laboratory.
//!
//! This process becomes the program, so its exit code and what happens to signals are the program's own. Of a laboratory with remote
//! processes it stays as the way there, and ends with the program's exit code.

mod far;
mod namespace;
mod server;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_lab::site;
use weft_lab::view::Lab;
use weft_managers::preload as library;
use weft_topology::{NodeIndex, PortRef};
use weft_umad::user_mad::Request::Ca;
use weft_umad::{Client, user_mad};
use weft_wire::PortNum;

use super::sysfs;
use crate::cli::shell::ShellArgs;

/// Where ibsim listens when nothing else is said.
const IBSIM_PORT: &str = "7070";

/// Variables and their values.
type Environment = Vec<(&'static str, OsString)>;

/// The shell of who has none.
const SHELL: &str = "/bin/sh";

pub(super) fn run(folder: &LabFolder, args: &ShellArgs) -> anyhow::Result<ExitCode> {
    let lab = Lab::load_live(folder)?;
    let (node, port) = seat(&lab, args)?;
    // The way lasts as long as the program.
    let (library, (way, environment)) = match &args.ibsim {
        Some(name) => {
            let library = library::umad2sim()?;
            let name = if name.is_empty() { server::name(&lab)? } else { name.clone() };
            (library, (None, ibsim(&lab, node, &name)?))
        }
        None => {
            let (way, mut environment) = umad(&lab, node)?;
            environment.extend(port.map(|port| ("WEFT_UMAD_PORT", port.to_string().into())));
            (library::beside(&crate::front::program()?)?, (way, environment))
        }
    };
    let program = program(&args.command);
    let preload = preload(&library, std::env::var_os("LD_PRELOAD").as_deref());
    let mut command = match args.sysfs {
        true => {
            // Only the program itself is to load the library.
            let mut command = namespace::command(&tree(&lab, node)?)?;
            command.arg(namespace::assignment("LD_PRELOAD", &preload)).args(&program);
            command
        }
        false => {
            let (name, arguments) = program.split_first().context("a program has a name")?;
            let mut command = Command::new(name);
            command.args(arguments).env("LD_PRELOAD", preload);
            command
        }
    };
    // A shell around this one may have another port.
    command.env_remove("WEFT_UMAD_PORT").envs(environment);
    if args.command.is_empty() {
        let label = lab.fabric.label(node);
        let name = port.map_or_else(|| label.clone(), |port| format!("{label}:{port}"));
        crate::output::say(&format!("a shell at `{name}`; leave it with `exit`"));
    }
    let name = command.get_program().to_string_lossy().into_owned();
    let ended = if way.is_some() { far::run(command) } else { Err(command.exec()) };
    let error = match ended {
        Ok(code) => return Ok(code),
        Err(error) => error,
    };
    let hint = "the program is looked for in PATH, as any shell does";
    Err(Failure::new(format!("cannot start {name}: {error}")).hint(hint))
}

/// The node of `--at`, and the port where one is named; a switch has one port for programs.
fn seat(lab: &Lab, args: &ShellArgs) -> anyhow::Result<(NodeIndex, Option<PortNum>)> {
    let Some(name) = &args.at else { return Ok((lab.node_or_seat(None)?, None)) };
    let (node, port) = lab.find_seat(name)?;
    let Some(port) = port else { return Ok((node, None)) };
    let label = lab.fabric.label(node);
    if lab.fabric.node(node).is_switch() {
        if port == PortNum::ZERO {
            return Ok((node, None));
        }
        let message = format!("--at: programs at the switch `{label}` sit at its port 0, not {port}");
        return Err(Failure::bad_input(message).hint(format!("use --at {label}")));
    }
    lab.has_port(PortRef::new(node, port))?;
    if args.ibsim.is_some() {
        let message = format!("--at {label}:{port}: under --ibsim the program chooses the port");
        return Err(Failure::bad_input(message)
            .hint(format!("use --at {label}, and name the port to the program, often with -P {port}")));
    }
    Ok((node, Some(port)))
}

/// What the stand-in for libibumad has to know, and the way to a remote agent.
fn umad(lab: &Lab, node: NodeIndex) -> anyhow::Result<(Option<far::Way>, Environment)> {
    let guid = lab.guid_at_agent(node);
    let node = lab.fabric.node(node);
    let (agent, device) = lab.record.device(node.guid).context("the laboratory has no such node")?;
    // The library could only say so with an error number.
    if Client::connect(&lab.folder.agent_socket(&agent.name)).is_err() {
        return Err(Failure::new(format!("the agent of `{}` is not running", device.label))
            .hint(format!("start it with `weft fault restart {}`", device.id)));
    }
    let (own, mut way) = (site::of(&lab.folder)?.umad_socket(&agent.name), None);
    if own.is_none() {
        let socket = way.insert(far::serve(&lab.folder, &agent.name)?).socket();
        let asked = user_mad::connect(socket).and_then(|asked| user_mad::question(asked, &Ca { node: guid }));
        asked.map_err(|error| {
            Failure::new(format!("no program from here reaches `{}`: {error}", device.label)).hint(
                "it takes an operator's identity, an agent that runs, and no more than 16 open ports there",
            )
        })?;
    }
    let socket = own.or_else(|| way.as_ref().map(|way| way.socket().to_owned())).unwrap_or_default();
    Ok((
        way,
        vec![("WEFT_UMAD_SOCKET", socket.into_os_string()), ("WEFT_UMAD_NODE", guid.to_string().into())],
    ))
}

/// What libumad2sim has to know of a server: `NAME`, or `udp:ADDRESS[:PORT]`.
fn ibsim(lab: &Lab, node: NodeIndex, name: &str) -> anyhow::Result<Environment> {
    let node = lab.fabric.node(node);
    // The protocol has 32 bytes for a name and the zero behind it.
    let host = if node.id.len() < 32 { node.id.clone() } else { node.guid.to_string() };
    let mut environment = vec![("SIM_HOST", OsString::from(host))];
    match name.strip_prefix("udp:") {
        Some(place) => {
            let (address, port) = place.rsplit_once(':').unwrap_or((place, IBSIM_PORT));
            if port.parse::<u16>().is_err() || address.is_empty() {
                return Err(Failure::bad_input(format!("`{name}` is not udp:ADDRESS:PORT")).into());
            }
            environment.extend([("IBSIM_SERVER_NAME", address.into()), ("IBSIM_SERVER_PORT", port.into())]);
        }
        None => environment.push(("IBSIM_SOCKNAME", name.into())),
    }
    Ok(environment)
}

/// The command, or the user's shell.
fn program(command: &[OsString]) -> Vec<OsString> {
    if !command.is_empty() {
        return command.to_vec();
    }
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    vec![shell.unwrap_or_else(|| SHELL.into())]
}

/// The library before what is loaded already.
fn preload(library: &Path, present: Option<&OsStr>) -> OsString {
    let mut libraries = library.as_os_str().to_owned();
    if let Some(present) = present.filter(|present| !present.is_empty()) {
        libraries.push(":");
        libraries.push(present);
    }
    libraries
}

/// The node's files in a folder that the namespace takes over.
fn tree(lab: &Lab, node: NodeIndex) -> anyhow::Result<PathBuf> {
    let path = lab.folder.path().join(format!("sysfs-{}", std::process::id()));
    sysfs::write(lab, node, &path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_comes_before_others() {
        let library = Path::new("/x/libweft_umad.so");
        assert_eq!(preload(library, None), "/x/libweft_umad.so");
        assert_eq!(preload(library, Some(OsStr::new(""))), "/x/libweft_umad.so");
        assert_eq!(preload(library, Some(OsStr::new("a.so b.so"))), "/x/libweft_umad.so:a.so b.so");
    }
}
