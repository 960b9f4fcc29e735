//! Replays the corpus of every fuzz target, and the same inputs cut and damaged.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;
use weft_fuzz::TARGETS;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Those that are replayed.
fn targets() -> BTreeSet<String> {
    TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// The entries of a folder of this package, without their extensions.
fn stems(folder: &str) -> BTreeSet<String> {
    let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    fs::read_dir(here().join(folder)).unwrap().map(|entry| stem(entry.unwrap().path())).collect()
}

#[test]
fn the_corpus_holds() {
    for (name, target) in TARGETS {
        let folder = here().join("corpus").join(name);
        let mut replayed = 0;
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            target(&bytes);
            for cut in 0..bytes.len().min(600) {
                target(&bytes[..cut]);
                let mut damaged = bytes.clone();
                damaged[cut] ^= 1 << (cut % 8);
                target(&damaged);
            }
            replayed += 1;
        }
        assert!(replayed >= 2, "{name} has a corpus of {replayed}");
    }
}

// A target that one of the lists lacks would be fuzzed but not replayed, or the other way round.

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    assert_eq!(stems("corpus"), targets());
}

#[test]
fn every_target_has_a_program_that_feeds_it_and_no_other() {
    assert_eq!(stems("fuzz_targets"), targets());
    let metadata = MetadataCommand::new().current_dir(here()).no_deps().exec().unwrap();
    let package = metadata.packages.iter().find(|package| package.name == "weft-fuzz").unwrap();
    let mut programs = BTreeSet::new();
    for program in package.targets.iter().filter(|target| target.is_bin()) {
        let path = here().join("fuzz_targets").join(format!("{}.rs", program.name));
        assert_eq!(program.src_path.as_std_path(), path);
        let source = fs::read_to_string(&path).unwrap();
        let call = format!("weft_fuzz::{}(bytes)", program.name);
        assert!(source.contains(&call), "{} does not call {call}", path.display());
        programs.insert(program.name.clone());
    }
    assert_eq!(programs, targets());
}
