//! Names of processes.

/// The name of the subnet manager among the processes.
pub const SM: &str = "sm";

/// The name of the performance manager among the processes.
pub const PM: &str = "pm";

/// The name of the VM manager among the processes.
pub const VMM: &str = "vmm";

/// The name of the server of ibsim's protocol among the processes.
pub const IBSIM: &str = "ibsim";

/// The name of unmodified OpenSM among the processes.
pub const OPENSM: &str = "opensm";

/// The verb that is one agent.
pub const AGENT: &str = "agent";
/// The name of the hub among the processes.
pub const HUB: &str = "hub";

/// Whether a word can be the name of a process, which names files.
pub fn is_plain(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !name.is_empty() && name.len() <= 64 && name.chars().all(good)
}

/// The name of one of several of a kind, of which the first has the kind's own.
pub fn numbered(first: &str, at: usize) -> String {
    if at == 0 { first.to_owned() } else { format!("{first}-{}", at + 1) }
}

/// Whether a process is of a kind: by its name, which the first has, and others with a number.
pub fn is_of(process: &str, first: &str) -> bool {
    let number = process.strip_prefix(first).map(|rest| rest.strip_prefix('-').unwrap_or(rest));
    process == first
        || number.is_some_and(|number| {
            number.parse().is_ok_and(|at: usize| at > 1 && numbered(first, at - 1) == process)
        })
}

/// What a manager is, for people: of several each with its name.
pub fn what(process: &str) -> Option<String> {
    const KINDS: [(&str, &str); 4] = [
        (SM, "the subnet manager"),
        (PM, "the performance manager"),
        (VMM, "the VM manager"),
        (OPENSM, "OpenSM"),
    ];
    let (first, what) = KINDS.into_iter().find(|(first, _)| is_of(process, first))?;
    Some(if process == first { what.to_owned() } else { format!("{what} {process}") })
}

/// The name of an agent, by its place in the record.
pub fn agent_name(index: usize) -> String {
    format!("a{index:04}")
}

/// The place of an agent in the record that it was planned with, by its name.
pub fn number_of(agent: &str) -> Option<usize> {
    agent.strip_prefix('a')?.parse().ok().filter(|number| agent_name(*number) == agent)
}
