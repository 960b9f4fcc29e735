//! Dependencies between crates. The table is the one of ARCHITECTURE.md; cargo's metadata is the judge.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use cargo_metadata::{DependencyKind, MetadataCommand, Package};

/// The libraries that one room alone may use, by the beginnings of their names.
const OF_ONE_ROOM: &[(&str, &str)] = &[("clap", "weft")];

/// A crate, the rooms it may use, and the libraries from outside that a pure room may use besides.
struct Room {
    name: &'static str,
    uses: &'static [&'static str],
    /// `Some`: the room is pure, and these are all the libraries it may use. `None`: it does I/O.
    pure: Option<&'static [&'static str]>,
}

const PURE: &[&str] = &["serde", "thiserror"];

const ROOMS: &[Room] = &[
    Room { name: "wire", uses: &[], pure: Some(&["schemars", "serde", "crc", "crc32fast"]) },
    Room { name: "machine", uses: &[], pure: Some(&["schemars", "serde"]) },
    Room { name: "fault", uses: &["wire"], pure: Some(&["schemars", "serde", "thiserror"]) },
    Room { name: "vocabulary", uses: &["wire", "machine"], pure: Some(&["schemars", "serde", "serde_json"]) },
    Room {
        name: "topology",
        uses: &["wire"],
        pure: Some(&["serde", "thiserror", "winnow", "rand", "rand_pcg"]),
    },
    Room { name: "picture", uses: &["wire", "topology"], pure: Some(&[]) },
    Room {
        name: "routing",
        uses: &["wire", "vocabulary", "topology"],
        pure: Some(&["serde", "thiserror", "rand", "rand_pcg", "rayon"]),
    },
    Room { name: "device", uses: &["wire", "machine"], pure: Some(PURE) },
    Room { name: "mgmt", uses: &["wire", "machine", "vocabulary"], pure: Some(PURE) },
    Room {
        name: "host",
        uses: &["wire", "machine", "vocabulary", "mgmt"],
        pure: Some(&["serde", "thiserror", "bincode", "crc32fast"]),
    },
    Room {
        name: "node",
        uses: &["wire", "machine", "fault", "vocabulary", "topology", "device", "host"],
        pure: Some(&["serde", "thiserror", "bincode", "crc32fast"]),
    },
    Room {
        name: "sm",
        uses: &["wire", "machine", "vocabulary", "mgmt", "topology", "routing"],
        pure: Some(PURE),
    },
    Room { name: "pm", uses: &["wire", "machine", "vocabulary", "mgmt", "topology"], pure: Some(PURE) },
    Room {
        name: "vm",
        uses: &["wire", "machine", "vocabulary", "mgmt", "topology"],
        pure: Some(&["serde", "serde_json", "thiserror", "crc32fast"]),
    },
    Room { name: "chaos", uses: &["wire", "machine", "fault", "topology"], pure: Some(PURE) },
    Room {
        name: "sim",
        uses: &[
            "wire", "machine", "fault", "topology", "routing", "device", "mgmt", "host", "node", "sm", "pm",
            "vm", "chaos",
        ],
        pure: Some(&["serde", "thiserror", "rand", "rand_pcg"]),
    },
    Room {
        name: "experiment",
        uses: &[
            "wire", "machine", "fault", "topology", "picture", "routing", "device", "host", "sm", "pm", "vm",
            "chaos",
        ],
        pure: Some(&["serde", "serde_json", "thiserror", "toml"]),
    },
    Room {
        name: "study",
        uses: &["wire", "topology", "picture", "routing", "sm", "experiment"],
        pure: Some(&["serde", "serde_json", "thiserror", "rand", "rand_pcg", "rayon"]),
    },
    Room {
        name: "control",
        uses: &["wire", "fault", "vocabulary"],
        pure: Some(&["schemars", "serde", "serde_json", "thiserror"]),
    },
    Room { name: "metrics", uses: &[], pure: None },
    Room { name: "page", uses: &["metrics"], pure: None },
    Room { name: "process", uses: &["wire", "control", "metrics"], pure: None },
    Room { name: "link", uses: &["wire", "machine", "process"], pure: None },
    Room { name: "umad", uses: &["wire"], pure: None },
    Room { name: "ibsim", uses: &["wire"], pure: None },
    Room { name: "umad-preload", uses: &["wire", "umad"], pure: None },
    Room { name: "exec", uses: &["wire", "topology", "routing", "control"], pure: None },
    Room { name: "agent-config", uses: &["wire", "device", "host", "link"], pure: None },
    Room {
        name: "agent",
        uses: &[
            "wire",
            "machine",
            "device",
            "host",
            "node",
            "control",
            "link",
            "umad",
            "metrics",
            "process",
            "agent-config",
        ],
        pure: None,
    },
    Room {
        name: "bundle",
        uses: &[
            "wire",
            "machine",
            "topology",
            "routing",
            "device",
            "host",
            "node",
            "sm",
            "pm",
            "vm",
            "control",
            "link",
            "umad",
            "metrics",
            "process",
            "agent-config",
        ],
        pure: None,
    },
    Room { name: "hub", uses: &["fault", "control", "process", "metrics"], pure: None },
    Room {
        name: "managers",
        uses: &[
            "wire",
            "machine",
            "topology",
            "routing",
            "mgmt",
            "sm",
            "pm",
            "vm",
            "control",
            "link",
            "umad",
            "ibsim",
            "metrics",
            "process",
            "exec",
            "agent-config",
            "agent",
            "bundle",
        ],
        pure: None,
    },
    Room { name: "deploy", uses: &["wire", "link", "bundle"], pure: None },
    Room {
        name: "lab",
        uses: &[
            "wire",
            "machine",
            "fault",
            "topology",
            "picture",
            "routing",
            "mgmt",
            "node",
            "sm",
            "control",
            "link",
            "umad",
            "process",
            "agent-config",
            "bundle",
            "managers",
            "deploy",
            "hub",
            "page",
        ],
        pure: None,
    },
    Room { name: "capture", uses: &["wire", "topology", "control", "process", "bundle", "lab"], pure: None },
    Room {
        name: "tools",
        uses: &[
            "wire", "topology", "mgmt", "control", "process", "umad", "ibsim", "bundle", "managers", "lab",
        ],
        pure: None,
    },
    Room {
        name: "perform",
        uses: &[
            "wire",
            "machine",
            "fault",
            "topology",
            "routing",
            "device",
            "mgmt",
            "host",
            "sm",
            "pm",
            "vm",
            "chaos",
            "sim",
            "experiment",
            "study",
            "control",
            "process",
            "link",
            "agent-config",
            "bundle",
            "managers",
            "lab",
            "page",
        ],
        pure: None,
    },
    Room {
        name: "weft",
        uses: &[
            "wire",
            "machine",
            "fault",
            "topology",
            "picture",
            "routing",
            "device",
            "mgmt",
            "node",
            "sm",
            "pm",
            "vm",
            "sim",
            "study",
            "control",
            "link",
            "umad",
            "ibsim",
            "process",
            "exec",
            "agent-config",
            "bundle",
            "managers",
            "deploy",
            "lab",
            "capture",
            "tools",
            "perform",
            "page",
        ],
        pure: None,
    },
    Room { name: "programs", uses: &["weft"], pure: None },
];

