//! The surroundings of an agent: its credentials and its files, beside its configuration.

use std::path::PathBuf;
use std::sync::Arc;

use weft_agent_config::AgentPart;
use weft_link::Credentials;
use weft_process::Papers;

/// A recording grows to this, unless something else is said: some minutes of a busy agent.
pub const RECORD_BYTES_MAX: u64 = 1 << 30;

/// Everything an agent needs to know: its configuration, its identity, and the paths of its files.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Its configuration in the laboratory.
    pub part: AgentPart,
    /// Its certificate, which names those of its devices that have peers, and its key.
    pub credentials: Credentials,
    /// How it renews them and learns of those that are revoked; neither happens without it.
    pub papers: Option<Arc<dyn Papers>>,
    /// The Unix socket where programs attach.
    pub attach_socket: PathBuf,
    /// The Unix socket where it answers requests of the control protocol.
    pub control_socket: PathBuf,
    /// An existing file that the agent holds locked as long as it lives.
    pub lock_file: PathBuf,
    /// The file in which it keeps faults that are to outlast its process; without it they end with the process.
    pub faults_file: Option<PathBuf>,
    /// The file in which it keeps which of its slots' own identities have left them. Without it,
    /// its next life may plug in an identity that runs on another host by then.
    pub slots_file: Option<PathBuf>,
    /// The file in which the agent records what its node is fed; nothing is recorded without it.
    pub record_file: Option<PathBuf>,
    /// How far that file may grow.
    pub record_bytes_max: u64,
    /// Whether it dials its peers only when a client tells it to begin.
    pub waits: bool,
}
