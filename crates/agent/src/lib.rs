//! The wall-clock driver: machines, links and attachment in one tokio process.

mod config;

pub use config::{AgentConfig, CableConfig, ConfigError, LINK_TIMEOUT_MS};

/// Why an agent ended otherwise than asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The configuration contradicts itself.
    #[error("the agent's configuration is wrong")]
    Config(#[from] ConfigError),
}

/// Runs an agent until it is told to stop: by SIGTERM, SIGINT or over its socket.
pub fn run(config: &AgentConfig) -> Result<(), AgentError> {
    config.check()?;
    Ok(())
}
