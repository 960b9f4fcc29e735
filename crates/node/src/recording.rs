//! A recording of a node's inputs, which another node can be fed.
//!
//! ```text
//!   "weft-recording\n"  version  NodeOptions  name         the beginning
//!   length  Entry                                          one for each input, and the outputs that followed
//!   length  Entry::End                                     the end mark
//! ```
//!
//! Lengths are u32 little-endian, entries bincode. Of each output the entry has a checksum, so that a replay finds the
//! first one that differs. A recording without its end mark was cut off, as by a kill; what it has is still of use.

use serde::{Deserialize, Serialize};
use weft_machine::{Machine, Time, Timer};

use crate::{Input, Node, NodeOptions, NodeTimer, Output};

/// What a recording begins with.
const MAGIC: &[u8] = b"weft-recording\n";
/// Changes whenever what is written changes.
const VERSION: u16 = 1;
/// No entry is longer: the longest message of a MAD layer, and what is around it.
const ENTRY_BYTES_MAX: usize = 64 << 20;

const BINCODE: bincode::config::Configuration = bincode::config::standard();

/// What came before everything else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// Whose recording it is.
    pub name: String,
    /// How the node worked.
    pub options: NodeOptions,
}

/// One thing that happened to the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Entry {
    /// It was fed something, or its time had come.
    Fed {
        /// When.
        now: Time,
        /// What; `None` when its time had come.
        input: Option<Input>,
        /// A checksum of each output that followed.
        outputs: Vec<u32>,
    },
    /// The recording ends here.
    End,
}

/// Writes a recording. The driver takes the bytes and puts them where it wants.
#[derive(Debug)]
pub struct Recorder {
    bytes: Vec<u8>,
    /// The entry whose outputs are still taken.
    open: Option<Entry>,
}

impl Recorder {
    /// Begins a recording.
    pub fn new(name: &str, options: NodeOptions) -> Self {
        let mut recorder = Self { bytes: MAGIC.to_vec(), open: None };
        recorder.bytes.extend_from_slice(&VERSION.to_le_bytes());
        recorder.put(&Heading { name: name.to_owned(), options });
        recorder
    }

    /// The node is about to be fed.
    pub fn fed(&mut self, now: Time, input: &Input) {
        self.open(now, Some(input.clone()));
    }

    /// The node's time has come.
    pub fn woken(&mut self, now: Time) {
        self.open(now, None);
    }

    fn open(&mut self, now: Time, input: Option<Input>) {
        self.close();
        self.open = Some(Entry::Fed { now, input, outputs: Vec::new() });
    }

    /// The node said something.
    pub fn said(&mut self, output: &Output) {
        if let Some(Entry::Fed { outputs, .. }) = &mut self.open {
            outputs.push(checksum(output));
        }
    }

    /// The recording ends.
    pub fn end(&mut self) {
        self.close();
        self.put(&Entry::End);
    }

    /// What is to be written next.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// How much waits to be taken.
    pub fn waiting(&self) -> usize {
        self.bytes.len()
    }

    fn close(&mut self) {
        if let Some(entry) = self.open.take() {
            self.put(&entry);
        }
    }

    fn put(&mut self, what: &impl Serialize) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        // Writing to memory cannot fail, and all that is written can be.
        if bincode::serde::encode_into_std_write(what, &mut self.bytes, BINCODE).is_ok() {
            let length = u32::try_from(self.bytes.len() - at - 4).unwrap_or(u32::MAX);
            self.bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
        } else {
            self.bytes.truncate(at);
        }
    }
}

/// What is wrong with a recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// It does not begin as one.
    #[error("not a recording of weft")]
    NotOne,
    /// It was written by another version.
    #[error(
        "recorded in format {0}, this weft reads format {VERSION}; hint: replay it with the weft that recorded it"
    )]
    Version(u16),
    /// Bytes that mean nothing.
    #[error("damaged at byte {0}")]
    Damaged(usize),
}

/// Reads a recording.
#[derive(Debug)]
pub struct Recording<'a> {
    /// What came before everything else.
    pub heading: Heading,
    bytes: &'a [u8],
    at: usize,
    has_end: bool,
}

impl<'a> Recording<'a> {
    /// Reads the beginning.
    pub fn open(bytes: &'a [u8]) -> Result<Self, RecordingError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(RecordingError::NotOne)?;
        let (version, _) = rest.split_first_chunk().ok_or(RecordingError::NotOne)?;
        let version = u16::from_le_bytes(*version);
        if version != VERSION {
            return Err(RecordingError::Version(version));
        }
        let at = MAGIC.len() + 2;
        let heading = Heading { name: String::new(), options: NodeOptions::default() };
        let mut recording = Self { heading, bytes, at, has_end: false };
        recording.heading = recording.next_of()?.ok_or(RecordingError::Damaged(at))?;
        Ok(recording)
    }

    /// The next entry; `None` at the end mark, or where the recording was cut off.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, RecordingError> {
        if self.has_end {
            return Ok(None);
        }
        let entry = self.next_of()?;
        self.has_end = entry == Some(Entry::End);
        Ok(entry.filter(|_| !self.has_end))
    }

    /// Whether the end mark has been read.
    pub fn has_end(&self) -> bool {
        self.has_end
    }

    fn next_of<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, RecordingError> {
        let Some((length, rest)) = self.bytes.get(self.at..).and_then(<[u8]>::split_first_chunk) else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > ENTRY_BYTES_MAX {
            return Err(RecordingError::Damaged(self.at));
        }
        let Some(entry) = rest.get(..length) else { return Ok(None) };
        let read = bincode::serde::decode_from_slice(entry, BINCODE);
        let (what, used) = read.map_err(|_| RecordingError::Damaged(self.at))?;
        if used != length {
            return Err(RecordingError::Damaged(self.at));
        }
        self.at += 4 + length;
        Ok(Some(what))
    }
}

