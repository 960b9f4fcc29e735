//! The folder of a laboratory, by which it is found again.
//!
//! ```text
//! BASE/NAME/weft-lab      the mark of a laboratory: made first, removed last
//!           lab.json topology ca.pem agents managers identities ca.key
//!                         the bundle that it was started from (bundle.rs)
//!           run.json      the options of this run that are not in the bundle (run.rs)
//!           locks/NAME    one lock per process, see weft_process::lock
//!           sockets/NAME  where programs attach
//!           control/NAME  where a process answers requests, see docs/control.md
//!           faults/NAME   the faults that last at an agent, kept by the agent
//!           slots/NAME    the slots whose own identities have left them, kept by the agent
//!           logs/NAME     standard error of each process
//!           vms.journal   what the VM manager has begun and done
//!           started       a hub has started the laboratory, and waits for nothing more
//!           recabling.json  a change of the cabling that is under way or was interrupted (recabling/)
//!           hub.json guid2lid guid2lid-2 … hosts.json (of one on other hosts)
//!           prometheus.yml  what Prometheus needs to scrape the laboratory
//! ```

mod base;
pub mod bundle;
mod files;
pub mod front;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use rustix::process::{Pid, test_kill_process};

use crate::failure::Failure;
use crate::folder::bundle::Bundle;
use crate::names::{SM, VMM};
use front::Front;

pub use base::Base;
pub use files::{absolute, replace, replace_on, rewrite, touch, with_suffix, write, write_shared};

/// The longest path a Unix socket can be bound to on Linux, without its final zero.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The longest name of a socket within a laboratory's folder: `/sockets/a00000`, with room to spare.
const SOCKET_NAME_BYTES: usize = 24;

/// Whether sockets in a folder can be bound.
fn check_length(path: &Path, hint: &str) -> anyhow::Result<()> {
    let longest = path.as_os_str().len() + SOCKET_NAME_BYTES;
    if longest <= SOCKET_PATH_BYTES_MAX {
        return Ok(());
    }
    let over = longest - SOCKET_PATH_BYTES_MAX;
    let shown = path.display();
    Err(Failure::new(format!("the folder {shown} is {over} bytes too long a path for Unix sockets"))
        .hint(hint))
}

/// The parts of a laboratory's folder that have fixed names.
#[derive(Clone, Copy, Debug)]
pub enum LabFile {
    /// The mark of a laboratory: made first, removed last.
    Mark,
    /// The lock of who starts it.
    UpLock,
    /// The lock of who takes it down.
    DownLock,
    /// The lock of who puts in or ends faults.
    FaultLock,
    /// How many faults have been numbered.
    FaultCount,
    /// The hub's lock.
    HubLock,
    /// The hub's configuration.
    HubConfig,
    /// Where its shares run, of one on other hosts.
    Hosts,
    /// The scrape file.
    Prometheus,
    /// The lock of the server of ibsim's protocol.
    IbsimLock,
    /// The mark that a hub has started it, and waits for nothing more.
    Started,
    /// The lock of who changes the cabling.
    RecablingLock,
    /// A change of the cabling that is under way or was interrupted.
    RecablingJournal,
    /// The lock of who changes the partitions.
    PartitionsLock,
    /// The journal of flows.
    Flows,
}

/// The folder of one laboratory.
#[derive(Clone, Debug)]
pub struct LabFolder {
    path: PathBuf,
    name: String,
    /// The remote processes that run, of a laboratory that has such: by name, with the numbers that they have there.
    remote: Option<Arc<BTreeMap<String, i32>>>,
    front: Front,
}

impl LabFolder {
    /// The folder that a process of that laboratory runs in.
    pub fn of_run(path: &Path, lab: &str) -> anyhow::Result<Self> {
        let path = absolute(path)?;
        check_length(&path, "give --run a folder with a shorter path")?;
        Ok(Self { path, name: lab.to_owned(), remote: None, front: Front::default() })
    }

    /// The same for a front end, which hears of what is done to it.
    pub fn with_front(self, front: Front) -> Self {
        Self { front, ..self }
    }

    /// The front end that handles it.
    pub fn front(&self) -> &Front {
        &self.front
    }

    /// Has the front end hear a line for people.
    pub fn say(&self, line: &str) {
        self.front.listener.line(line);
    }

