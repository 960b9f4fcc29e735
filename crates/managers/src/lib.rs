//! The processes of a laboratory: its managers, its agents, and programs of others that are attached to them.
//!
//! ```text
//!   bundle ──▶ start ──▶ sm, pm, vmm ──▶ manager: one loop ──MADs──▶ agent
//!                    ──▶ agent             │
//!                    ──▶ opensm, ibsim     └── door: control over QUIC
//! ```
//!
//! A process is configured by a file of its [`weft_bundle`] bundle and started by [`start::Start`]. The subnet manager, the performance
//! manager and the VM manager are machines without I/O; [`manager`] is the loop that drives them. [`door`] brings the sockets of a
//! process to other hosts, and those of other hosts' processes here.

pub mod agent;
pub mod door;
pub mod ibsim;
pub mod manager;
mod one_writer;
pub mod opensm;
pub mod pm;
pub mod post;
pub mod preload;
pub mod sm;
pub mod start;
pub mod vmm;