/// A replay's end.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// Inputs that the node was fed.
    pub inputs: u64,
    /// Outputs that were as recorded.
    pub outputs: u64,
    /// Whether the recording has its end mark.
    pub has_end: bool,
    /// The first output that is not as recorded.
    pub difference: Option<Box<Difference>>,
}

/// Where a replay differs from its recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The input's number, from 1.
    pub input_number: u64,
    /// When it was fed.
    pub now: Time,
    /// What it was; `None` when the node's time had come.
    pub input: Option<Input>,
    /// What the node was to be woken for before it was fed, and when.
    pub timer: Option<Timer<NodeTimer>>,
    /// The output's number among those that followed, from 1.
    pub output_number: usize,
    /// What the node says now; `None` when it says less than was recorded.
    pub output: Option<Output>,
    /// How many outputs were recorded.
    pub recorded: usize,
}

/// Feeds a node what was recorded, and stops at the first output that differs.
pub fn replay(recording: &mut Recording<'_>) -> Result<Replayed, RecordingError> {
    let mut node = Node::new(recording.heading.options);
    let mut replayed = Replayed { inputs: 0, outputs: 0, has_end: false, difference: None };
    while let Some(Entry::Fed { now, input, outputs }) = recording.next_entry()? {
        replayed.inputs += 1;
        let timer = node.next_timer();
        match input.clone() {
            Some(input) => node.handle_input(now, input),
            None => node.handle_timeout(now),
        }
        let said: Vec<Output> = std::iter::from_fn(|| node.poll_output()).collect();
        let as_recorded =
            said.iter().map(checksum).zip(&outputs).take_while(|(now, then)| now == *then).count();
        replayed.outputs += as_recorded as u64;
        if as_recorded < said.len().max(outputs.len()) {
            let output = said.into_iter().nth(as_recorded);
            let (input_number, output_number) = (replayed.inputs, as_recorded + 1);
            let recorded = outputs.len();
            let difference = Difference { input_number, now, input, timer, output_number, output, recorded };
            replayed.difference = Some(Box::new(difference));
            break;
        }
    }
    replayed.has_end = recording.has_end();
    Ok(replayed)
}

/// Tells outputs apart.
fn checksum(output: &Output) -> u32 {
    let mut bytes = Vec::new();
    let written = bincode::serde::encode_into_std_write(output, &mut bytes, BINCODE);
    debug_assert!(written.is_ok(), "memory takes everything");
    crc32fast::hash(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Request, RequestId};

    fn begin(number: u64) -> Input {
        Input::Request { id: RequestId(number), request: Box::new(Request::Begin) }
    }

    /// A node that is asked to begin three times, and its recording.
    fn recorded(change: impl Fn(u64, Output) -> Output) -> Vec<u8> {
        let options = NodeOptions::default();
        let (mut node, mut recorder) = (Node::new(options), Recorder::new("a0", options));
        for number in 0..3 {
            let now = Time::from_millis(number);
            recorder.fed(now, &begin(number));
            node.handle_input(now, begin(number));
            while let Some(output) = node.poll_output() {
                recorder.said(&change(number, output));
            }
            recorder.woken(now);
            node.handle_timeout(now);
        }
        recorder.end();
        recorder.take()
    }

    #[test]
    fn a_recording_replays_and_shows_an_altered_output() {
        let bytes = recorded(|_, output| output);
        let mut recording = Recording::open(&bytes).unwrap();
        assert_eq!(recording.heading.name, "a0");
        let replayed = replay(&mut recording).unwrap();
        assert_eq!(
            (replayed.inputs, replayed.outputs, replayed.has_end, replayed.difference),
            (6, 3, true, None)
        );

        let altered = recorded(|number, output| match (number, output) {
            (1, Output::Answer { outcome, .. }) => Output::Answer { id: RequestId(99), outcome },
            (_, output) => output,
        });
        let replayed = replay(&mut Recording::open(&altered).unwrap()).unwrap();
        let difference = replayed.difference.expect("one output is another");
        assert_eq!((difference.input_number, difference.output_number), (3, 1));
        assert_eq!(difference.input, Some(begin(1)));
        assert!(matches!(difference.output, Some(Output::Answer { id: RequestId(1), .. })));
    }

    #[test]
    fn a_recording_that_was_cut_off_replays_as_far_as_it_goes() {
        let bytes = recorded(|_, output| output);
        let begun = Recording::open(&bytes).unwrap().at;
        for end in begun..bytes.len() {
            let replayed = replay(&mut Recording::open(&bytes[..end]).unwrap()).unwrap();
            assert_eq!((replayed.has_end, replayed.difference), (false, None), "{end} bytes");
        }
    }

    #[test]
    fn nothing_that_is_read_stops_the_reader() {
        assert!(matches!(Recording::open(b"weft"), Err(RecordingError::NotOne)));
        let mut bytes = recorded(|_, output| output);
        for at in 0..bytes.len() {
            for change in [0x01, 0x80] {
                bytes[at] ^= change;
                if let Ok(mut recording) = Recording::open(&bytes) {
                    let _ = replay(&mut recording);
                }
                bytes[at] ^= change;
            }
        }
        bytes[MAGIC.len()] = 9;
        assert_eq!(Recording::open(&bytes).map(|_| ()), Err(RecordingError::Version(9)));
    }
}
