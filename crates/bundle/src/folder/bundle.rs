//! A bundle: the configuration of all processes of a laboratory, in a folder that can be copied.
//!
//! ```text
//! DIR/lab.json              names, places, ports: what the verbs need (record.rs)
//!     topology              the cabling
//!     partitions.conf       who is in which partition, where anybody is (partitions.rs)
//!     ca.pem                the authority's certificate
//!     revoked.pem           the identities that are of no use any more, once there are some
//!     agents/NAME.json      configuration of an agent
//!     managers/NAME.json    configuration of `sm`, `sm-2`, `pm`, `vmm`, `opensm` and `ibsim`
//!     identities/NAME.pem   certificate and private key of one process: mode 0600
//!     identities/opensm.conf what unmodified OpenSM reads, and opensm-2.conf another: mode 0600
//!     identities/http.token what clients of HTTP show that is not on loopback: mode 0600; processes know its hash
//!     identities/keys.json  the keys of management, for the managers: mode 0600
//!     ca.key                the authority's private key, which no process needs: mode 0600
//!     prometheus.yml        what Prometheus scrapes, where processes in containers serve metrics
//!     watch/                rules and consoles for that Prometheus
//! ```
//!
//! Only `identities` and `ca.key` hold secrets, and nothing holds a path of this machine.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::process::{Pid, test_kill_process};
use serde::Serialize;
use serde::de::DeserializeOwned;
use weft_wire::printable_json;

use crate::failure::Failure;
use crate::folder::{self, gone, private_folder};

/// A bundle's folder.
#[derive(Clone, Debug)]
pub struct Bundle(PathBuf);

/// The scrape file of a laboratory in containers.
pub const SCRAPE: &str = "prometheus.yml";

/// The token of who may look at pages over HTTP.
pub const HTTP_TOKEN: &str = "identities/http.token";
/// The authority's certificate.
pub const AUTHORITY: &str = "ca.pem";

/// Its folders.
const FOLDERS: [&str; 3] = ["agents", "managers", "identities"];

/// Where in a bundle the options are that the OpenSM of this name reads.
pub fn opensm_options(name: &str) -> String {
    format!("identities/{name}.conf")
}

impl Bundle {
    /// The bundle in a folder, which need not be there yet.
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What it consists of.
    pub fn record(&self) -> PathBuf {
        self.0.join("lab.json")
    }

    /// The cabling.
    pub fn topology(&self) -> PathBuf {
        self.0.join("topology")
    }

    /// The partitions file, which need not be there.
    pub fn partitions(&self) -> PathBuf {
        self.0.join("partitions.conf")
    }

    /// The authority's certificate.
    pub fn authority(&self) -> PathBuf {
        self.0.join(AUTHORITY)
    }

    /// The list of revoked identities, which need not be there.
    pub fn revoked(&self) -> PathBuf {
        self.0.join("revoked.pem")
    }

    /// The authority's private key.
    pub fn authority_key(&self) -> PathBuf {
        self.0.join("ca.key")
    }

    /// The folder of the agents' configurations.
    pub fn agents(&self) -> PathBuf {
        self.0.join("agents")
    }

    /// The configuration of an agent.
    pub fn agent(&self, name: &str) -> PathBuf {
        self.agents().join(format!("{name}.json"))
    }

    /// The configuration of a process that is no agent.
    pub fn manager(&self, name: &str) -> PathBuf {
        self.0.join("managers").join(format!("{name}.json"))
    }

    /// The identity of a process.
    pub fn identity(&self, name: &str) -> PathBuf {
        self.0.join("identities").join(format!("{name}.pem"))
    }

    /// The keys of management.
    pub fn keys(&self) -> PathBuf {
        self.0.join("identities").join("keys.json")
    }

    /// The token of who may look at pages over HTTP.
    pub fn http_token(&self) -> PathBuf {
        self.0.join(HTTP_TOKEN)
    }

    /// The options that unmodified OpenSM reads; they hold a key of management.
    pub fn opensm_options(&self, name: &str) -> PathBuf {
        self.0.join(opensm_options(name))
    }

    /// Makes its folders, which others than their owner cannot enter.
    pub fn make_folders(&self) -> anyhow::Result<()> {
        FOLDERS.iter().try_for_each(|part| private_folder(&self.0.join(part)))
    }

