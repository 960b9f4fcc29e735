//! A page as gzip, to which a few further lines are added at each answer.
//!
//! The page ends at a byte (a flush of deflate), and what follows refers to nothing before it. So page and lines are one stream, with
//! one checksum, as if they had been compressed together (RFC 1952).

use crc32fast::Hasher;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Magic, deflate, no name, no time, fastest, of no system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];
/// A page is mostly repetition: more effort gains little.
const LEVEL: u32 = 2;
/// Others have their turn after so much of a page.
const TURN_BYTES: usize = 256 << 10;
/// Room that output is made in.
const ROOM_BYTES: usize = 64 << 10;

/// A compressed page.
#[derive(Debug)]
pub(crate) struct Squeezed {
    /// Head and page, without an end.
    bytes: Vec<u8>,
    sum: Hasher,
    length: usize,
}

impl Squeezed {
    /// Compresses a page, and lets others have their turns meanwhile.
    pub(crate) async fn of(page: &str) -> Self {
        let mut squeezer = Compress::new(Compression::new(LEVEL), false);
        let (mut bytes, mut sum) = (HEAD.to_vec(), Hasher::new());
        let mut parts = page.as_bytes().chunks(TURN_BYTES).peekable();
        while let Some(part) = parts.next() {
            let last = parts.peek().is_none();
            squeeze(
                &mut squeezer,
                part,
                if last { FlushCompress::Full } else { FlushCompress::None },
                &mut bytes,
            );
            sum.update(part);
            tokio::task::yield_now().await;
        }
        bytes.shrink_to_fit();
        Self { bytes, sum, length: page.len() }
    }

    /// The page with further lines, as a whole file.
    pub(crate) fn with(&self, lines: &str) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let mut squeezer = Compress::new(Compression::new(LEVEL), false);
        squeeze(&mut squeezer, lines.as_bytes(), FlushCompress::Finish, &mut bytes);
        let mut sum = self.sum.clone();
        sum.update(lines.as_bytes());
        bytes.extend(sum.finalize().to_le_bytes());
        // The length modulo 2^32.
        bytes.extend(((self.length + lines.len()) as u32).to_le_bytes());
        bytes
    }

    /// The page as it was.
    pub(crate) fn plain(&self) -> Option<String> {
        if self.length == 0 {
            return Some(String::new());
        }
        let mut page = Vec::with_capacity(self.length);
        let packed = self.bytes.get(HEAD.len()..)?;
        Decompress::new(false).decompress_vec(packed, &mut page, FlushDecompress::Sync).ok()?;
        String::from_utf8(page).ok().filter(|page| page.len() == self.length)
    }
}

/// Compresses all of the input behind what is there.
fn squeeze(squeezer: &mut Compress, mut input: &[u8], flush: FlushCompress, output: &mut Vec<u8>) {
    loop {
        output.reserve(ROOM_BYTES);
        let before = squeezer.total_in();
        // It fails only for a squeezer that has ended, and this one ends here.
        let status = squeezer.compress_vec(input, output, flush).unwrap_or(Status::StreamEnd);
        let taken = usize::try_from(squeezer.total_in() - before).unwrap_or(input.len());
        input = input.get(taken..).unwrap_or_default();
        let is_flushed = output.len() < output.capacity();
        if status == Status::StreamEnd || (input.is_empty() && is_flushed && flush != FlushCompress::Finish) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn unpacked(bytes: &[u8]) -> String {
        let mut text = String::new();
        flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
        text
    }

    /// flate2 knows nothing of how the file came about, and checks its sum.
    #[tokio::test]
    async fn page_and_lines_are_one_file() {
        for lines in [0, 1, 40_000] {
            let page: String =
                (0..lines).map(|at| format!("a_total{{guid=\"{:#018x}\"}} {at}\n", at * 77)).collect();
            let squeezed = Squeezed::of(&page).await;
            for more in ["", "b_total 1\n", &page] {
                assert_eq!(unpacked(&squeezed.with(more)), page.clone() + more, "{lines}");
            }
            assert_eq!(squeezed.plain(), Some(page.clone()));
            assert!(lines < 2 || squeezed.with("").len() * 4 < page.len());
        }
    }
}