    /// The same of a laboratory with remote processes: those that run, by name, with the numbers that they have there.
    pub fn with_remote(self, pids: BTreeMap<String, i32>) -> Self {
        Self { remote: Some(Arc::new(pids)), ..self }
    }

    /// Its remote processes that run, with their numbers, once somebody has asked for them.
    pub fn remote(&self) -> Option<&BTreeMap<String, i32>> {
        self.remote.as_deref()
    }

    /// Makes what a process needs that is started by itself: folders and its lock.
    pub fn prepare_for(&self, process: &str) -> anyhow::Result<()> {
        private_folder(&self.path)?;
        self.make_run_folders()?;
        touch(&self.locks().join(process))
    }

    fn make_run_folders(&self) -> anyhow::Result<()> {
        ["locks", "sockets", "control", "faults", "slots"]
            .iter()
            .try_for_each(|part| private_folder(&self.path.join(part)))
    }

    /// Makes the locks of processes.
    pub fn make_locks(&self, names: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
        names.into_iter().try_for_each(|name| write(&self.locks().join(name), b""))
    }

    /// The laboratory's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A part with a fixed name.
    pub fn place(&self, place: LabFile) -> PathBuf {
        self.path.join(match place {
            LabFile::Mark => "weft-lab",
            LabFile::UpLock => "locks/up",
            LabFile::DownLock => "down.lock",
            LabFile::FaultLock => "faults.lock",
            LabFile::FaultCount => "faults.count",
            LabFile::HubLock => "locks/hub",
            LabFile::HubConfig => "hub.json",
            LabFile::Hosts => "hosts.json",
            LabFile::Prometheus => "prometheus.yml",
            LabFile::IbsimLock => "locks/ibsim",
            LabFile::Started => "started",
            LabFile::RecablingLock => "recabling.lock",
            LabFile::RecablingJournal => "recabling.json",
            LabFile::PartitionsLock => "partitions.lock",
            LabFile::Flows => "flows.json",
        })
    }

    /// Where a subnet manager keeps LIDs: one beside the first has its number in the name.
    pub fn guid2lid(&self, name: &str) -> PathBuf {
        let number = name.strip_prefix(SM).unwrap_or_default();
        self.path.join(format!("guid2lid{number}"))
    }

    /// What a VM manager remembers: one beside the first has its number in the name.
    pub fn vm_journal(&self, name: &str) -> PathBuf {
        let number = name.strip_prefix(VMM).unwrap_or_default();
        self.path.join(format!("vms{number}.journal"))
    }

    /// Where the locks of all processes are.
    pub fn locks(&self) -> PathBuf {
        self.path.join("locks")
    }

    /// The lock of an agent.
    pub fn agent_lock(&self, agent: &str) -> PathBuf {
        self.locks().join(agent)
    }

    /// The bundle that the laboratory was started from.
    pub fn bundle(&self) -> Bundle {
        Bundle::at(&self.path)
    }

    /// The options of this run that are not in the bundle.
    pub fn run_options(&self) -> PathBuf {
        self.path.join("run.json")
    }

    /// Where the sockets of all agents are.
    pub fn sockets(&self) -> PathBuf {
        self.path.join("sockets")
    }

    /// Where processes answer requests.
    pub fn control_folder(&self) -> PathBuf {
        self.path.join("control")
    }

    /// Where a process answers requests.
    pub fn control(&self, process: &str) -> PathBuf {
        self.control_folder().join(process)
    }

    /// Where an agent keeps which of its slots' own identities have left them.
    pub fn slots(&self, agent: &str) -> PathBuf {
        self.path.join("slots").join(agent)
    }

    /// Where an agent keeps the faults that last.
    pub fn faults(&self, agent: &str) -> PathBuf {
        self.path.join("faults").join(agent)
    }

    /// Where programs attach to an agent.
    pub fn agent_socket(&self, agent: &str) -> PathBuf {
        self.sockets().join(agent)
    }

    /// Where programs that use libibumad attach to an agent.
    pub fn umad_socket(&self, agent: &str) -> PathBuf {
        weft_umad::user_mad::socket_path(&self.agent_socket(agent))
    }

    /// What a process wrote to standard error.
    pub fn log(&self, process: &str) -> PathBuf {
        self.path.join("logs").join(process)
    }

