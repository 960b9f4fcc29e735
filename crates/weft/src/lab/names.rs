//! Names of processes.

/// The name of the subnet manager among the processes.
pub(crate) const SM: &str = "sm";

/// The name of the performance manager among the processes.
pub(crate) const PM: &str = "pm";

/// The name of the VM manager among the processes.
pub(crate) const VMM: &str = "vmm";

/// The name of the server of ibsim's protocol among the processes.
pub(crate) const IBSIM: &str = "ibsim";

/// The name of unmodified OpenSM among the processes.
pub(crate) const OPENSM: &str = "opensm";

/// The name of the hub among the processes.
pub(crate) const HUB: &str = "hub";

/// The name of an agent, by its place in the record.
pub(crate) fn agent_name(index: usize) -> String {
    format!("a{index:04}")
}

/// The place of an agent in the record that it was planned with, by its name.
pub(crate) fn number_of(agent: &str) -> Option<usize> {
    agent.strip_prefix('a')?.parse().ok().filter(|number| agent_name(*number) == agent)
}
