//! `weft relay`: lines of the control protocol between standard input and output and a process, for clients in other languages.

use std::io::{ErrorKind, Read as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::names::HUB;
use weft_control::{LineDecoder, REPLY_BYTES_MAX};
use weft_wire::printable_json;

use crate::cli::relay::RelayArgs;
use crate::output::print;

/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;

pub(super) fn run(folder: &LabFolder, args: &RelayArgs) -> anyhow::Result<()> {
    let process = args.process.as_str();
    let stream = UnixStream::connect(folder.control(process)).map_err(|error| {
        Failure::new(format!("`{process}` does not answer: {error}")).hint(remedy(process))
    })?;
    let has_ended = Arc::new(AtomicBool::new(false));
    let (requests, ended) = (stream.try_clone().context("cannot copy a socket")?, has_ended.clone());
    // It may wait for input when the process hangs up; then it ends with this program.
    std::thread::Builder::new()
        .name("requests".into())
        .spawn(move || send(requests, &ended))
        .context("cannot start a thread")?;
    receive(stream)?;
    if has_ended.load(Ordering::Acquire) {
        return Ok(());
    }
    Err(Failure::new(format!("`{process}` closed the connection")).hint(remedy(process)))
}

fn remedy(process: &str) -> &'static str {
    if process == HUB { "start a hub with `weft hub --detached`" } else { "`weft ps` lists the processes" }
}

/// Requests go on as they come: the process itself bounds their lines.
fn send(mut process: UnixStream, has_ended: &AtomicBool) {
    // A process that takes no more has hung up, and that shows where its lines are read.
    if std::io::copy(&mut std::io::stdin().lock(), &mut process).is_ok() {
        has_ended.store(true, Ordering::Release);
        // It answers what it has, and then hangs up.
        let _ = process.shutdown(Shutdown::Write);
    }
}

/// Prints lines until the process hangs up.
fn receive(mut process: UnixStream) -> anyhow::Result<()> {
    let mut decoder = LineDecoder::new(REPLY_BYTES_MAX);
    let mut piece = vec![0; PIECE];
    loop {
        match process.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => decoder.feed(piece.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error).context("the connection broke"),
        }
        let mut lines = String::new();
        while let Some(line) = decoder.next_line() {
            lines += &printable_json(&String::from_utf8_lossy(&line?));
            lines.push('\n');
        }
        if !lines.is_empty() {
            print(&lines)?;
        }
    }
}
