//! Output of captured packets: a file, a ring of files, or a pipe.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_bundle::folder::with_suffix;
use weft_control::Utc;
use weft_control::agent::Captured;
use weft_process::utc_now;
use weft_wire::{PACKET_SIZE_MAX, erf};

/// A capture file in the making. Every flush leaves it complete.
pub struct CaptureFile {
    out: Out,
    /// Each record names its port.
    named: bool,
    record: Vec<u8>,
}

/// Where records go.
enum Out {
    One { path: PathBuf, writer: BufWriter<Box<dyn Write>> },
    Ring(RingFiles),
}

impl CaptureFile {
    /// A new file, also a named pipe. Where `named`, each record names its port.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path, named: bool) -> anyhow::Result<Self> {
        Self::pipe(path, Box::new(create(path)?), named)
    }

    /// What is open already; errors call it by `path`.
    ///
    /// # Errors
    /// When it cannot be written. A reader that has gone is an [`std::io::Error`] without context.
    pub fn pipe(path: &Path, file: Box<dyn Write>, named: bool) -> anyhow::Result<Self> {
        let mut writer = BufWriter::new(file);
        written(path, writer.write_all(&erf::file_header()).and_then(|()| writer.flush()))?;
        Ok(Self::new(Out::One { path: path.to_owned(), writer }, named))
    }

    /// Files of bounded size, called as dumpcap calls them.
    pub fn ring(path: &Path, ring: Ring, named: bool) -> Self {
        Self::new(Out::Ring(RingFiles::new(path.to_owned(), ring)), named)
    }

    fn new(out: Out, named: bool) -> Self {
        Self { out, named, record: Vec::new() }
    }

    /// Appends a packet.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, captured: &Captured) -> anyhow::Result<()> {
        // No port takes a longer packet; what else an agent may say does not belong into a file.
        let bytes = &captured.packet.0;
        let packet = bytes.get(..PACKET_SIZE_MAX).unwrap_or(bytes);
        let record = erf::Record {
            time_ns: captured.time_ns,
            sent: captured.sent,
            damaged: captured.damaged,
            lost: captured.lost,
            port: self.named.then_some((captured.end.node.0, captured.end.port)),
            packet,
        };
        self.record.clear();
        record.encode_into(&mut self.record);
        match &mut self.out {
            Out::One { path, writer } => written(path, writer.write_all(&self.record)),
            Out::Ring(ring) => ring.write(&self.record),
        }
    }

    /// Lets others read all that was written.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        match &mut self.out {
            Out::One { path, writer } => written(path, writer.flush()),
            Out::Ring(ring) => ring.flush(),
        }
    }
}

fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path)
        .map_err(|error| Failure::bad_input(format!("cannot write {}: {error}", path.display())).into())
}

fn written(path: &Path, result: std::io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(error.into()),
        result => result.with_context(|| format!("cannot write {}", path.display())),
    }
}

/// Files of bounded size; the oldest is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Number of files to keep.
    pub files: u32,
    /// Maximum bytes of each.
    pub bytes: u64,
}

impl FromStr for Ring {
    type Err = InvalidRing;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (files, size) = text.split_once(['x', 'X', '×']).ok_or(InvalidRing::Malformed)?;
        let (number, unit) = match size.char_indices().next_back().ok_or(InvalidRing::Malformed)? {
            (at, 'k' | 'K') => (&size[..at], 1 << 10),
            (at, 'm' | 'M') => (&size[..at], 1 << 20),
            (at, 'g' | 'G') => (&size[..at], 1 << 30),
            _ => (size, 1),
        };
        let files = files.parse().map_err(|_| InvalidRing::Malformed)?;
        let bytes: u64 = number.parse().map_err(|_| InvalidRing::Malformed)?;
        let bytes = bytes.checked_mul(unit).ok_or(InvalidRing::Malformed)?;
        if files == 0 || bytes < 1024 {
            return Err(InvalidRing::TooSmall);
        }
        Ok(Self { files, bytes })
    }
}

