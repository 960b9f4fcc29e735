//! Reports of verbs: the JSON that `weft status`, `weft ps` and `weft check` print with `--json`.
//!
//! Each has a published schema with a version (`docs/schemas`). What names a node or port is a GUID in hexadecimal digits or an id as
//! a topology file has it, and units are in the names of fields.

pub mod check;
pub mod engine;
pub mod ps;
pub mod status;
