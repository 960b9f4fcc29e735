//! Files in which an agent keeps what its next life is to know.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes a file whole: half a file would be none.
pub(crate) fn write<T: Serialize>(file: &Path, content: &T) -> io::Result<()> {
    weft_process::replace(file, serde_json::to_string(content)?.as_bytes())
}

/// What a file keeps; nothing where there is none.
pub(crate) fn read<T: DeserializeOwned + Default>(file: &Path) -> io::Result<T> {
    match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        read => Ok(serde_json::from_slice(&read?)?),
    }
}
