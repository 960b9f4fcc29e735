//! The start of a laboratory's process: its bundle, its name there, its identity, and the folder that it runs in.

use std::net::SocketAddr;
use std::path::PathBuf;

use weft_bundle::config::keys::Keys;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::identity::papers::Papers;
use weft_wire::Guid;

/// How a process of a laboratory is started.
#[derive(Clone, Debug)]
pub struct Start {
    /// The bundle that it is configured by.
    pub bundle: Bundle,
    /// Its name in the bundle.
    pub name: String,
    /// The file with its certificate and private key, if that is not the bundle's.
    pub identity: Option<PathBuf>,
    /// The folder for sockets and locks.
    pub run: PathBuf,
    /// Where it answers the control protocol over QUIC, if it does.
    pub door: Option<SocketAddr>,
    /// Whether it waits until a client says to begin; the folder to run in is there.
    pub waits: bool,
}

impl Start {
    /// The file of the process's identity.
    pub fn identity(&self) -> PathBuf {
        self.identity.clone().unwrap_or_else(|| self.bundle.identity(&self.name))
    }

    /// What the process proves itself with: it must name `node` if there is one.
    pub fn papers(&self, node: Option<Guid>) -> anyhow::Result<Papers> {
        Papers::load(&self.bundle, self.identity(), node)
    }

    /// The keys of management, which lie beside the identity.
    pub fn keys(&self) -> anyhow::Result<Keys> {
        let path = self.identity().with_file_name("keys.json");
        Keys::load(&path).map_err(|error| {
            let uid = rustix::process::geteuid().as_raw();
            Failure::new(format!("user {uid} has no keys of management: {error:#}"))
                .hint("they lie beside the identity, and belong to the user that runs the manager")
        })
    }

    /// The folder to run in, with what a process needs to begin. For a process that is to wait all that has been made: what is
    /// missing then has been taken down.
    pub fn run_folder(&self, lab: &str) -> anyhow::Result<LabFolder> {
        let run = LabFolder::of_run(&self.run, lab)?;
        if !self.waits {
            run.prepare_for(&self.name)?;
        }
        Ok(run)
    }
}
