//! One line for everything that happens, in fixed columns, so that two runs can be compared byte by byte.

use std::fmt::{self, Write};

use weft_machine::Time;

use crate::TraceMode;

/// What has happened, as lines, or as a hash over them.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    mode: TraceMode,
    lines: String,
    hash: Fnv,
    count: u64,
}

impl Trace {
    pub(crate) fn new(mode: TraceMode) -> Self {
        Self { mode, lines: String::new(), hash: Fnv::default(), count: 0 }
    }

    /// Whether anything is kept, so that what is not need not be put into words.
    pub(crate) fn is_on(&self) -> bool {
        self.mode != TraceMode::Off
    }

    /// `time kind where what`.
    pub(crate) fn line(
        &mut self,
        now: Time,
        kind: &str,
        place: fmt::Arguments<'_>,
        what: fmt::Arguments<'_>,
    ) {
        self.count += 1;
        let mut both = Both { trace: self };
        // Writing into a string and a hash cannot fail.
        let _ = writeln!(both, "{now:>14} {kind:<9} {place} {what}");
    }

    /// All lines, when they are kept.
    pub fn lines(&self) -> &str {
        &self.lines
    }

    /// The hash over all lines.
    pub fn hash(&self) -> u64 {
        self.hash.0
    }

    /// How many lines there were.
    pub fn count(&self) -> u64 {
        self.count
    }
}

struct Both<'a> {
    trace: &'a mut Trace,
}

impl Write for Both<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.trace.hash.add(text.as_bytes());
        if self.trace.mode == TraceMode::Lines {
            self.trace.lines.push_str(text);
        }
        Ok(())
    }
}

/// FNV-1a of 64 bits: the same everywhere and in every version of the compiler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fnv(pub(crate) u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
