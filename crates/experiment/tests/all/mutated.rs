//! Files that are damaged in any way are refused or read, and nothing panics.

use std::path::Path;

use weft_experiment::ExperimentFile;
use weft_topology::LoadError;

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

/// Words that mean something somewhere.
const WORDS: [&str; 28] = [
    "-1",
    "0",
    "1e308",
    "9223372036854775807",
    "nan",
    "true",
    "\"\"",
    "\"all\"",
    "[]",
    "{}",
    "[[",
    "]]",
    "=",
    "\n",
    "\"host-[1-99999999]\"",
    "\"alltoall\"",
    "\"A/0\"",
    "\"A/99\"",
    "[1, 0]",
    "1979-05-27",
    "0.000000001",
    "seeds = 1000\n",
    "é",
    "\u{0}",
    "\"",
    "'''",
    "[variants]\n",
    "a.b.c.d.e = 1\n",
];

fn damaged(text: &str, random: &mut Random) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(4) {
        let at = random.below(chars.len());
        let end = (at + random.below(40)).min(chars.len());
        match random.below(5) {
            0 => drop(chars.drain(at..end)),
            1 => drop(chars.splice(at..at, WORDS[random.below(WORDS.len())].chars())),
            2 => {
                let piece: Vec<char> = chars[at..end].to_vec();
                let to = random.below(chars.len());
                drop(chars.splice(to..to, piece));
            }
            3 => {
                // A whole value goes for another.
                let line: Vec<char> = chars[at..].iter().copied().take_while(|c| *c != '\n').collect();
                if let Some(equals) = line.iter().position(|c| *c == '=') {
                    let value = at + equals + 1..at + line.len();
                    drop(chars.splice(value, WORDS[random.below(WORDS.len())].chars()));
                }
            }
            _ => {
                if let Some(c) = chars.get_mut(at) {
                    *c = char::from(random.below(128) as u8);
                }
            }
        }
    }
    chars.into_iter().collect()
}

fn load(path: &str, from: &str) -> Result<String, LoadError> {
    let beside = Path::new(from).parent().unwrap_or(Path::new("")).join(path);
    std::fs::read_to_string(&beside).map_err(LoadError::new)
}

#[test]
fn damaged_files_do_no_harm() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let small = [
        "dftree-2.toml",
        "vftree-4b.toml",
        "lash.toml",
        "deadlock.toml",
        "beff.toml",
        "management-lane.toml",
    ];
    let seeds = match std::env::var("WEFT_SEED") {
        Ok(seed) => vec![seed.parse().expect("WEFT_SEED is a number")],
        Err(_) => (1..=250u64).collect(),
    };
    let mut refused = 0;
    for seed in &seeds {
        for name in small {
            let path = folder.join(name);
            let text = std::fs::read_to_string(&path).expect("the file is there");
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            let text = damaged(&text, &mut random);
            let outcome = std::panic::catch_unwind(|| {
                let file = ExperimentFile::parse(&path.display().to_string(), &text)?;
                file.runs().first().map_or(Ok(()), |run| file.plan(run, &mut load).map(drop))
            });
            let Ok(outcome) = outcome else { panic!("{name} with WEFT_SEED={seed}") };
            if let Err(error) = outcome {
                assert!(error.line >= 1 && error.column >= 1 && !error.message.is_empty(), "{error}");
                assert!(
                    error.line <= text.matches('\n').count() + 1,
                    "{name} with WEFT_SEED={seed}: {error}"
                );
                refused += 1;
            }
        }
    }
    // Most damage shows; were nothing refused, nothing would have been tested.
    assert!(seeds.len() == 1 || refused > seeds.len() * 3, "{refused}");
}

#[test]
fn deep_and_long_files_are_refused() {
    let deep = format!("a = {}1{}", "[".repeat(50_000), "]".repeat(50_000));
    let dotted = format!("{}x = 1", "a.".repeat(100_000));
    let tables = format!("[{}x]\n", "a.".repeat(79)).repeat(2);
    for text in [deep, dotted, tables, " ".repeat((1 << 20) + 1), String::new()] {
        assert!(ExperimentFile::parse("x", &text).is_err());
    }
}
