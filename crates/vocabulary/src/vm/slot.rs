//! States of a slot of virtual machines.

weft_wire::named! {
    /// How a slot is used.
    #[derive(Default, PartialOrd, Ord)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum SlotState {
        /// Unplugged, without a virtual machine: the vSwitch's port is Down on purpose.
        #[default]
        Empty = "empty",
        /// Plugged in, without a virtual machine.
        Free = "free",
        /// Kept for a virtual machine that will come; plugged in or not, as it was before.
        Reserved = "reserved",
        /// A virtual machine runs.
        Running = "running",
        /// A virtual machine is suspended, and perhaps exported.
        Frozen = "frozen",
        /// A virtual machine has arrived and waits to be activated.
        Imported = "imported",
    }
}
