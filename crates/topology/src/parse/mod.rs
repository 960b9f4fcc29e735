//! The reader of `ibnetdiscover` text, in every form that ibsim takes it.
//!
//! This reader stops at what ibsim would skip: a misspelt keyword that silently drops a node is
//! found hours later. What it reads beyond ibsim: a cable that only one of its ends lists, a name before the line
//! that gives it, the chassis headings of `ibnetdiscover -g`, a byte order mark, a shell's prompt, and the lists that
//! `ibnetdiscover -p` and `iblinkinfo -l` print.

mod at;
mod comment;
mod draft;
mod error;
mod line;
mod list;
mod port;
mod reader;
mod resolve;
mod settings;

pub use error::{ParseError, Position, Problem};
pub use reader::is_tool_message;
pub(crate) use settings::guid_in_id;

use std::fmt;

use crate::Fabric;

/// Gives the text of the file that an `include` line names: called with that name and with the name of the
/// including file, so that it can resolve relative names.
pub type Loader<'a> = dyn FnMut(&str, &str) -> Result<String, LoadError> + 'a;

/// Why a file that another names cannot be read, for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LoadError(String);

impl LoadError {
    /// For this reason.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

/// Reads a fabric from text. `file` is what errors call it. A file that includes others is refused; see
/// [`parse_with`].
pub fn parse(file: &str, text: &str) -> Result<Fabric, ParseError> {
    parse_with(file, text, &mut |_, _| Err(LoadError::new("other files cannot be read from here")))
}

/// Reads a fabric from text that may include other files, which `load` gives.
pub fn parse_with(file: &str, text: &str, load: &mut Loader<'_>) -> Result<Fabric, ParseError> {
    if let Some(form) = list::Form::of(text) {
        return resolve::resolve(list::read(form, file, text)?);
    }
    let mut reader = reader::Reader::new(load);
    reader.read_file(file, text)?;
    let draft = reader.finish(file, text)?;
    resolve::resolve(draft)
}

/// Reads a fabric from bytes, which should be UTF-8, and that may include other files, which `load` gives.
pub fn parse_bytes(file: &str, bytes: &[u8], load: &mut Loader<'_>) -> Result<Fabric, ParseError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse_with(file, text, load),
        Err(error) => {
            let wide = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
            let (good, bad) = bytes.split_at(error.valid_up_to());
            let good = String::from_utf8_lossy(good);
            let line_start = good.rfind('\n').map_or(0, |at| at + 1);
            Err(ParseError {
                file: file.to_owned(),
                line: good.matches('\n').count() + 1,
                column: good[line_start..].chars().count() + 1,
                text: bad.iter().take(4).map(|byte| format!("\\x{byte:02x}")).collect(),
                problem: Box::new(Problem::NotUtf8),
                hint: wide.then(|| format!("`iconv -f UTF-16 -t UTF-8 {file}` makes it that")),
            })
        }
    }
}
