//! A terminal with a shell in it, as users have one: what they see, type and are left with.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use vt100::{Parser, Screen};

use super::{COMMAND_TIME_MAX, Home};

/// Runs a command and stays, so that the terminal has somebody to give it back to.
const SHELL: &str = r#"trap : INT; "$@"; echo "[exit $?]"; read -r rest"#;

/// Rows of every terminal.
const ROWS: u16 = 30;

/// A terminal that shows a command.
pub(crate) struct Terminal {
    keys: File,
    shell: Child,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

struct Seen {
    parser: Parser,
    bytes: Vec<u8>,
}

impl Terminal {
    /// Runs `weft` in a terminal. Variables override those of the home; an empty one is unset.
    pub(crate) fn start(home: &Home, columns: u16, variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let master = openpt(flags | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, size(columns)).unwrap();
        let weft = home.command(arguments);
        let mut command = Command::new("setsid");
        command.args(["--ctty", "sh", "-c", SHELL, "sh"]).arg(weft.get_program()).args(weft.get_args());
        command.current_dir(weft.get_current_dir().unwrap());
        command.envs(weft.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        for (name, value) in variables {
            match value.is_empty() {
                true => command.env_remove(name),
                false => command.env(name, value),
            };
        }
        let end = || File::from(ioctl_tiocgptpeer(&master, flags | OpenptFlags::CLOEXEC).unwrap());
        let shell = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let keys = File::from(master);
        let mut screen = keys.try_clone().unwrap();
        let [rows, columns] = [ROWS, columns].map(|count| NonZeroU16::new(count).unwrap());
        let seen = Seen { parser: Parser::new(rows, columns, 1000), bytes: Vec::new() };
        let seen = Arc::new((Mutex::new(seen), Condvar::new()));
        let writer = seen.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal that no process has any more is an error to read from.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                let mut seen = writer.0.lock().unwrap();
                seen.parser.process(&bytes[..count]);
                seen.bytes.extend_from_slice(&bytes[..count]);
                writer.1.notify_all();
            }
        });
        Self { keys, shell, seen }
    }

    /// Waits until the screen shows this; what it shows then.
    #[track_caller]
    pub(crate) fn wait_for(&self, what: &str, shows: impl Fn(&Screen) -> bool) -> String {
        self.wait(what, |seen| shows(seen.parser.screen()))
    }

    /// Waits until this was written that many times more.
    #[track_caller]
    pub(crate) fn wait_for_more(&self, text: &str, times: usize) {
        let before = self.written().matches(text).count();
        let has_more =
            |seen: &Seen| String::from_utf8_lossy(&seen.bytes).matches(text).count() >= before + times;
        self.wait(text, has_more);
    }

    /// Waits until this was written, wherever it is on the screen by now.
    #[track_caller]
    pub(crate) fn wait_for_written(&self, text: &str) {
        self.wait(text, |seen| String::from_utf8_lossy(&seen.bytes).contains(text));
    }

    #[track_caller]
    fn wait(&self, what: &str, holds: impl Fn(&Seen) -> bool) -> String {
        let deadline = Instant::now() + COMMAND_TIME_MAX;
        let mut seen = self.seen.0.lock().unwrap();
        while !holds(&seen) {
            let left = deadline.saturating_duration_since(Instant::now());
            let screen = seen.parser.screen().contents();
            assert!(!left.is_zero(), "the terminal never shows {what}, but:\n{screen}");
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
        seen.parser.screen().contents()
    }

    /// Waits until the command has ended; its exit code, as the shell has it.
    #[track_caller]
    pub(crate) fn exit_code(&self) -> i32 {
        let screen = self.wait_for("the command's end", |screen| screen.contents().contains("[exit "));
        let code = screen.rsplit_once("[exit ").unwrap().1.split_once(']').unwrap().0;
        code.parse().unwrap()
    }

    /// All that was written to the terminal.
    pub(crate) fn written(&self) -> String {
        String::from_utf8(self.seen.0.lock().unwrap().bytes.clone()).unwrap()
    }

    /// Looks at the screen as it is.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Screen) -> T) -> T {
        look(self.seen.0.lock().unwrap().parser.screen())
    }

    /// Types keys.
    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Makes it as wide as this.
    pub(crate) fn resize(&self, columns: u16) {
        let [rows, wide] = [ROWS, columns].map(|count| NonZeroU16::new(count).unwrap());
        self.seen.0.lock().unwrap().parser.set_size(rows, wide);
        tcsetwinsize(&self.keys, size(columns)).unwrap();
    }

    /// Signals all that runs in it.
    pub(crate) fn signal(&self, which: Signal) {
        let shell = Pid::from_raw(i32::try_from(self.shell.id()).unwrap()).unwrap();
        kill_process_group(shell, which).unwrap();
    }

    /// Whether lines are edited and shown as they are typed, as a shell wants it.
    pub(crate) fn is_as_shells_want(&self) -> bool {
        let modes = tcgetattr(&self.keys).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
            && self.look(|screen| !screen.alternate_screen() && !screen.hide_cursor())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

fn size(columns: u16) -> Winsize {
    Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
