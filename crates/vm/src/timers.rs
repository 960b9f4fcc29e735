//! Timers of a VM manager.

weft_wire::worded! {
    /// What a VM manager waits for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum VmTimer {
        /// Agents tell what they have.
        Gather => ("waiting for agents' reports"),
        /// An agent has not answered in time.
        Agent => ("agent: timeout"),
        /// A stage of a move ends, or is given up.
        Stage => ("stage of a move"),
        /// The subnet manager has not answered in time.
        SubnetManager => ("subnet manager: timeout"),
        /// A client has waited long enough.
        Client => ("client: timeout"),
    }
}
