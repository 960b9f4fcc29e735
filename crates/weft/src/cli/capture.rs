//! `weft capture`

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

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

/// Files of bounded size; the oldest is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ring {
    /// Number of files to keep.
    pub(crate) files: u32,
    /// Maximum bytes of each.
    pub(crate) bytes: u64,
}

impl FromStr for Ring {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || "files times size, such as 4x10M (K, M and G are powers of 1024)".to_owned();
        let (files, size) = text.split_once(['x', 'X', '×']).ok_or_else(malformed)?;
        let (number, unit) = match size.char_indices().next_back().ok_or_else(malformed)? {
            (at, 'k' | 'K') => (&size[..at], 1 << 10),
            (at, 'm' | 'M') => (&size[..at], 1 << 20),
            (at, 'g' | 'G') => (&size[..at], 1 << 30),
            _ => (size, 1),
        };
        let files = files.parse().map_err(|_| malformed())?;
        let bytes: u64 = number.parse().map_err(|_| malformed())?;
        let bytes = bytes.checked_mul(unit).ok_or_else(malformed)?;
        if files == 0 || bytes < 1024 {
            return Err("at least one file of at least 1024 bytes".to_owned());
        }
        Ok(Self { files, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_files_times_size() {
        let ring = |files, bytes| Ok(Ring { files, bytes });
        assert_eq!("4x10M".parse(), ring(4, 10 << 20));
        assert_eq!("1×2048".parse(), ring(1, 2048));
        assert_eq!("100X1g".parse(), ring(100, 1 << 30));
        for wrong in
            ["", "4", "x", "4x", "x10M", "0x10M", "4x10", "4x10T", "-1x10M", "4x99999999999G", "4xM", "4x1é"]
        {
            assert!(wrong.parse::<Ring>().is_err(), "{wrong}");
        }
    }
}
