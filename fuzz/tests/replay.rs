//! Replays the corpus of every fuzz target, and the same inputs cut and damaged.

use std::fs;
use std::path::Path;

use weft_fuzz::TARGETS;

#[test]
fn the_corpus_holds() {
    for (name, target) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut replayed = 0;
        for entry in entries {
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
