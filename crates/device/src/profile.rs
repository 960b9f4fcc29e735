//! Profiles: what a generation of switches and hosts is like, each constant from a public source and none fitted to what
//! it is judged by. docs/experiments.md names the sources and says what is only assumed.

use crate::Crossbar;

/// How long a signal takes through a metre of cable, in nanoseconds of fabric time: two thirds of the speed of light, in
/// copper and in glass.
pub const CABLE_NS_PER_M: u32 = 5;

/// A generation of hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// What it is called in files and on the command line.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// The switches, their latency included.
    pub crossbar: Crossbar,
    /// Whether switches cut through; otherwise they store and forward.
    pub cut_through: bool,
    /// The length of every cable, in metres.
    pub cable_m: u32,
    /// What a message costs a host at each of its ends, in nanoseconds of fabric time.
    pub message_overhead_ns: u32,
    /// What a host moves in each direction at most, in megabits per second of fabric time; 0 is as much as its link.
    pub host_limit_mbps: u32,
}

impl Profile {
    /// All profiles, the oldest first.
    pub const ALL: [Self; 3] = [
        Self {
            name: "connectx-ddr",
            about: "the papers' hosts: Sun Fire X2200 M2, ConnectX DDR on PCIe 1.1 x8, InfiniScale switches",
            crossbar: Crossbar::IS4,
            cut_through: true,
            cable_m: 2,
            message_overhead_ns: 860,
            host_limit_mbps: 12_900,
        },
        Self {
            name: "qdr-2012",
            about: "ConnectX-2 QDR on PCIe 2.0 x8, InfiniScale IV",
            crossbar: Crossbar::IS4,
            cut_through: true,
            cable_m: 5,
            message_overhead_ns: 625,
            host_limit_mbps: 25_600,
        },
        Self {
            name: "ndr-2024",
            about: "ConnectX-7 NDR on PCIe 5.0 x16, Quantum-2",
            crossbar: Crossbar { latency_ns: 150, ..Crossbar::IS4 },
            cut_through: true,
            cable_m: 5,
            message_overhead_ns: 285,
            host_limit_mbps: 0,
        },
    ];

    /// The profile of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|profile| profile.name == name)
    }
}
