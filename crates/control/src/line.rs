//! Cutting a stream of bytes into lines of bounded length.

/// Why a line was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The line is longer than the decoder's bound. Its bytes are skipped, not kept.
    #[error("a line is longer than {max} bytes")]
    TooLong {
        /// The bound, in bytes without the line end.
        max: usize,
    },
}

/// Turns bytes, cut anywhere, into lines without their ends.
///
/// It holds at most one incomplete line and what was fed with it. A line beyond the bound is refused once, when it
/// passes the bound, and the rest of it is skipped without being kept.
///
/// ```
/// use weft_control::{LineDecoder, LineError};
///
/// let mut decoder = LineDecoder::new(4);
/// decoder.feed(b"one\ntoo long\r\ntw");
/// assert_eq!(decoder.next_line(), Some(Ok(b"one".to_vec())));
/// assert_eq!(decoder.next_line(), Some(Err(LineError::TooLong { max: 4 })));
/// assert_eq!(decoder.next_line(), None);
/// decoder.feed(b"o\n");
/// assert_eq!(decoder.next_line(), Some(Ok(b"two".to_vec())));
/// ```
#[derive(Debug)]
pub struct LineDecoder {
    max: usize,
    buffer: Vec<u8>,
    /// Bytes at the buffer's beginning that have been given out.
    taken: usize,
    /// Bytes behind `taken` that hold no line end.
    searched: usize,
    /// The line under way was refused; the bytes up to its end are skipped.
    skips: bool,
}

impl LineDecoder {
    /// An empty decoder of lines of at most `max` bytes without their ends.
    pub fn new(max: usize) -> Self {
        Self { max, buffer: Vec::new(), taken: 0, searched: 0, skips: false }
    }

    /// Takes bytes as they came from the stream. Drain [`LineDecoder::next_line`] after each piece.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        if self.skips {
            let Some(end) = position(bytes) else { return };
            self.skips = false;
            bytes = bytes.get(end + 1..).unwrap_or_default();
        }
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The oldest whole line, or that a line is too long; `None` when more bytes are needed. Empty lines are left out.
    pub fn next_line(&mut self) -> Option<Result<Vec<u8>, LineError>> {
        loop {
            let rest = self.buffer.get(self.taken..).unwrap_or_default();
            let end = position(rest.get(self.searched..).unwrap_or_default()).map(|at| at + self.searched);
            let Some(end) = end else {
                self.searched = rest.len();
                // One more for a carriage return whose line end has not come yet.
                let too_long = rest.len() > self.max + 1;
                return too_long.then(|| self.skip());
            };
            let line = rest.get(..end).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let line = if line.len() > self.max { Err(self.too_long()) } else { Ok(line.to_vec()) };
            (self.taken, self.searched) = (self.taken + end + 1, 0);
            if line.as_ref().is_ok_and(Vec::is_empty) {
                continue;
            }
            return Some(line);
        }
    }

    /// Bytes of a line that has not ended.
    pub fn unfinished(&self) -> usize {
        self.buffer.len() - self.taken
    }

    fn skip(&mut self) -> Result<Vec<u8>, LineError> {
        // The memory of a refused line is given back too.
        (self.buffer, self.taken, self.searched, self.skips) = (Vec::new(), 0, 0, true);
        Err(self.too_long())
    }

    fn too_long(&self) -> LineError {
        LineError::TooLong { max: self.max }
    }
}

fn position(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What there is to say of a whole stream, by definition.
    fn expected(stream: &[u8], max: usize) -> Vec<Result<Vec<u8>, LineError>> {
        let mut lines: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
        let unfinished = lines.pop().unwrap_or_default();
        let strip = |line: &[u8]| line.strip_suffix(b"\r").unwrap_or(line).to_vec();
        let lines = lines.into_iter().map(strip).filter(|line| !line.is_empty());
        let judge = |line: Vec<u8>| if line.len() > max { Err(LineError::TooLong { max }) } else { Ok(line) };
        let mut told: Vec<_> = lines.map(judge).collect();
        if unfinished.len() > max + 1 {
            told.push(Err(LineError::TooLong { max }));
        }
        told
    }

    fn decoded<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
        max: usize,
    ) -> Vec<Result<Vec<u8>, LineError>> {
        let mut decoder = LineDecoder::new(max);
        let mut lines = Vec::new();
        for piece in pieces {
            decoder.feed(piece);
            lines.extend(std::iter::from_fn(|| decoder.next_line()));
            assert!(decoder.unfinished() <= max + 1, "at most one unfinished line is kept");
        }
        lines
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_where_the_stream_is_cut(
            stream in proptest::collection::vec(prop_oneof![3 => Just(b'x'), 1 => Just(b'\n'), 1 => Just(b'\r')], 0..200),
            piece in 1_usize..20,
            max in 0_usize..12,
        ) {
            prop_assert_eq!(decoded(stream.chunks(piece), max), expected(&stream, max));
        }
    }

    #[test]
    fn a_line_without_end_costs_no_memory() {
        let mut decoder = LineDecoder::new(1000);
        let piece = [b'x'; 4096];
        let mut refused = 0;
        for _ in 0..4096 {
            decoder.feed(&piece);
            refused += std::iter::from_fn(|| decoder.next_line()).count();
            assert!(decoder.buffer.capacity() <= 2 * piece.len(), "{}", decoder.buffer.capacity());
        }
        assert_eq!(refused, 1, "a long line is refused once");
        decoder.feed(b"\nnext\n");
        assert_eq!(decoder.next_line(), Some(Ok(b"next".to_vec())));
    }
}
