//! A bundle's files as the processes read them, from any bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;
use weft_agent_config::AgentPart;
use weft_wire::printable_json;

use crate::config::hub::HubConfig;
use crate::config::keys::Keys;
use crate::config::managers::{IbsimPart, PmPart, SmPart, VmmPart};
use crate::config::run::RunOptions;
use crate::part::Part;
use crate::record::LabRecord;

/// The first byte says which file the rest is. What is accepted is written so that it reads the same again.
///
/// # Panics
/// When it does not.
pub fn bundle(bytes: &[u8]) {
    let Some((which, rest)) = bytes.split_first() else { return };
    match which {
        b'r' => {
            if let Ok(record) = LabRecord::parse(rest) {
                let written = json(&record);
                let again = LabRecord::parse(printable_json(&written).as_bytes());
                assert_eq!(
                    again.map(|again| json(&again)).ok(),
                    Some(written),
                    "what was written can be read"
                );
            }
        }
        b'a' => file::<AgentPart>(rest),
        b's' => file::<SmPart>(rest),
        b'p' => file::<PmPart>(rest),
        b'v' => file::<VmmPart>(rest),
        b'i' => file::<IbsimPart>(rest),
        b'k' => file::<Keys>(rest),
        b'h' => file::<HubConfig>(rest),
        b'o' => file::<RunOptions>(rest),
        b't' => drop(Part::receive(rest, "a")),
        _ => {}
    }
}

fn file<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    let Ok(file) = serde_json::from_slice::<T>(bytes) else { return };
    let written = json(&file);
    let again: T = serde_json::from_str(&printable_json(&written)).expect("what was written can be read");
    assert_eq!(json(&again), written);
}

fn json(file: &impl Serialize) -> String {
    serde_json::to_string(file).expect("it was read from JSON")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_corpus_has_files_that_are_accepted() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/bundle");
        let read = |name: &str| std::fs::read(folder.join(name)).expect(name);
        assert!(LabRecord::parse(&read("record")[1..]).is_ok());
        assert!(serde_json::from_slice::<AgentPart>(&read("agent")[1..]).is_ok());
        assert!(serde_json::from_slice::<SmPart>(&read("sm")[1..]).is_ok());
        assert!(Part::receive(&read("archive")[1..], "a").is_ok());
    }
}
