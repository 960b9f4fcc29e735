//! Tapes: what was written is read, wherever a tape was cut off, and what is no tape is refused.

use std::io::Cursor;
use std::sync::Arc;

use serde_json::{Value, json};
use weft_page::merge::apply;
use weft_page::tape::{Recorder, Tape, TapeError};
use weft_page::{Line, Mark};

fn line(at_ms: u64, member: &str, value: &Value) -> Line {
    let json: Arc<str> = json!({"at_ms": at_ms, member: value}).to_string().into();
    Line { at_ms, is_key: member == "key", json }
}

/// The state at each moment, as it is made without a tape.
struct Model(Vec<(u64, Value)>);

impl Model {
    fn at(&self, ms: u64) -> &Value {
        let behind = self.0.partition_point(|(at, _)| *at <= ms).max(1);
        &self.0[behind - 1].1
    }
}

/// A tape of `seconds` with a frame every ten, and what it shows.
fn tape(seconds: u64) -> (Vec<u8>, Model) {
    let (mut bytes, mut model, mut state) = (Vec::new(), Vec::new(), json!({"n": 0, "rows": {}}));
    let mut recorder = Recorder::begin(&mut bytes, "x5", 1000, u64::MAX).unwrap();
    recorder.push(&line(500, "patch", &json!({"n": 9}))).unwrap();
    for second in 0..seconds {
        let at = 1000 + second * 1000;
        let row = (second % 7).to_string();
        let fake = "\n{\"at_ms\":1,\"frame\":{\"before\":3}}\n";
        let value = if second % 5 == 0 { Value::Null } else { json!({"s": second, "text": fake}) };
        let patch = json!({"n": second, "rows": {row: value}});
        apply(&mut state, &patch);
        if second % 10 == 0 {
            recorder.mark([Mark { at_ms: at, kind: "fault".into(), text: format!("at {second}") }]);
            recorder.push(&line(at, "key", &state)).unwrap();
        } else {
            recorder.push(&line(at, "patch", &patch)).unwrap();
        }
        model.push((at, state.clone()));
    }
    recorder.flush().unwrap();
    (bytes, Model(model))
}

fn open(bytes: &[u8]) -> Result<Tape<Cursor<&[u8]>>, TapeError> {
    Tape::open(Cursor::new(bytes))
}

#[test]
fn seeking_is_the_same_as_playing_from_the_beginning() {
    let (bytes, model) = tape(95);
    let mut tape = open(&bytes).unwrap();
    let span = tape.span();
    assert_eq!((span.from_ms, span.to_ms, span.live, span.marks.len()), (1000, 95_000, false, 10));
    assert_eq!((tape.head().lab.as_str(), span.marks[3].text.as_str()), ("x5", "at 30"));
    for ms in (0..97_000).step_by(333) {
        assert_eq!(&tape.at(ms).unwrap(), model.at(ms), "at {ms}");
    }
    let (mut state, mut play) = tape.play(12_400, 61_000).unwrap();
    assert_eq!(&state, model.at(12_400));
    loop {
        let lines = tape.more(&mut play, 100).unwrap();
        if lines.is_empty() {
            break;
        }
        for line in String::from_utf8(lines).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            assert!(line["frame"].is_null() && line["at_ms"].as_u64().unwrap() <= 61_000);
            match line.get("key") {
                Some(key) => state = key.clone(),
                None => apply(&mut state, &line["patch"]),
            }
        }
    }
    assert_eq!(&state, model.at(61_000));
}

#[test]
fn a_tape_may_be_cut_off_anywhere() {
    let (bytes, model) = tape(33);
    let mut opened = 0;
    for length in 0..=bytes.len() {
        match open(&bytes[..length]) {
            Ok(mut tape) => {
                opened += 1;
                let to_ms = tape.span().to_ms;
                assert_eq!(&tape.at(u64::MAX).unwrap(), model.at(to_ms), "cut at {length}");
            }
            Err(TapeError::NoTape | TapeError::Empty) => assert!(length < 600, "cut at {length}"),
            Err(error) => panic!("cut at {length}: {error}"),
        }
    }
    assert!(opened > bytes.len() / 2, "{opened} of {}", bytes.len());
}

