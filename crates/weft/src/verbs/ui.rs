//! `weft ui` and `weft tape`: the live page, and its tapes.

use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_lab::scene::{self, Guests, Hands, Seen, TapeTo};
use weft_lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use weft_page::tape::Tape;
use weft_page::{Assets, Counts, Pages, Registry, Source, Stage};
use weft_process::readable;

use crate::cli::ui::{TapeArgs, UiArgs};
use crate::output::{print, say};

/// `lab`: the running laboratory, where no tape is named.
pub(super) fn run(lab: impl Fn() -> anyhow::Result<LabFolder>, args: &UiArgs) -> anyhow::Result<()> {
    let signals = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    let registry = Registry::new();
    let source = match &args.tape {
        Some(path) => taped(path)?,
        None => live(&lab()?, &registry)?,
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port.unwrap_or(0))).map_err(|error| {
        let port = args.port.unwrap_or(0);
        Failure::bad_input(format!("cannot listen on TCP port {port} of the loopback: {error}"))
            .hint("choose another one with --port, or leave it out")
    })?;
    let address = listener.local_addr().context("a socket has no address")?;
    let token: String = rand::random::<[u8; 16]>().iter().map(|byte| format!("{byte:02x}")).collect();
    let assets = args.assets.clone().map_or(Assets::Own, Assets::Folder);
    let pages = Pages::new(source, assets, address, &token, &registry);
    let serve = move || {
        if let Err(error) = weft_page::serve(listener, pages) {
            say(&format!("error: the page is not served any more: {error}"));
        }
    };
    std::thread::Builder::new().name("page".into()).spawn(serve).context("cannot start a thread")?;
    let url = format!("http://{address}/#token={token}");
    print(&format!("{url}\n"))?;
    let redirect = if args.no_browser { None } else { open_browser(&url) };
    readable(&signals, None)?;
    redirect.map_or(Ok(()), std::fs::remove_file).or_else(|_| Ok(()))
}

fn live(folder: &LabFolder, registry: &Registry) -> anyhow::Result<Source> {
    let (stage, seen) = (Stage::new(Counts::new(registry)), Seen::default());
    let role = role(folder)?;
    scene::show(folder, &stage, role, seen.clone())?;
    scene::recall(folder, &stage);
    Ok(Source::Live(stage, Arc::new(Hands::new(folder, role, seen.acknowledged))))
}

fn role(folder: &LabFolder) -> anyhow::Result<weft_control::Role> {
    scene::role(folder).map_err(|error| {
        Failure::new(format!("the hub of `{}` does not answer: {error:#}", folder.name()))
            .hint("`weft hub --detached` starts another")
    })
}

fn taped(path: &Path) -> anyhow::Result<Source> {
    let file = File::open(path)
        .map_err(|error| Failure::bad_input(format!("cannot read {}: {error}", path.display())))?;
    let tape = Tape::open(file).map_err(|error| {
        Failure::bad_input(format!("{}: {error}", path.display())).hint("`weft tape -o FILE` records one")
    })?;
    Ok(Source::Taped(Arc::new(Mutex::new(tape))))
}

/// Opens a browser where there is a display. The address goes by a file that only this user reads: a command line would show the token to
/// all users of the machine.
fn open_browser(url: &str) -> Option<PathBuf> {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if !is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") {
        return None;
    }
    let path = std::env::temp_dir().join(format!("weft-ui-{:016x}.html", rand::random::<u64>()));
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path).ok()?;
    let page = format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={url}\">\n");
    file.write_all(page.as_bytes()).ok()?;
    let mut command = Command::new("xdg-open");
    command.arg(&path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut child) = command.spawn() {
        let _ = std::thread::Builder::new().name("browser".into()).spawn(move || drop(child.wait()));
    }
    Some(path)
}

pub(super) fn tape(folder: &LabFolder, args: &TapeArgs) -> anyhow::Result<()> {
    let signals = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    // Without a hub there is nothing to tape.
    role(folder)?;
    let to = TapeTo { path: args.output.clone(), bytes_max: args.megabytes * 1_000_000 };
    let path = to.path.display();
    say(&match args.lasts {
        Some(_) => format!("recording {path}"),
        None => format!("recording {path}; Ctrl-C ends it"),
    });
    let until = args.lasts.map(|lasts| Instant::now() + lasts);
    let has_enough = || {
        until.is_some_and(|until| Instant::now() >= until)
            || readable(&signals, Some(Duration::ZERO)).unwrap_or(true)
    };
    let taped = scene::tape(folder, &to, Guests::default(), has_enough)?;
    let why = if taped.is_full { "; it has reached --megabytes" } else { "" };
    say(&format!("wrote {path}: {} bytes{why}", taped.bytes));
    Ok(())
}
