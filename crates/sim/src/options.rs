use serde::{Deserialize, Serialize};
use weft_device::DeviceOptions;
use weft_host::stack::StackOptions;
use weft_machine::Time;
use weft_topology::{Adapter, NodeIndex, PortRef};
use weft_wire::SmKey;

use crate::SeededBug;

/// What a simulated fabric is like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimOptions {
    /// Of every device.
    pub device: DeviceOptions,
    /// Of the subnet manager.
    pub sm: weft_sm::Options,
    /// Whether there is a subnet manager from the beginning.
    pub with_sm: bool,
    /// The port that the subnet manager is attached to; the first host's first cabled port if not said.
    pub sm_port: Option<PortRef>,
    /// More subnet managers, up to four, with the first one's options. All begin together.
    pub standbys: Vec<StandbyOptions>,
    /// Of the performance manager.
    pub pm: weft_pm::Options,
    /// Whether there is a performance manager from the beginning.
    pub with_pm: bool,
    /// The port that the performance manager is attached to; the last host's first cabled port if not said.
    pub pm_port: Option<PortRef>,
    /// When the performance manager is attached.
    pub pm_start: Time,
    /// Of the VM manager; the scheme of LIDs is that of `empty_slots`.
    pub vmm: weft_vm::Options,
    /// Whether there is a VM manager from the beginning. It needs `adapters`.
    pub with_vmm: bool,
    /// The port that the VM manager is attached to; a physical function's if not said.
    pub vmm_port: Option<PortRef>,
    /// When the VM manager is attached.
    pub vmm_start: Time,
    /// How long a write to the VM manager's journal takes to be on disk.
    pub journal_sync: Time,
    /// What goes wrong with that disk.
    pub disk: DiskOptions,
    /// Whether there is a host behind every cabled HCA port.
    pub hosts: bool,
    /// Of every host.
    pub host: StackOptions,
    /// How long a packet takes over a cable.
    pub link_delay: Time,
    /// The same on the data lanes, where cables have a length: that is fabric time, and management takes real time.
    pub data_link_delay: Option<Time>,
    /// Cables on whose data lanes it takes another time, by one of their ends.
    pub link_delays: Vec<(PortRef, Time)>,
    /// How much longer at most a packet of lane 15 takes; such packets may overtake each other.
    pub link_jitter: Time,
    /// How long a link takes at least to come up.
    pub training: Time,
    /// How much longer at most.
    pub training_jitter: Time,
    /// How long an end takes at most to notice that the other is gone.
    pub link_timeout: Time,
    /// How long a MAD takes between a program, a host's software too, and its device.
    pub attach_delay: Time,
    /// When the subnet manager is attached.
    pub sm_start: Time,
    /// How much of the trace to keep.
    pub trace: TraceMode,
    /// Whether devices and cables may come and go: nodes then get messages about their cables ([`Change`](crate::Change)).
    pub recabling: bool,
    /// This many devices are in each node, one after the other, and the cables between them with them; 1 or less for one
    /// each. More need `recabling`.
    pub pack: usize,
    /// Virtualised adapters, each with its functions in one node, as agents have them. They need `recabling`, and no `pack`.
    pub adapters: Vec<Adapter>,
    /// Whether the slots of virtual functions are empty at first, as with dynamic LIDs.
    pub empty_slots: bool,
    /// Whether subnet managers keep a log of what tables are computed from ([`Simulation::take_history`](crate::Simulation::take_history)).
    pub history: bool,
    /// The node whose inputs are recorded ([`Simulation::into_recordings`](crate::Simulation::into_recordings)).
    pub record: Option<NodeIndex>,
    /// A bug that is put in on purpose, for tests of what finds bugs.
    #[serde(skip)]
    pub bug: Option<SeededBug>,
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

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            device: DeviceOptions::default(),
            sm: weft_sm::Options::default(),
            with_sm: true,
            sm_port: None,
            standbys: Vec::new(),
            pm: weft_pm::Options::default(),
            with_pm: false,
            pm_port: None,
            pm_start: Time::from_millis(10),
            vmm: weft_vm::Options::default(),
            with_vmm: false,
            vmm_port: None,
            vmm_start: Time::from_millis(10),
            journal_sync: Time::from_micros(500),
            disk: DiskOptions::default(),
            hosts: false,
            host: StackOptions::default(),
            link_delay: Time::from_micros(1),
            data_link_delay: None,
            link_delays: Vec::new(),
            link_jitter: Time::ZERO,
            training: Time::from_millis(1),
            training_jitter: Time::from_millis(1),
            link_timeout: Time::from_millis(100),
            attach_delay: Time::from_micros(5),
            sm_start: Time::from_millis(10),
            trace: TraceMode::Off,
            recabling: false,
            pack: 1,
            adapters: Vec::new(),
            empty_slots: false,
            history: false,
            record: None,
            bug: None,
        }
    }
}
