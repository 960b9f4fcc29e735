//! Lines of a screen, and how they are drawn.

/// How a line is drawn, where colours are wanted. What it says stands in its words too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    /// Of a table.
    Heading,
    /// A hot spot, or what has failed.
    Alarm,
    /// What waits, or stands still.
    Notice,
    /// What is over, or says nothing.
    Faint,
}

impl Style {
    /// The terminal's sequence for it (ECMA-48, SGR); none for plain text.
    pub(super) fn sequence(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Heading => Some("\x1b[1m"),
            Self::Alarm => Some("\x1b[31m"),
            Self::Notice => Some("\x1b[33m"),
            Self::Faint => Some("\x1b[2m"),
        }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) style: Style,
    pub(super) text: String,
}

impl Line {
    pub(super) fn new(style: Style, text: impl Into<String>) -> Self {
        Self { style, text: text.into() }
    }
}