    /// Whether the launcher that makes this unfinished laboratory may still live. Its number is at the end of the
    /// folder's name; it may have come to be another process's, and then the folder stays a while longer.
    pub fn launcher_lives(&self) -> bool {
        let number = self.name.rsplit('-').next().and_then(|number| number.parse().ok());
        let Some(launcher) = number.and_then(Pid::from_raw) else { return false };
        !matches!(test_kill_process(launcher), Err(rustix::io::Errno::SRCH))
    }

    /// Gives the folder its real name; false when another laboratory has it.
    pub fn settle(self, base: &Base) -> anyhow::Result<Option<Self>> {
        let lab = base.lab(&self.name)?;
        match fs::rename(&self.path, &lab.path) {
            Ok(()) => Ok(Some(lab)),
            Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => {
                Ok(None)
            }
            Err(error) => Err(error).with_context(|| lab.problem("cannot make")),
        }
    }

    /// Whether the folder is there. One that weft did not make is an error, for weft would come to remove it.
    pub fn exists(&self) -> anyhow::Result<bool> {
        if !is_own(&self.path)? {
            return Ok(false);
        }
        // Empty is what is left when a removal is cut short at its last step; nothing can be lost with it.
        let empty = || fs::read_dir(&self.path).is_ok_and(|mut entries| entries.next().is_none());
        if self.is_marked() || empty() {
            return Ok(true);
        }
        Err(Failure::new(format!("the folder {} is not a laboratory of weft", self.path.display()))
            .hint("choose another name with --lab, or set WEFT_HOME to a folder for laboratories alone"))
    }

    /// Whether weft made the folder for this user. Where anybody may make folders, somebody else's laboratory, or
    /// what poses as one, is none of ours.
    fn is_marked(&self) -> bool {
        let own = rustix::process::getuid().as_raw();
        let folder = fs::symlink_metadata(&self.path).is_ok_and(|found| found.is_dir() && found.uid() == own);
        folder && fs::symlink_metadata(self.place(LabFile::Mark)).is_ok_and(|found| found.is_file())
    }

    /// Removes the folder with all that is in it, if it is there and weft made it.
    pub fn remove(&self) -> anyhow::Result<()> {
        if !self.exists()? {
            return Ok(());
        }
        let mark = self.place(LabFile::Mark);
        let removed = || {
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                match entry.path() {
                    path if path == mark => {}
                    path if entry.file_type()?.is_dir() => gone(fs::remove_dir_all(path))?,
                    path => gone(fs::remove_file(path))?,
                }
            }
            // Last, so that a removal that is cut short can be taken up again.
            gone(fs::remove_file(&mark))?;
            fs::remove_dir(&self.path)
        };
        gone(removed()).with_context(|| self.problem("cannot remove"))
    }

    fn problem(&self, what: &str) -> String {
        format!("{what} the laboratory's folder {}", self.path.display())
    }
}

/// Removes a file; one that is gone already need not be removed.
///
/// # Errors
/// When it is there and cannot be removed.
pub fn remove(file: &Path) -> anyhow::Result<()> {
    gone(fs::remove_file(file)).with_context(|| format!("cannot remove {}", file.display()))
}

/// What is gone already need not be removed.
pub fn gone(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Makes a folder that only its owner can enter; one that exists must be the user's own.
pub fn private_folder(path: &Path) -> anyhow::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| format!("cannot make the folder {}", path.display()))?;
    is_own(path).map(drop)
}

/// Permission bits with which others than the owner can change what is in a folder.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Whether a folder is there. A link, or a folder that others can change, is an error: anyone who
/// can replace its contents chooses what weft runs and removes.
fn is_own(path: &Path) -> anyhow::Result<bool> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        found => found.with_context(|| format!("cannot look at {}", path.display()))?,
    };
    let shown = path.display();
    let own = "set WEFT_HOME to a folder of your own".to_owned();
    let (problem, hint) = if found.is_symlink() {
        let target = fs::canonicalize(path).map_or(own, |target| {
            format!("remove the link, or set WEFT_HOME to a real folder such as {}", target.display())
        });
        (format!("{shown} is a symbolic link, not a folder"), target)
    } else if !found.is_dir() {
        (format!("{shown} is not a folder"), own)
    } else if found.uid() != rustix::process::getuid().as_raw() {
        (format!("the folder {shown} belongs to another user"), own)
    } else if found.mode() & WRITABLE_BY_OTHERS != 0 {
        (format!("other users can change the folder {shown}"), format!("close it with `chmod 700 {shown}`"))
    } else {
        return Ok(true);
    };
    Err(Failure::new(problem).hint(hint))
}
