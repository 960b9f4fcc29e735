//! Reading topology files, and saying what is wrong with them.

use std::path::Path;

use weft_routing::files::parse_subnet;
use weft_topology::{Fabric, LoadError};

use crate::failure::Failure;

/// Reads a topology file and what it includes, or an `opensm-subnet.lst` or `ibdiagnet2.lst`. What is wrong with it is the user's: exit code 2.
pub fn load(path: &Path) -> anyhow::Result<Fabric> {
    let name = path.display().to_string();
    let bytes = crate::input::read(path).map_err(|error| {
        Failure::bad_input(format!("cannot read {name}: {error}"))
            .hint("`weft topo gen` makes topology files; `ibnetdiscover` prints them")
    })?;
    let unmarked = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    // No line of a topology file begins like that; ibdiagnet puts a head before it.
    let is_list = |line: &[u8]| [&b"{ CA"[..], b"{ SW", b"{ Rt"].iter().any(|start| line.starts_with(start));
    if unmarked.split(|byte| *byte == b'\n').any(is_list) {
        // OpenSM's opensm-subnet.lst or ibdiagnet2.lst. What is no UTF-8 there can only be in a description.
        let parsed = parse_subnet(&name, &String::from_utf8_lossy(unmarked));
        return parsed.map_err(|error| Failure::bad_input(error.to_string()).into());
    }
    let mut include = |included: &str, from: &str| {
        let beside = Path::new(from).parent().unwrap_or(Path::new("")).join(included);
        crate::input::read_to_string(&beside).map_err(LoadError::new)
    };
    let parsed = weft_topology::parse_bytes(&name, &bytes, &mut include);
    let fabric = parsed.map_err(|mut error| {
        let hint = error.hint.take();
        Failure::bad_input(error.to_string()).hint_if_any(hint)
    })?;
    if fabric.nodes().is_empty() {
        return Err(Failure::bad_input(format!("{name} holds no nodes"))
            .hint("nodes begin with `Switch` or `Ca`, as `ibnetdiscover` prints them"));
    }
    Ok(fabric)
}