    /// Copies what processes need, all but the authority's key, to a folder that is there.
    pub fn copy_to(&self, other: &Self) -> anyhow::Result<()> {
        other.make_folders()?;
        for file in ["lab.json", "topology", "ca.pem"] {
            copy(&self.0.join(file), &other.0.join(file))?;
        }
        for (own, copied) in [(self.revoked(), other.revoked()), (self.partitions(), other.partitions())] {
            if own.exists() {
                copy(&own, &copied)?;
            }
        }
        for part in FOLDERS {
            let (from, to) = (self.0.join(part), other.0.join(part));
            let entries = fs::read_dir(&from).with_context(|| format!("cannot list {}", from.display()))?;
            for entry in entries {
                let name = entry.with_context(|| format!("cannot list {}", from.display()))?.file_name();
                copy(&from.join(&name), &to.join(&name))?;
            }
        }
        Ok(())
    }
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let bytes = crate::input::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    folder::write(to, &bytes)
}

/// Reads one of a bundle's JSON files.
pub fn load<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = crate::input::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| {
        Failure::new(format!("{} is invalid: {error}", path.display()))
            .hint("it is of another version of weft, or was cut short: plan it again with `weft plan`")
    })
}

/// Writes one of a bundle's JSON files.
pub fn store<T: Serialize>(path: &Path, part: &T) -> anyhow::Result<()> {
    folder::write(path, printable_json(&serde_json::to_string(part)?).as_bytes())
}

/// Replaces one of a bundle's JSON files: a reader finds the old one or the new one.
pub fn replace<T: Serialize>(path: &Path, part: &T) -> anyhow::Result<()> {
    folder::replace(path, printable_json(&serde_json::to_string(part)?).as_bytes())
}

/// What the folder of a bundle that is being written is called: `.NAME.new-PID`.
const DRAFT: &str = ".new-";

/// A bundle that is being written beside its place. It goes when this does, unless it was finished: who looks at the place
/// finds nothing or a whole bundle.
#[derive(Debug)]
pub struct Draft {
    bundle: Bundle,
    place: PathBuf,
    finished: bool,
}

impl Draft {
    /// Begins one, and clears away what writers that were killed have left there.
    pub fn begin(place: &Path) -> anyhow::Result<Self> {
        let place = std::path::absolute(place).with_context(|| format!("cannot find {}", place.display()))?;
        let name =
            place.file_name().with_context(|| format!("{} cannot be a bundle's folder", place.display()))?;
        let taken = fs::read_dir(&place).map(|mut entries| entries.next().is_some());
        if taken.unwrap_or_else(|error| error.kind() != ErrorKind::NotFound) {
            return Err(Failure::new(format!("{} is there already", place.display()))
                .hint("remove it, or choose another folder with --out"));
        }
        let parent = place.parent().unwrap_or(Path::new("/"));
        let mut begins = OsString::from(".");
        begins.push(name);
        begins.push(DRAFT);
        clear(parent, &begins);
        let mut own = begins.clone();
        own.push(std::process::id().to_string());
        let path = parent.join(own);
        gone(fs::remove_dir_all(&path)).with_context(|| format!("cannot remove {}", path.display()))?;
        private_folder(&path)?;
        let draft = Self { bundle: Bundle(path), place, finished: false };
        draft.bundle.make_folders()?;
        Ok(draft)
    }

    /// Where it is being written.
    pub fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// Gives the bundle its place.
    pub fn finish(mut self) -> anyhow::Result<Bundle> {
        let shown = || format!("cannot make {}", self.place.display());
        fs::rename(&self.bundle.0, &self.place).with_context(shown)?;
        self.finished = true;
        Ok(Bundle(self.place.clone()))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.finished {
            // Whatever kept it from being finished is reported; what stays is cleared by the next one.
            let _ = fs::remove_dir_all(&self.bundle.0);
        }
    }
}

/// Removes drafts whose writers have ended. The number may have come to be another process's; then one stays a while longer.
fn clear(parent: &Path, begins: &std::ffi::OsStr) {
    use std::os::unix::ffi::OsStrExt as _;
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(number) = name.as_bytes().strip_prefix(begins.as_bytes()) else { continue };
        let number = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
        let writer = number.and_then(Pid::from_raw);
        if writer.is_some_and(|writer| test_kill_process(writer) == Err(rustix::io::Errno::SRCH)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