/// The crates whose sources may not name the world outside.
pub(crate) fn pure_rooms() -> impl Iterator<Item = &'static str> {
    ROOMS.iter().filter(|room| room.pure.is_some()).map(|room| room.name)
}

/// All crates of the table.
pub(crate) fn rooms() -> impl Iterator<Item = &'static str> {
    ROOMS.iter().map(|room| room.name)
}

/// Fails with every dependency that the table does not allow.
pub(crate) fn check() -> Result<()> {
    let metadata = MetadataCommand::new().no_deps().other_options(vec!["--locked".into()]).exec()?;
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for package in &metadata.packages {
        let name = package.name.trim_start_matches("weft-");
        let lies_in_crates = package.manifest_path.as_str().contains("/crates/");
        match ROOMS.iter().find(|room| room.name == name) {
            Some(room) => {
                seen.insert(name.to_owned());
                wrong.extend(forbidden(room, package));
            }
            None if lies_in_crates => wrong.push(format!("{name} stands in no row of the table")),
            None => {}
        }
    }
    wrong.extend(
        ROOMS
            .iter()
            .filter(|room| !seen.contains(room.name))
            .map(|room| format!("{} is not there", room.name)),
    );
    if wrong.is_empty() { Ok(()) } else { bail!("the walls are broken:\n  {}", wrong.join("\n  ")) }
}

fn forbidden(room: &Room, package: &Package) -> Vec<String> {
    let normal = package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
    normal
        .filter_map(|dependency| {
            let allowed = match (dependency.name.strip_prefix("weft-"), room.pure) {
                (Some(used), _) => room.uses.contains(&used),
                (None, Some(libraries)) => libraries.contains(&dependency.name.as_str()),
                (None, None) => is_free(room.name, &dependency.name),
            };
            (!allowed).then(|| format!("{} may not use {}", room.name, dependency.name))
        })
        .collect()
}

/// Whether a room that does I/O may use a library.
fn is_free(room: &str, library: &str) -> bool {
    OF_ONE_ROOM.iter().all(|(begin, owner)| room == *owner || !library.starts_with(begin))
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_the_command_line_reads_arguments() {
        assert!(super::is_free("weft", "clap") && super::is_free("weft", "clap_complete"));
        assert!(!super::is_free("hub", "clap") && !super::is_free("agent", "clap_complete"));
        assert!(super::is_free("hub", "tokio"));
    }

    #[test]
    fn nobody_reaches_through_a_wall() {
        super::check().unwrap();
    }

    #[test]
    fn a_table_row_names_rooms_that_stand_above_it() {
        for (i, room) in super::ROOMS.iter().enumerate() {
            for used in room.uses {
                let above = super::ROOMS[..i].iter().any(|other| other.name == *used);
                assert!(above, "{} uses {used}, which does not stand above it", room.name);
            }
        }
    }
}
