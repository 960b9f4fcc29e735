//! The terminal while `top` has it: another screen, keys without echo, and everything as it was afterwards.

use std::io::{ErrorKind, IsTerminal as _, Write as _, stdin, stdout};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use weft_lab::signals::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH, Signals};
use weft_process::poll_for;
use weft_wire::Printable;

use super::line::Line;
use crate::cli::pm::View;
use crate::output::color_on_stdout;
use crate::terminal::cut;

/// Another screen without a cursor, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// To the first place; what follows on this line, and below it, is cleared as it is drawn over.
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";
/// No colour any more.
const PLAIN: &str = "\x1b[0m";

/// What stands in the last row.
const KEYS: &str = "q: quit  s: sort  p: ports  f: flows  v: machines";

/// Why a screen no longer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// The time has passed.
    Due,
    /// The terminal has another size, or shows other things: draw again.
    Stale,
    /// The user wants no more of it.
    Quit,
    /// A key was pressed that is for the picture.
    Key(Key),
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// The next order of rows.
    Sort,
    /// Other rows.
    Show(View),
}

/// A terminal that shows pictures.
pub(super) struct Screen {
    /// What the keyboard's terminal was set to; `None` where input is no terminal and not read.
    before: Option<Termios>,
    end: Signals,
    suspend: Signals,
    resize: Signals,
}

impl Screen {
    pub(super) fn enter() -> anyhow::Result<Self> {
        // Watched first: whatever ends us finds a way back.
        let end = Signals::watch(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT])?;
        let suspend = Signals::watch(&[SIGTSTP])?;
        let resize = Signals::watch(&[SIGWINCH])?;
        let mut screen = Self { before: None, end, suspend, resize };
        screen.take()?;
        Ok(screen)
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> (usize, usize) {
        let size = rustix::termios::tcgetwinsize(stdout()).ok();
        let size = size.map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        size.filter(|(columns, rows)| *columns > 0 && *rows > 0).unwrap_or((80, 24))
    }

    /// Draws over what is there, in one write, so that nothing flickers.
    pub(super) fn draw(&self, lines: &[Line], columns: usize, rows: usize) -> anyhow::Result<()> {
        let keys = if self.before.is_some() { KEYS } else { "Ctrl-C: quit" };
        obey(&frame(lines, keys, columns, rows, color_on_stdout())).context("cannot write to the terminal")
    }

    /// Waits for a key, a signal, or the end of this time.
    pub(super) fn wait(&mut self, time: Duration) -> anyhow::Result<Woken> {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let keyboard = stdin();
            let mut fds =
                [&self.end, &self.suspend, &self.resize].map(|fd| PollFd::new(fd, PollFlags::IN)).to_vec();
            if self.before.is_some() {
                fds.push(PollFd::new(&keyboard, PollFlags::IN));
            }
            poll_for(&mut fds, Some(left))?;
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            let pressed = if ready.get(3) == Some(&true) { pressed() } else { None };
            if ready[0] || pressed == Some(Woken::Quit) {
                return Ok(Woken::Quit);
            }
            if let Some(key) = pressed {
                return Ok(key);
            }
            if self.suspend.arrived() {
                self.rest()?;
                return Ok(Woken::Stale);
            }
            if self.resize.arrived() {
                return Ok(Woken::Stale);
            }
            if left.is_zero() {
                return Ok(Woken::Due);
            }
        }
    }

    /// Ctrl-Z: the shell has its terminal as it was, until it lets us go on.
    fn rest(&mut self) -> anyhow::Result<()> {
        self.leave();
        kill_process(getpid(), Signal::STOP).context("cannot stop")?;
        self.take()
    }

    /// Takes the terminal: keys come at once and are not shown, while Ctrl-C and Ctrl-Z stay signals.
    fn take(&mut self) -> anyhow::Result<()> {
        if stdin().is_terminal() {
            let before = tcgetattr(stdin()).context("cannot ask the terminal for its modes")?;
            let mut own = before.clone();
            own.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            own.special_codes[SpecialCodeIndex::VMIN] = 1;
            own.special_codes[SpecialCodeIndex::VTIME] = 0;
            // Kept before it is set: whoever drops us finds the way back.
            self.before = Some(before);
            tcsetattr(stdin(), OptionalActions::Now, &own).context("cannot set the terminal's modes")?;
        }
        obey(ENTER).context("cannot write to the terminal")
    }

    /// Gives the terminal back; what it no longer takes is lost with it.
    fn leave(&mut self) {
        let _ = obey(LEAVE);
        if let Some(before) = self.before.take() {
            // Keys that were typed ahead of the end are not for the shell.
            let _ = tcsetattr(stdin(), OptionalActions::Flush, &before);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}

/// What the next key asks for: the end, where there is no keyboard any more.
fn pressed() -> Option<Woken> {
    let mut key = [0; 1];
    match rustix::io::read(stdin(), &mut key) {
        Ok(0) => Some(Woken::Quit),
        Ok(_) => meaning(key[0]),
        Err(error) => {
            let is_over = !matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock);
            is_over.then_some(Woken::Quit)
        }
    }
}

