//! Terminals: control sequences, characters beyond ASCII, and the width of a text.

use std::ffi::OsString;
use std::os::fd::AsFd;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Whether the terminal obeys no control sequences, by what every program goes by.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Whether the locale's characters are those of UTF-8. Without a locale there is only ASCII.
pub(crate) fn shows_utf8() -> bool {
    is_utf8(["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var_os))
}

/// The first variable with a value decides.
fn is_utf8(variables: [Option<OsString>; 3]) -> bool {
    let decides = variables.into_iter().flatten().find(|value| !value.is_empty());
    let locale = decides.map(|value| value.to_string_lossy().to_lowercase());
    locale.is_some_and(|locale| locale.contains("utf-8") || locale.contains("utf8"))
}

/// Columns of a terminal; none where it is no terminal, or does not say.
pub(crate) fn columns(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Columns that a text takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// As much of the beginning of a text as fits into this many columns.
pub(crate) fn cut(text: &str, columns: usize) -> &str {
    let mut left = columns;
    let end = text.char_indices().find(|(_, char)| {
        let width = char.width().unwrap_or(0);
        let fits = width <= left;
        left = left.saturating_sub(width);
        !fits
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// Lines broken between words, so that they fit into this many columns; a longer word stays whole.
pub(crate) fn wrap(text: &str, columns: usize) -> String {
    let mut wrapped = String::new();
    for line in text.lines() {
        let mut used = 0;
        for word in line.split(' ') {
            if used > 0 && used + 1 + width(word) > columns {
                wrapped.push('\n');
                used = 0;
            } else if used > 0 {
                wrapped.push(' ');
                used += 1;
            }
            wrapped.push_str(word);
            used += width(word);
        }
        wrapped.push('\n');
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_of_the_locale_decides() {
        let utf8 =
            |all: &str, ctype: &str, lang: &str| is_utf8([all, ctype, lang].map(|value| Some(value.into())));
        assert!(utf8("", "", "en_GB.UTF-8") && utf8("C.utf8", "", "") && utf8("", "C.UTF-8", "C"));
        assert!(!utf8("C", "en_GB.UTF-8", "en_GB.UTF-8") && !utf8("", "POSIX", "C.UTF-8"));
        assert!(!is_utf8([None, None, None]));
    }

    #[test]
    fn wide_characters_are_cut_whole() {
        assert_eq!((cut("leaf-1", 4), cut("leaf", 4), cut("leaf", 9)), ("leaf", "leaf", "leaf"));
        // Each of these takes two columns; an accent that stands alone takes none.
        assert_eq!((cut("機織り", 5), width("機織り"), cut("e\u{301}a", 1)), ("機織", 6, "e\u{301}"));
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("one two three\n\nfour", 8), "one two\nthree\n\nfour\n");
        assert_eq!(wrap("a-long-word b", 4), "a-long-word\nb\n");
    }
}
