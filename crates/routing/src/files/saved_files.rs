//! The files of saved tables that belong together.

use super::{FileError, SavedRouting};

/// Adds what a file's text says; the file's name is for its errors.
pub type AddFile = fn(SavedRouting, &str, &str) -> Result<SavedRouting, FileError>;

/// The names of files with saved tables. Those of a kind stand in the order of the tables that they belong to, or there are
/// none of that kind.
#[derive(Clone, Copy, Debug)]
pub struct SavedFiles<'a, P> {
    /// Tables: `opensm-lfts.dump`.
    pub lfts: &'a [P],
    /// Hops: `opensm-lid-matrix.dump`.
    pub lid_matrix: &'a [P],
    /// Lanes: `opensm-sl2vl.dump`.
    pub sl2vl: &'a [P],
    /// Service levels, as ibdmchk reads them.
    pub psl: &'a [P],
}

impl<P> SavedFiles<'_, P> {
    /// The first kind of which there are some files, but not one for each of the tables: its option, and how many.
    pub fn uneven(&self) -> Option<(&'static str, usize)> {
        let kinds = [("lid_matrix", self.lid_matrix), ("sl2vl", self.sl2vl), ("psl", self.psl)];
        let given = kinds.map(|(option, files)| (option, files.len()));
        given.into_iter().find(|(_, files)| *files != 0 && *files != self.lfts.len())
    }

    /// Reads all of them: `read` takes a file's name, what the files before it gave, and how to add the file's text.
    ///
    /// # Errors
    ///
    /// The first one of `read`.
    pub fn read<E>(
        &self,
        mut read: impl FnMut(&P, SavedRouting, AddFile) -> Result<SavedRouting, E>,
    ) -> Result<Vec<SavedRouting>, E> {
        let kinds: [(&[P], AddFile); 3] = [
            (self.lid_matrix, SavedRouting::with_lid_matrix),
            (self.sl2vl, SavedRouting::with_sl2vl),
            (self.psl, SavedRouting::with_psl),
        ];
        let mut tables = |nth: usize, lfts: &P| {
            let tables =
                read(lfts, SavedRouting::default(), |_, file, text| SavedRouting::parse_lfts(file, text))?;
            let mut belonging = kinds.iter().filter_map(|(files, add)| Some((files.get(nth)?, *add)));
            belonging.try_fold(tables, |saved, (path, add)| read(path, saved, add))
        };
        self.lfts.iter().enumerate().map(|(nth, lfts)| tables(nth, lfts)).collect()
    }
}