fn meaning(key: u8) -> Option<Woken> {
    match key.to_ascii_lowercase() {
        b'q' => Some(Woken::Quit),
        b's' => Some(Woken::Key(Key::Sort)),
        b'p' => Some(Woken::Key(Key::Show(View::Ports))),
        b'f' => Some(Woken::Key(Key::Show(View::Flows))),
        b'v' => Some(Woken::Key(Key::Show(View::Machines))),
        _ => None,
    }
}

/// Writes what the terminal is to obey. All else that weft prints goes through `output`, which escapes such.
fn obey(sequences: &str) -> std::io::Result<()> {
    let mut stdout = stdout().lock();
    stdout.write_all(sequences.as_bytes())?;
    stdout.flush()
}

/// A picture above its last row. Nothing in the text itself is obeyed: names come from the network.
fn frame(lines: &[Line], keys: &str, columns: usize, rows: usize, has_colors: bool) -> String {
    let mut frame = HOME.to_owned();
    for Line { style, text } in lines.iter().take(rows.saturating_sub(1)) {
        let text = Printable(text).to_string();
        let color = style.sequence().filter(|_| has_colors);
        frame.push_str(color.unwrap_or_default());
        frame.push_str(cut(&text, columns));
        frame.push_str(if color.is_some() { PLAIN } else { "" });
        frame.push_str(CLEAR_LINE);
        frame.push_str("\r\n");
    }
    frame.push_str(CLEAR_BELOW);
    frame + &format!("\x1b[{rows};1H") + cut(keys, columns)
}

#[cfg(test)]
mod tests {
    use super::super::line::Style;
    use super::*;

    #[test]
    fn a_frame_fits_its_screen_and_obeys_no_name() {
        let lines = [(Style::Alarm, "one"), (Style::Plain, "two \x1b[31mthree"), (Style::Plain, "four")];
        let lines = lines.map(|(style, text)| Line::new(style, text));
        let drawn = frame(&lines, "keys", 9, 3, false);
        assert_eq!(drawn, "\x1b[Hone\x1b[K\r\ntwo \\u{1b\x1b[K\r\n\x1b[J\x1b[3;1Hkeys");
        let drawn = frame(&lines, "keys", 9, 3, true);
        assert!(drawn.starts_with("\x1b[H\x1b[31mone\x1b[0m\x1b[K\r\ntwo"), "{drawn:?}");
    }

    #[test]
    fn the_end_goes_before_all_other_keys() {
        assert_eq!(meaning(b'q'), Some(Woken::Quit));
        assert_eq!(meaning(b'F'), Some(Woken::Key(Key::Show(View::Flows))));
        assert_eq!(meaning(b'x'), None);
    }
}
