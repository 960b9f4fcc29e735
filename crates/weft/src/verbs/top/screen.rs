//! The terminal: another screen for as long as this lives, and pictures drawn over each other.

use std::io::stdout;

use crate::output::print;

/// Another screen without a cursor, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// To the first place; what follows on this line, and below it, is cleared as it is drawn over.
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// A terminal that shows pictures.
pub(super) struct Screen(());

impl Screen {
    pub(super) fn enter() -> anyhow::Result<Self> {
        print(ENTER)?;
        Ok(Self(()))
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> (usize, usize) {
        let size = rustix::termios::tcgetwinsize(stdout()).ok();
        let size = size.map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        size.filter(|(columns, rows)| *columns > 0 && *rows > 0).unwrap_or((80, 24))
    }

    /// Draws over what is there, in one write, so that nothing flickers.
    pub(super) fn draw(&self, text: &str, columns: usize, rows: usize) -> anyhow::Result<()> {
        print(&frame(text, columns, rows))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Whatever ended us, the terminal is the user's.
        let _ = print(LEAVE);
    }
}

fn frame(text: &str, columns: usize, rows: usize) -> String {
    let mut frame = HOME.to_owned();
    for (at, line) in text.lines().take(rows).enumerate() {
        if at > 0 {
            frame.push_str("\r\n");
        }
        frame.extend(line.chars().take(columns));
        frame.push_str(CLEAR_LINE);
    }
    frame + CLEAR_BELOW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_fits_its_screen() {
        let drawn = frame("one\ntwo three\nfour\n", 5, 2);
        assert_eq!(drawn, "\x1b[Hone\x1b[K\r\ntwo t\x1b[K\x1b[J");
    }
}
