//! A switch and an HCA as state machines: ports, forwarding, subnet and performance management agents.
//!
//! One machine, [`Device`], plays either part. It is fed with what happens at its ports and with what attached
//! management programs send, and says which packets leave, which MADs the programs get, and what happened. It has
//! no clock, no link and no thread: `weft-agent` and `weft-sim` drive the same machine.
//!
//! ```text
//!                        ┌───────────────────────── Device ──────────────────────────┐
//!  Arrive ─────▶ checks ─┤ lane 15, for this node ─▶ Vl15 ─▶ SMI ─▶ SMA, or a program├─▶ Transmit, Deliver
//!                counts  │ lane 15, for others ───▶ next hop, or forwarding table    │
//!  Arrive ─────▶ checks ─┤ data, for others ─▶ route ─▶ buffer ─▶ arbitration ─▶ rate├─▶ Transmit
//!                counts  │ data, for this node ─▶ keys ─▶ agents, a program, the host│   Deliver, Accept
//!  Arrive (credit) ──────┼─▶ what may be sent                    blocks become free ─┼─▶ Transmit (credit)
//!  Inject ───────────────┼─▶ queue of the lane ─▶ arbitration ─▶ rate and limit ─────┼─▶ Transmit, Injected
//!  Send ─────────────────┼─▶ SMI, or queue of the lane, or the own agents            │
//!  LinkUp, LinkDown ─────┼─▶ link state ─▶ PortStateChange, trap 128, credits ───────┼─▶ Event, SetLink, HostPort
//!                        └───────────────────────────────────────────────────────────┘
//! ```
//!
//! Data lanes have buffers, credits and rates of their own (`data`). Not here yet: multicast.
//!
//! ```
//! use weft_device::{Device, DeviceConfig, DeviceOptions, Frame, Input, Output, PortConfig};
//! use weft_machine::{Machine, Time};
//! use weft_wire::{Guid, LinkParameters, NodeType, PortNum, PortState};
//!
//! let link = LinkParameters { width: 2, speed: 4, speed_ext: 0 };
//! let config = DeviceConfig {
//!     kind: NodeType::Hca,
//!     guid: Guid(1),
//!     system_image_guid: Guid(1),
//!     description: "host".into(),
//!     vendor_id: 0x2c9,
//!     device_id: 1,
//!     enhanced_port0: false,
//!     ports: vec![PortConfig { guid: Guid(2), link }],
//!     options: DeviceOptions::default(),
//! };
//! let mut hca = Device::new(&config);
//! hca.handle_input(Time::ZERO, Input::LinkUp { port: PortNum(1), peer: link });
//! while let Some(output) = hca.poll_output() {
//!     // What happened, what its host is to know, and room for the neighbour's packets.
//!     let is_credit = matches!(output, Output::Transmit { frame: Frame::Credit(_), .. });
//!     assert!(is_credit || matches!(output, Output::Event(_) | Output::HostPort { .. }));
//! }
//! assert_eq!(hca.port_snapshot(PortNum(1)).unwrap().state, PortState::Initialize);
//! ```

mod attach;
mod config;
mod congestion;
mod counters;
mod crossbar;
mod data;
mod device;
mod event;
mod frame;
mod gmp;
mod host_services;
mod identity;
mod input;
mod inspect;
mod lane_counters;
mod lane_share;
mod link_state;
mod marking;
mod moment;
mod output;
mod outputs;
mod pma;
mod port;
mod ports;
mod profile;
mod rounds;
mod size;
mod sma;
mod smi;
mod smp;
mod snapshot;
mod switch;
#[cfg(test)]
mod testing;
mod timers;
mod trap;
mod vl15;

pub use config::{DataPathOptions, DeviceConfig, DeviceOptions, PortConfig};
pub use counters::Counters;
pub use crossbar::{Crossbar, UnknownCrossbar};
pub use data::{BufferAccount, BusDirection, DataAccount, Deadline, LaneAccount};
pub use device::Device;
pub use event::{DropReason, Event, RefusalReason};
pub use frame::{Frame, Unsent};
pub use input::{ClientId, Input};
pub use lane_share::LaneShare;
pub use output::Output;
pub use outputs::Outputs;
pub use profile::{CABLE_NS_PER_M, Profile};
pub use snapshot::{LaneTotals, PortSnapshot, Snapshot, Statistics};
pub use timers::DeviceTimer;
