//! `weft capture`

use std::path::PathBuf;

use clap::Args;
use weft_capture::Ring;

/// `capture`
#[derive(Debug, Args)]
pub(crate) struct CaptureArgs {
    /// Ports to capture at: one port, all ports of a node or of a virtual machine's function (`vm:NAME`), or `all`
    ///
    /// Captures both directions of a port. Where both ends of a cable are named, and with `all`, each packet appears
    /// once, at its sender.
    #[arg(required = true, value_name = "NODE:PORT|NODE|all")]
    pub(crate) ports: Vec<String>,

    /// File to write for Wireshark (pcap, link type ERF); `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,

    /// Ring of files of bounded size, such as 4x10M: FILE_00001_TIME and so on; the oldest is removed
    #[arg(long, value_name = "FILESxSIZE", requires = "write")]
    pub(crate) ring: Option<Ring>,

    /// Stop after this many packets
    #[arg(long, short, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,

    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub(crate) seconds: Option<u64>,

    /// Print a JSON object for each packet, also when writing a file
    #[arg(long)]
    pub(crate) json: bool,
}