/// A text that is no [`Ring`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRing {
    /// Not a number, `x` and a size.
    #[error("files times size, such as 4x10M (K, M and G are powers of 1024)")]
    Malformed,
    /// No file, or files without room for a header and a packet.
    #[error("at least one file of at least 1024 bytes")]
    TooSmall,
}

/// Files of bounded size, named as dumpcap names them, of which the newest are kept.
struct RingFiles {
    path: PathBuf,
    ring: Ring,
    number: u32,
    kept: VecDeque<PathBuf>,
    writer: Option<BufWriter<File>>,
    bytes: u64,
}

impl RingFiles {
    fn new(path: PathBuf, ring: Ring) -> Self {
        Self { path, ring, number: 0, kept: VecDeque::new(), writer: None, bytes: 0 }
    }

    fn write(&mut self, record: &[u8]) -> anyhow::Result<()> {
        let bytes = record.len() as u64;
        let writer = match &mut self.writer {
            Some(writer) if self.bytes + bytes <= self.ring.bytes => writer,
            _ => self.turn(utc_now())?,
        };
        let result = writer.write_all(record);
        self.bytes += bytes;
        written(&self.path, result)
    }

    /// Begins the next file, and removes the oldest when there would be too many.
    fn turn(&mut self, now: Utc) -> anyhow::Result<&mut BufWriter<File>> {
        self.flush()?;
        while self.kept.len() >= self.ring.files as usize
            && let Some(oldest) = self.kept.pop_front()
        {
            // Somebody may have tidied up already.
            weft_bundle::folder::remove(&oldest)?;
        }
        self.number += 1;
        let path = ring_name(&self.path, self.number, now);
        let mut writer = BufWriter::new(create(&path)?);
        self.kept.push_back(path);
        let header = erf::file_header();
        self.bytes = header.len() as u64;
        written(&self.path, writer.write_all(&header))?;
        Ok(self.writer.insert(writer))
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        written(&self.path, writer.flush())
    }
}

/// `smp.pcap` becomes `smp_00001_20261120132955.pcap`, which Wireshark takes for a set of files.
fn ring_name(path: &Path, number: u32, now: Utc) -> PathBuf {
    with_suffix(path, &format!("_{number:05}_{}", now.digits()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_the_newest_files_within_their_size() {
        let folder = tempfile::tempdir().unwrap();
        let mut ring = RingFiles::new(folder.path().join("smp.pcap"), Ring { files: 3, bytes: 1024 });
        for _ in 0..20 {
            ring.write(&[7; 322]).unwrap();
        }
        ring.flush().unwrap();
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let names: Vec<String> =
            files.iter().map(|path| path.file_name().unwrap().to_str().unwrap()[..10].to_owned()).collect();
        assert_eq!(names, ["smp_00005_", "smp_00006_", "smp_00007_"]);
        // Three records fit beside the header; the last two came alone.
        let sizes: Vec<u64> = files.iter().map(|path| path.metadata().unwrap().len()).collect();
        assert_eq!(sizes, [24 + 3 * 322, 24 + 3 * 322, 24 + 2 * 322]);
        assert!(files.iter().all(|path| std::fs::read(path).unwrap().starts_with(&erf::file_header())));
    }

    #[test]
    fn a_packet_larger_than_a_file_has_one_to_itself() {
        let folder = tempfile::tempdir().unwrap();
        let mut ring = RingFiles::new(folder.path().join("big"), Ring { files: 2, bytes: 1024 });
        ring.write(&[0; 4000]).unwrap();
        ring.write(&[0; 4000]).unwrap();
        ring.flush().unwrap();
        let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap()).collect();
        assert_eq!(files.len(), 2);
        assert!(files.iter().all(|file| file.metadata().unwrap().len() == 4024));
    }

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
