use serde::{Deserialize, Serialize};
use weft_device::DeviceOptions;
use weft_host::stack::StackOptions;
use weft_machine::Time;
use weft_topology::{Adapter, NodeIndex, PortRef};
use weft_wire::SmKey;

use crate::SeededBug;

weft_wire::defaults! {
    /// What a simulated fabric is like.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct SimOptions {
        /// Of every device.
        pub device: DeviceOptions = DeviceOptions::default(),
        /// Of the subnet manager.
        pub sm: weft_sm::Options = weft_sm::Options::default(),
        /// Whether there is a subnet manager from the beginning.
        pub with_sm: bool = true,
        /// The port that the subnet manager is attached to; the first host's first cabled port if not said.
        pub sm_port: Option<PortRef> = None,
        /// More subnet managers, up to four, with the first one's options. All begin together.
        pub standbys: Vec<StandbyOptions> = Vec::new(),
        /// Of the performance manager.
        pub pm: weft_pm::Options = weft_pm::Options::default(),
        /// Whether there is a performance manager from the beginning.
        pub with_pm: bool = false,
        /// The port that the performance manager is attached to; the last host's first cabled port if not said.
        pub pm_port: Option<PortRef> = None,
        /// When the performance manager is attached.
        pub pm_start: Time = Time::from_millis(10),
        /// Of the VM manager; the scheme of LIDs is that of `empty_slots`.
        pub vmm: weft_vm::Options = weft_vm::Options::default(),
        /// Whether there is a VM manager from the beginning. It needs `adapters`.
        pub with_vmm: bool = false,
        /// The port that the VM manager is attached to; a physical function's if not said.
        pub vmm_port: Option<PortRef> = None,
        /// When the VM manager is attached.
        pub vmm_start: Time = Time::from_millis(10),
        /// How long a write to the VM manager's journal takes to be on disk.
        pub journal_sync: Time = Time::from_micros(500),
        /// What goes wrong with that disk.
        pub disk: DiskOptions = DiskOptions::default(),
        /// Whether there is a host behind every cabled HCA port.
        pub hosts: bool = false,
        /// Of every host.
        pub host: StackOptions = StackOptions::default(),
        /// How long a packet takes over a cable.
        pub link_delay: Time = Time::from_micros(1),
        /// The same on the data lanes, where cables have a length: that is fabric time, and management takes real time.
        pub data_link_delay: Option<Time> = None,
        /// Cables on whose data lanes it takes another time, by one of their ends.
        pub link_delays: Vec<(PortRef, Time)> = Vec::new(),
        /// How much longer at most a packet of lane 15 takes; such packets may overtake each other.
        pub link_jitter: Time = Time::ZERO,
        /// How long a link takes at least to come up.
        pub training: Time = Time::from_millis(1),
        /// How much longer at most.
        pub training_jitter: Time = Time::from_millis(1),
        /// How long an end takes at most to notice that the other is gone.
        pub link_timeout: Time = Time::from_millis(100),
        /// How long a MAD takes between a program, a host's software too, and its device.
        pub attach_delay: Time = Time::from_micros(5),
        /// When the subnet manager is attached.
        pub sm_start: Time = Time::from_millis(10),
        /// How much of the trace to keep.
        pub trace: TraceMode = TraceMode::Off,
        /// Whether devices and cables may come and go: nodes then get messages about their cables ([`Change`](crate::Change)).
        pub recabling: bool = false,
        /// This many devices are in each node, one after the other, and the cables between them with them; 1 or less for one
        /// each. More need `recabling`.
        pub pack: usize = 1,
        /// Virtualised adapters, each with its functions in one node, as agents have them. They need `recabling`, and no `pack`.
        pub adapters: Vec<Adapter> = Vec::new(),
        /// Whether the slots of virtual functions are empty at first, as with dynamic LIDs.
        pub empty_slots: bool = false,
        /// Whether subnet managers keep a log of what tables are computed from ([`Simulation::take_history`](crate::Simulation::take_history)).
        pub history: bool = false,
        /// The node whose inputs are recorded ([`Simulation::into_recordings`](crate::Simulation::into_recordings)).
        pub record: Option<NodeIndex> = None,
        /// A bug that is put in on purpose, for tests of what finds bugs.
        #[serde(skip)]
        pub bug: Option<SeededBug> = None,
    }
}

/// A subnet manager beside the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandbyOptions {
    /// The port that it is attached to.
    pub port: PortRef,
    /// Its priority.
    pub priority: u8,
    /// Its SM_Key, where it is not the first one's.
    pub sm_key: Option<SmKey>,
}

/// What goes wrong with the disk that the VM manager's journal is on. Each is drawn from the simulation's seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiskOptions {
    /// Of a thousand deaths of the manager's process, those that leave on disk some of the writes that were not synced, in order, and
    /// of the next one the first bytes. All others leave none of these writes.
    pub torn_per_mille: u32,
    /// Of a thousand syncs, those that fail as on a full disk. They leave what a torn write does, and the manager stops.
    pub full_per_mille: u32,
}

/// How much of the trace to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TraceMode {
    /// Nothing.
    #[default]
    Off,
    /// A hash over all lines.
    Hash,
    /// All lines, and the hash.
    Lines,
}