#[test]
fn what_is_no_tape_is_refused_by_name() {
    let says = |bytes: &[u8]| open(bytes).map(drop).unwrap_err().to_string();
    for other in [&b""[..], b"\x7fELF\n", b"{}\n", b"{\"tape\":\"1\"}\n", &[b'x'; 1 << 20]] {
        assert!(says(other).contains("no tape"), "{}", says(other));
    }
    assert!(says(b"{\"tape\":2}\n{\"at_ms\":1,\"key\":{}}\n").contains("version 2"));
    assert!(says(b"{\"tape\":1}\n").contains("no state"));
    let (bytes, _) = tape(25);
    let text = String::from_utf8(bytes).unwrap();
    // A chain that leads on, or into the middle of a line.
    for before in ["999999", "7"] {
        let last = text.rfind("\"before\":").unwrap() + 9;
        let end = last + text[last..].find([',', '}']).unwrap();
        let bent = format!("{}{before}{}", &text[..last], &text[end..]);
        assert!(matches!(open(bent.as_bytes()), Err(TapeError::Damaged(_))), "before {before}");
    }
}

#[test]
fn a_damaged_line_is_named_and_others_are_read() {
    let (bytes, model) = tape(40);
    let text = String::from_utf8(bytes).unwrap();
    let at = text.find("{\"at_ms\":15000").unwrap();
    let bent = format!("{}#{}", &text[..at], &text[at + 1..]);
    let mut tape = open(bent.as_bytes()).unwrap();
    assert_eq!(&tape.at(12_000).unwrap(), model.at(12_000));
    assert!(matches!(tape.at(17_000), Err(TapeError::Damaged(place)) if place == at as u64));
    assert_eq!(&tape.at(25_000).unwrap(), model.at(25_000));
}

#[test]
fn a_line_without_an_end_takes_no_memory() {
    let (mut bytes, _) = tape(12);
    let good = bytes.len();
    bytes.extend_from_slice(b"{\"at_ms\":99000,\"patch\":{\"x\":\"");
    bytes.resize(good + (65 << 20), b'x');
    assert!(matches!(open(&bytes), Err(TapeError::TooLong(_))));
}

#[test]
fn a_tape_has_a_bound() {
    let (mut bytes, key) = (Vec::new(), json!({"a": "b".repeat(100)}));
    let mut recorder = Recorder::begin(&mut bytes, "x5", 0, 2000).unwrap();
    let mut written = 0;
    let full = loop {
        match recorder.push(&line(written, "key", &key)) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, TapeError::Full(2000)) && written > 5);
    assert!(recorder.written() <= 2000);
    assert_eq!(open(&bytes).unwrap().span().to_ms, written - 1);
}

/// Five gigabytes, of which the most are a hole: a tape that were read as a whole would take minutes.
#[test]
fn a_large_tape_is_opened_by_its_frames() {
    use std::io::{Seek, SeekFrom, Write};
    let mut file = tempfile::tempfile().unwrap();
    let (bytes, _) = tape(5);
    file.write_all(&bytes).unwrap();
    let first = String::from_utf8(bytes).unwrap().find("{\"at_ms\":1000,\"frame\"").unwrap();
    file.seek(SeekFrom::Start(5 << 30)).unwrap();
    let frame = json!({"frame": {"before": first, "marks": []}});
    let frame = frame.to_string().replacen('{', "{\"at_ms\":50000,", 1);
    write!(file, "\n{frame}\n{}\n", json!({"at_ms": 50_000, "key": {"n": 50}})).unwrap();
    let mut tape = Tape::open(file).unwrap();
    assert_eq!((tape.span().from_ms, tape.span().to_ms), (1000, 50_000));
    assert_eq!(tape.at(60_000).unwrap(), json!({"n": 50}));
}
