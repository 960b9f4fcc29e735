//! Tables of Markdown.

/// A table of Markdown being written. Cells are escaped.
#[derive(Clone, Debug)]
pub struct Table {
    text: String,
    columns: usize,
}

impl Table {
    /// A table with these headings.
    pub fn new(heads: &[&str]) -> Self {
        let mut table = Self { text: String::new(), columns: heads.len() };
        table.row(heads);
        table.text += &format!("|{}\n", "---|".repeat(heads.len()));
        table
    }

    /// The same with headings that have ` | ` between them.
    pub fn headed(heads: &str) -> Self {
        Self::new(&heads.split(" | ").collect::<Vec<_>>())
    }

    /// Adds a row; cells that are missing are empty.
    pub fn row<T: AsRef<str>>(&mut self, cells: &[T]) {
        self.text += &line((0..self.columns).map(|nth| cells.get(nth).map_or("", AsRef::as_ref)));
    }

    /// The text, with an empty line behind it.
    pub fn finish(self) -> String {
        self.text + "\n"
    }
}

/// One row.
pub(super) fn line<T: AsRef<str>>(cells: impl IntoIterator<Item = T>) -> String {
    let cells = cells.into_iter().map(|cell| format!(" {} |", escaped(cell.as_ref())));
    format!("|{}\n", cells.collect::<String>())
}

/// Text that Markdown takes as it is; lines become one.
pub(super) fn escaped(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '<' | '>' | '[' | ']' | '\\' => clean.extend(['\\', c]),
            '\n' | '\r' | '\t' => clean.push(' '),
            c if c.is_control() => {}
            c => clean.push(c),
        }
    }
    clean
}
