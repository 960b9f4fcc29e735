//! Programs of others at a node of a laboratory: infiniband-diags, OpenSM, whatever uses libibumad. They attach by weft's stand-in for
//! that library, or by ibsim's.
//!
//! ```text
//!   program ─ libweft_umad.so ─ socket of the agent, or of this process, which carries it to a remote one
//!           ─ libumad2sim.so ── server of ibsim's protocol
//!           ─ /sys/class/infiniband ── files of the node, in a mount namespace
//! ```
//!
//! ```no_run
//! # fn show(lab: &weft_lab::view::Lab) -> anyhow::Result<()> {
//! let options = weft_tools::Options { command: vec!["ibnetdiscover".into()], ..Default::default() };
//! let found = weft_tools::Tool::new(lab, &options)?.command().output()?;
//! assert!(found.status.success());
//! # Ok(())
//! # }
//! ```

mod namespace;
mod remote;
mod server;
pub mod sysfs;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_lab::site;
use weft_lab::view::Lab;
use weft_managers::preload as library;
use weft_topology::{NodeIndex, PortRef};
use weft_umad::user_mad::Request::Ca;
use weft_umad::{Client, user_mad};
use weft_wire::PortNum;

/// Where ibsim listens when nothing else is said.
const IBSIM_PORT: &str = "7070";

/// Variables and their values.
type Environment = Vec<(&'static str, OsString)>;

/// The shell of who has none.
const SHELL: &str = "/bin/sh";

/// A program, and where it is to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The node, or `NODE:PORT`, the port for programs that name none; the subnet manager's node, else the file's first HCA, if not said.
    pub at: Option<String>,
    /// Attaches by ibsim's protocol, to a server: an IBSIM_SOCKNAME, `udp:ADDRESS:PORT`, or the laboratory's own where this is empty.
    pub ibsim: Option<String>,
    /// Whether the node's HCA is mounted under /sys/class, in a namespace of its own.
    pub sysfs: bool,
    /// The program and its arguments; the user's shell if there is none.
    pub command: Vec<OsString>,
}

/// A program that can be started at a node.
#[derive(Debug)]
pub struct Tool {
    command: Command,
    /// The way to a remote agent, which lasts as long as this.
    way: Option<remote::Way>,
    /// The node, with the port if one was named.
    pub place: String,
}

impl Tool {
    /// Finds the node, its agent and the library that the program loads.
    ///
    /// # Errors
    /// When there is no such node or port, its agent does not run, or the library is not installed.
    pub fn new(lab: &Lab, options: &Options) -> anyhow::Result<Self> {
        let (node, port) = seat(lab, options)?;
        let (library, (way, environment)) = match &options.ibsim {
            Some(name) => {
                let library = library::umad2sim()?;
                let name = if name.is_empty() { server::name(lab)? } else { name.clone() };
                (library, (None, ibsim(lab, node, &name)?))
            }
            None => {
                let (way, mut environment) = umad(lab, node)?;
                environment.extend(port.map(|port| ("WEFT_UMAD_PORT", port.to_string().into())));
                let weft = lab.folder.front().program().context("cannot tell which program this is")?;
                (library::beside(&weft)?, (way, environment))
            }
        };
        let program = program(&options.command);
        let preload = preload(&library, std::env::var_os("LD_PRELOAD").as_deref());
        let mut command = match options.sysfs {
            true => {
                // Only the program itself is to load the library.
                let mut command = namespace::command(&tree(lab, node)?)?;
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
        let label = lab.fabric.label(node);
        let place = port.map_or_else(|| label.clone(), |port| format!("{label}:{port}"));
        Ok(Self { command, way, place })
    }

    /// The program with its environment, for who starts it and awaits its end. The way to a remote agent ends with this value.
    pub fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// This process becomes the program, so its exit code and signals are the program's own. With a remote agent it stays as the way there,
    /// and returns the program's exit code.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn run(mut self) -> anyhow::Result<ExitCode> {
        let name = self.command.get_program().to_string_lossy().into_owned();
        let ended = if self.way.is_some() { remote::run(self.command) } else { Err(self.command.exec()) };
        ended.map_err(|error| {
            Failure::new(format!("cannot start {name}: {error}"))
                .hint("the program is looked for in PATH, as any shell does")
        })
    }
}

/// The node, and the port where one is named; a switch has one port for programs.
fn seat(lab: &Lab, options: &Options) -> anyhow::Result<(NodeIndex, Option<PortNum>)> {
    let Some(name) = &options.at else { return Ok((lab.node_or_seat(None)?, None)) };
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
    if options.ibsim.is_some() {
        let message = format!("--at {label}:{port}: under --ibsim the program chooses the port");
        return Err(Failure::bad_input(message)
            .hint(format!("use --at {label}, and name the port to the program, often with -P {port}")));
    }
    Ok((node, Some(port)))
}

/// What the stand-in for libibumad has to know, and the way to a remote agent.
fn umad(lab: &Lab, node: NodeIndex) -> anyhow::Result<(Option<remote::Way>, Environment)> {
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
        let socket = way.insert(remote::serve(&lab.folder, &agent.name)?).socket();
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
