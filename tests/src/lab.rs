//! A weft laboratory of real processes, as a site for other people's programs.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use weft_topology::{Fabric, Node};
use weft_wire::{Guid, PortNum};

use crate::{Totals, output_of};

/// A laboratory, taken down when dropped.
pub struct Lab {
    folder: TempDir,
    /// The experiment that goes on in it.
    run: Option<Child>,
}

/// Where cargo put `weft` when it built this test.
///
/// # Panics
/// When it is not there.
pub fn weft_program() -> PathBuf {
    let test = std::env::current_exe().expect("a process knows its program");
    let built = test.ancestors().nth(2).expect("tests lie in a folder of the target folder");
    let program = built.join("weft");
    assert!(program.exists(), "no {}: build it first with `cargo build -p weft`", program.display());
    program
}

impl Lab {
    /// Starts the agents of `fabric`, and with `options` whatever else.
    ///
    /// # Panics
    /// When it does not come up; what it said is in the message.
    pub fn start(fabric: &Fabric, options: &[&str]) -> Self {
        let lab = Self::new();
        lab.up(fabric, options);
        lab
    }

    /// The same with options that name files, which `options` makes in the scratch folder first.
    ///
    /// # Panics
    /// When it does not come up; what it said is in the message.
    pub fn start_with(fabric: &Fabric, options: impl FnOnce(&Path) -> Vec<String>) -> Self {
        let lab = Self::new();
        let options = options(lab.folder());
        lab.up(fabric, options);
        lab
    }

    fn up(&self, fabric: &Fabric, options: impl IntoIterator<Item = impl AsRef<std::ffi::OsStr>>) {
        let file = self.path("net.topo");
        std::fs::write(&file, fabric.write_ibnetdiscover()).expect("the scratch folder can be written");
        output_of(self.weft(&["up"]).args(options).arg(&file));
    }

    /// Begins an experiment on processes, from the text of its file. It goes on until the laboratory is dropped, or ends
    /// by itself.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn begin_run(experiment: &str) -> Self {
        let mut lab = Self::new();
        let file = lab.path("experiment.toml");
        std::fs::write(&file, experiment).expect("the scratch folder can be written");
        let mut command = lab.weft(&["run"]);
        let run = command.arg(file).stdout(Stdio::null()).spawn();
        lab.run = Some(run.unwrap_or_else(|error| panic!("{command:?}: {error}")));
        lab
    }

    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a scratch folder can be made"), run: None }
    }

    /// A scratch folder of the laboratory's.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A `weft` command that means this laboratory.
    pub fn weft(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(weft_program());
        command.args(arguments).env("WEFT_HOME", self.path("w")).env("NO_COLOR", "1").stdin(Stdio::null());
        command.current_dir(self.folder.path());
        command
    }

    /// A command of `program` at a node, by weft's own layer or by ibsim's protocol.
    pub fn command(&self, program: &str, node: &Node, options: &[&str]) -> Command {
        let mut command = self.weft(&["shell", "--at", &node.guid.to_string()]);
        command.args(options).args(["--", program]);
        command.env("OSM_TMP_DIR", self.folder.path()).env("OSM_CACHE_DIR", self.folder.path());
        command
    }

    /// What a tool prints at a node, by weft's own layer.
    ///
    /// # Panics
    /// When it fails.
    pub fn says(&self, node: &Node, line: &str) -> String {
        let (program, arguments) = line.split_once(' ').unwrap_or((line, ""));
        output_of(self.command(program, node, &[]).args(arguments.split_whitespace()))
    }

    /// The LIDs that weft's subnet manager gave, in the form of `guid2lid`.
    ///
    /// # Panics
    /// When the file is not there.
    pub fn guid2lid(&self) -> String {
        let file = self.path("w/default/guid2lid");
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }

    /// The agents' names, each with the GUIDs of its devices.
    ///
    /// # Panics
    /// When the laboratory's record says something else than it should.
    pub fn agents(&self) -> Vec<(String, Vec<Guid>)> {
        let file = self.path("w/default/lab.json");
        let text = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let record: Value = serde_json::from_slice(&text).expect("a record is JSON");
        let guid = |device: &Value| Guid(device["guid"].as_u64().expect("a device has a GUID"));
        let guids = |agent: &Value| agent["devices"].as_array().into_iter().flatten().map(guid).collect();
        let name = |agent: &Value| agent["name"].as_str().expect("an agent has a name").to_owned();
        let agents = record["agents"].as_array().expect("a laboratory has agents");
        agents.iter().map(|agent| (name(agent), guids(agent))).collect()
    }

    /// The name of the agent that runs a node.
    ///
    /// # Panics
    /// When none does.
    pub fn agent_of(&self, node: Guid) -> String {
        let agents = self.agents();
        let found = agents.into_iter().find(|(_, devices)| devices.contains(&node));
        found.unwrap_or_else(|| panic!("no agent runs {node}")).0
    }

    /// The socket at which programs attach to a node.
    ///
    /// # Panics
    /// When no agent runs it.
    pub fn socket_of(&self, node: Guid) -> PathBuf {
        self.path("w/default/sockets").join(self.agent_of(node))
    }

    /// What a process answers to a request of the control protocol (docs/control.md).
    ///
    /// # Panics
    /// When it cannot be reached, or answers with an error.
    pub fn ask(&self, process: &str, request: &Value) -> Value {
        let socket = self.path("w/default/control").join(process);
        let answer = UnixStream::connect(&socket).and_then(|mut stream| {
            writeln!(stream, "{}", serde_json::json!({ "v": 1, "id": 1, "request": request }))?;
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line)?;
            Ok(line)
        });
        let answer = answer.unwrap_or_else(|error| panic!("{process}: {error}"));
        let mut reply: Value =
            serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
        assert!(reply["answer"].is_object(), "{process}, asked for {request}: {reply}");
        reply["answer"].take()
    }

    /// What the laboratory itself knows of a port's counters.
    ///
    /// # Panics
    /// When `weft links --json` says something else than it should.
    pub fn totals(&self, node: Guid, port: PortNum) -> Option<Totals> {
        let text = output_of(&mut self.weft(&["links", "--json"]));
        let links: Value = serde_json::from_str(&text).expect("--json prints JSON");
        let ends = links.as_array()?.iter().flat_map(|link| [&link["a"], &link["b"]]);
        let is_wanted = |end: &&Value| end["guid"] == node.to_string() && end["port"] == port.0;
        let totals = &ends.into_iter().find(is_wanted)?["totals"];
        let of = |name: &str| totals[name].as_u64();
        Some(Totals {
            xmit_packets: of("xmit_packets")?,
            rcv_packets: of("rcv_packets")?,
            xmit_words: of("xmit_words")?,
            rcv_words: of("rcv_words")?,
        })
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(run) = &mut self.run {
            let _ = run.kill();
            let _ = run.wait();
        }
        let _ = self.weft(&["down", "--all"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}
