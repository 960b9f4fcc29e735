//! Tapes: what was written is read, wherever a tape was cut off, and what is no tape is refused.

use std::io::Cursor;
use std::sync::Arc;

use serde_json::{Value, json};
use weft_page::merge::apply;
use weft_page::tape::{Recorder, Tape, TapeError};
use weft_page::{Counts, Film, Line, Mark, Registry, Stage, State, record};

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

fn state(at_ms: u64, lab: &str) -> State {
    let mut state = State::default();
    (state.head.at_ms, state.head.lab) = (at_ms, lab.to_owned());
    state
}

fn mark(at_ms: u64, text: &str) -> Mark {
    Mark { at_ms, kind: "fault".into(), text: text.into() }
}

/// What happens behind the last frame of a tape is on it, too: of a short tape that is all.
#[test]
fn a_short_tape_has_the_marks_of_its_end() {
    let stage = Stage::new(Counts::new(&Registry::new()));
    stage.show(state(1000, "a"), Vec::new());
    let mut bytes = Vec::new();
    let mut recorder = Recorder::begin(&mut bytes, "ring", 1000, u64::MAX).unwrap();
    let looks = std::cell::Cell::new(0);
    let is_full = record(&stage, &mut recorder, || {
        looks.set(looks.get() + 1);
        // Two at one moment, after the first key is on the tape.
        if looks.get() == 3 {
            stage.show(state(2000, "b"), vec![mark(2000, "one"), mark(2000, "two")]);
        }
        looks.get() > 5
    });
    assert!(!is_full.unwrap());
    let mut tape = open(&bytes).unwrap();
    let texts: Vec<String> = tape.span().marks.into_iter().map(|mark| mark.text).collect();
    assert_eq!(texts, ["one", "two"]);
    assert_eq!((&tape.at(1500).unwrap()["lab"], &tape.at(2000).unwrap()["lab"]), (&json!("a"), &json!("b")));
}

#[test]
fn a_film_has_each_state_that_it_was_shown() {
    let mut bytes = Vec::new();
    let mut film = Film::new(Recorder::begin(&mut bytes, "x", 0, u64::MAX).unwrap());
    // Longer than the last minutes of a live page, and faster than any reader.
    for second in 0..1200_u64 {
        let marks =
            if second % 100 == 7 { vec![mark(second * 1000, &second.to_string())] } else { Vec::new() };
        film.show(state(second * 1000, &second.to_string()), marks).unwrap();
    }
    let written = film.end().unwrap();
    assert_eq!(written, bytes.len() as u64);
    let mut tape = open(&bytes).unwrap();
    let span = tape.span();
    assert_eq!((span.from_ms, span.to_ms, span.marks.len()), (0, 1_199_000, 12));
    for second in [0, 1, 9, 10, 555, 1199] {
        assert_eq!(tape.at(second * 1000).unwrap()["lab"], second.to_string());
    }
}

/// Of a clock that was set back, what is shown next has the newest moment that there was.
#[test]
fn a_clock_set_back_makes_no_tape_unreadable() {
    let mut bytes = Vec::new();
    let mut film = Film::new(Recorder::begin(&mut bytes, "x", 0, u64::MAX).unwrap());
    for (at, lab) in [(50_000, "a"), (61_000, "b"), (1000, "c"), (2000, "d"), (70_000, "e"), (75_000, "f")] {
        film.show(state(at, lab), vec![mark(at, lab)]).unwrap();
    }
    film.end().unwrap();
    let mut tape = open(&bytes).unwrap();
    let shown = |tape: &mut Tape<Cursor<&[u8]>>, at| tape.at(at).unwrap()["lab"].as_str().map(str::to_owned);
    let at = [0, 50_000, 60_999, 61_000, 69_999, 70_000, 80_000];
    assert_eq!(at.map(|at| shown(&mut tape, at).unwrap()), ["a", "a", "a", "d", "d", "e", "f"]);
    assert_eq!((tape.span().to_ms, tape.span().marks.len()), (75_000, 4), "none before the beginning");
}

/// Names are data: a tape has them as they are, and a line's end in one of them ends no line.
#[test]
fn names_with_markup_are_kept_as_they_are() {
    use weft_page::state::{Flow, Number, Partition, Vm};
    let name = "<script>alert(1)</script>\n{\"at_ms\":1,\"frame\":{\"before\":9}}\n";
    let mut shown = state(1000, name);
    shown
        .partitions
        .insert(name.into(), Partition { name: name.into(), members: Number(2), ..Partition::default() });
    shown.vms.insert(name.into(), Vm { name: name.into(), ..Vm::default() });
    shown.flows.insert(name.into(), Flow { name: name.into(), ..Flow::default() });
    let mut bytes = Vec::new();
    let mut film = Film::new(Recorder::begin(&mut bytes, name, 0, u64::MAX).unwrap());
    film.show(shown, vec![mark(1000, name)]).unwrap();
    film.end().unwrap();
    let mut tape = open(&bytes).unwrap();
    assert_eq!((tape.head().lab.as_str(), tape.span().marks[0].text.as_str()), (name, name));
    let shown = tape.at(1000).unwrap();
    for table in ["partitions", "vms", "flows"] {
        assert_eq!(shown[table][name]["name"], name, "{table}");
    }
}
