//! The folder that holds all of a user's laboratories.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Context;

use super::front::Front;
use super::{LabFile, LabFolder, check_length, gone, is_own, private_folder, write};
use crate::failure::Failure;

/// What the folder of a laboratory that is being made is called, before it gets its name.
const UNFINISHED: &str = ".new-";
/// The same of a client of a hub's door.
const VISIT: &str = ".at-";

/// The folder that holds all of a user's laboratories.
#[derive(Clone, Debug)]
pub struct Base {
    path: PathBuf,
    front: Front,
}

impl Base {
    /// `$WEFT_HOME`, else `$XDG_RUNTIME_DIR/weft`, else `weft-UID` in the folder for temporary files.
    pub fn locate() -> Self {
        let from = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let path = from("WEFT_HOME")
            .or_else(|| from("XDG_RUNTIME_DIR").filter(|path| path.is_dir()).map(|path| path.join("weft")))
            .unwrap_or_else(|| {
                std::env::temp_dir().join(format!("weft-{}", rustix::process::getuid().as_raw()))
            });
        let path = std::path::absolute(&path).unwrap_or(path);
        Self { path, front: Front::default() }
    }

    /// The same for a front end, which hears of what is done to laboratories.
    pub fn with_front(self, front: Front) -> Self {
        Self { front, ..self }
    }

    /// The front end that handles them.
    pub fn front(&self) -> &Front {
        &self.front
    }

    /// All laboratories, in order of name.
    pub fn labs(&self) -> anyhow::Result<Vec<LabFolder>> {
        let mut labs = self.folders(|name| !name.starts_with('.'))?;
        labs.retain(LabFolder::is_marked);
        labs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(labs)
    }

    /// Laboratories that were never finished: their launcher makes them right now, or has died.
    pub fn unfinished(&self) -> anyhow::Result<Vec<LabFolder>> {
        self.folders(|name| name.starts_with(UNFINISHED))
    }

    /// The laboratory of that name, whether it exists or not.
    pub fn lab(&self, name: &str) -> anyhow::Result<LabFolder> {
        let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 64 || name.starts_with(['.', '-']) || !name.chars().all(good) {
            return Err(Failure::bad_input(format!("`{name}` cannot name a laboratory"))
                .hint("use up to 64 letters, digits, `-`, `_` and `.`, not beginning with `.` or `-`"));
        }
        let path = self.path.join(name);
        check_length(&path, "set WEFT_HOME to a folder with a shorter path")?;
        Ok(LabFolder { path, name: name.to_owned(), remote: None, front: self.front.clone() })
    }

    /// The laboratory meant by `--lab`, or the only one there is.
    pub fn select(&self, name: Option<&str>) -> anyhow::Result<LabFolder> {
        let labs = self.labs()?;
        let names = || labs.iter().map(|lab| lab.name.as_str()).collect::<Vec<_>>().join(", ");
        if let Some(name) = name {
            let lab = self.lab(name)?;
            if lab.exists()? {
                return Ok(lab);
            }
            let failure = Failure::new(format!("no laboratory `{name}` is running"));
            return Err(match labs.is_empty() {
                true => failure.hint("start one with `weft up FILE`"),
                false => failure.hint(format!("running: {}", names())),
            });
        }
        match labs.as_slice() {
            [lab] => lab.exists().map(|_| lab.clone()),
            [] => Err(Failure::new("no laboratory is running").hint("start one with `weft up FILE`")),
            _ => Err(Failure::new("several laboratories are running")
                .hint(format!("say which with --lab: {}", names()))),
        }
    }

    /// Makes the folder of a laboratory that does not exist yet, under a name that no one looks for.
    ///
    /// Its lock is held before it gets its real name, so no other launcher takes it for a leftover.
    pub fn begin(&self, name: &str) -> anyhow::Result<LabFolder> {
        private_folder(&self.path)?;
        let path = self.path.join(format!("{UNFINISHED}{name}-{}", std::process::id()));
        let folder = LabFolder { path, name: name.to_owned(), remote: None, front: self.front.clone() };
        folder.remove()?; // Of an earlier process with the same number.
        private_folder(&folder.path)?;
        write(&folder.place(LabFile::Mark), b"A laboratory of weft; `weft down` removes this folder.\n")?;
        private_folder(&folder.path.join("logs"))?;
        folder.make_run_folders()?;
        let locks = [
            LabFile::UpLock,
            LabFile::DownLock,
            LabFile::FaultLock,
            LabFile::HubLock,
            LabFile::PartitionsLock,
        ];
        for lock in locks {
            write(&folder.place(lock), b"")?;
        }
        Ok(folder)
    }

    /// Makes the folder of a client of a hub's door, and clears away those of clients that have died.
    pub fn visit(&self) -> anyhow::Result<PathBuf> {
        let mut left = self.folders(|name| name.starts_with(VISIT))?;
        left.retain(|left| !left.launcher_lives());
        left.iter().try_for_each(|left| gone(fs::remove_dir_all(&left.path)).context("cannot clear up"))?;
        let path = self.path.join(format!("{VISIT}{}", std::process::id()));
        gone(fs::remove_dir_all(&path)).with_context(|| format!("cannot remove {}", path.display()))?;
        private_folder(&path).map(|()| path)
    }

    fn folders(&self, wanted: impl Fn(&str) -> bool) -> anyhow::Result<Vec<LabFolder>> {
        if !is_own(&self.path)? {
            return Ok(Vec::new());
        }
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.with_context(|| format!("cannot list {}", self.path.display()))?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", self.path.display()))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if wanted(&name) && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.push(LabFolder { path: entry.path(), name, remote: None, front: self.front.clone() });
            }
        }
        Ok(found)
    }
}
