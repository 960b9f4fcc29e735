//! The plan of a laboratory and its files: what is decided before a process starts, and what each process reads when it does.
//!
//! ```text
//!   topology file ─▶ plan::Wanted ─▶ plan::write ─▶ folder::Bundle ─▶ a process's configuration (config)
//!                       ▲    ▲                        │   │
//!             place ────┘    └──── identity ──────────┘   └──▶ part: one host's share, as a tar archive
//! ```
//!
//! A bundle is a folder that can be copied to the hosts where processes run ([`folder::bundle`]). A laboratory's folder is a bundle with
//! the locks, sockets and logs of what runs ([`folder`]). Nothing here starts a process, and nothing here prints.

pub mod config;
pub mod failure;
pub mod folder;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzed;
pub mod identity;
pub mod input;
pub mod names;
pub mod part;
pub mod partitions;
pub mod place;
pub mod plan;
pub mod ports;
pub mod record;
pub mod topology_file;
