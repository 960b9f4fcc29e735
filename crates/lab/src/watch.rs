//! A Prometheus that watches a laboratory of this machine, with weft's rules and consoles. It holds a lock of the laboratory, so whoever
//! takes that down ends it too.

use std::convert::Infallible;
use std::env;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use weft_bundle::failure::Failure;
use weft_bundle::folder::{self, LabFolder};
use weft_deploy::watch::{self, WATCH};
use weft_link::PAGES;
use weft_process::poll_for;

use crate::process::spawn_watch;

/// Its program, and the name of its lock and log.
const PROMETHEUS: &str = "prometheus";
/// Its configuration, beside the rules.
const CONFIG: &str = "watch/prometheus.yml";
/// How long it takes to answer, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often it is tried whether it answers.
const LOOK: Duration = Duration::from_millis(20);
/// The laboratory's folder is often in memory.
const KEPT: &str = "256MB";

/// Whether a Prometheus is installed.
pub fn is_installed() -> bool {
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths).any(|folder| folder.join(PROMETHEUS).is_file())
}

/// A TCP port of the loopback that is free now.
///
/// # Errors
/// When there is none.
pub fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free TCP port on loopback")?;
    listener.local_addr().context("no free TCP port on loopback")
}

/// Starts one that asks the hub at `hub` whom to scrape, and returns where it answers.
///
/// # Errors
/// When it does not start: its log says why.
pub fn start(lab: &LabFolder, hub: SocketAddr) -> anyhow::Result<SocketAddr> {
    watch::write(&lab.bundle())?;
    folder::write(&lab.path().join(CONFIG), config(hub).as_bytes())?;
    lab.make_locks([PROMETHEUS.to_owned()])?;
    let address = free_address()?;
    let log = lab.log(PROMETHEUS);
    let child = spawn_watch(lab, address, &log)?;
    let end =
        pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).context("cannot wait for Prometheus")?;
    let begun = Instant::now();
    while TcpStream::connect_timeout(&address, PATIENCE).is_err() {
        let mut ends = [PollFd::new(&end, PollFlags::IN)];
        poll_for(&mut ends, Some(LOOK))?;
        if !ends[0].revents().is_empty() || begun.elapsed() > PATIENCE {
            // One that is only slow is ended with the laboratory.
            return Err(Failure::new(format!("Prometheus does not answer at {address}"))
                .hint(format!("its log is {}", log.display())));
        }
    }
    Ok(address)
}

/// Becomes that Prometheus.
///
/// # Errors
/// When the laboratory is being taken down, or there is no Prometheus.
pub(crate) fn run(lab: &LabFolder, address: &str) -> anyhow::Result<Infallible> {
    let _lock = lock(&lab.locks().join(PROMETHEUS)).context("cannot take its lock")?;
    let folder = lab.path().join(WATCH);
    let option = |name: &str, part: &str| format!("--{name}={}", folder.join(part).display());
    let error = Command::new(PROMETHEUS)
        .arg(option("config.file", "prometheus.yml"))
        .arg(option("storage.tsdb.path", "data"))
        .arg(format!("--storage.tsdb.retention.size={KEPT}"))
        .arg(format!("--web.listen-address={address}"))
        .arg(option("web.console.templates", "consoles"))
        .arg(option("web.console.libraries", "console_libraries"))
        .exec();
    Err(error).context("cannot start prometheus")
}

/// Takes a lock as every process of a laboratory does, but has the program that replaces this one hold it.
fn lock(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).write(true).open(path)?;
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
    // Between open and lock the laboratory may have been taken down.
    if file.metadata()?.nlink() == 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    fcntl_setfd(&file, FdFlags::empty())?;
    Ok(file)
}

/// Its configuration. A hub that does not listen on loopback asks for the laboratory's token.
fn config(hub: SocketAddr) -> String {
    let ip = if hub.ip().is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { hub.ip() };
    let (scheme, proof) = match hub.ip().is_loopback() {
        true => ("http", Vec::new()),
        false => (
            "https",
            vec![
                format!("tls_config: {{ca_file: ../ca.pem, server_name: {PAGES}}}"),
                // Service discovery of Prometheus 2 sends the bare token where no type is named.
                "authorization: {type: Bearer, credentials_file: ../identities/http.token}".to_owned(),
            ],
        ),
    };
    let indented = |by: &str| proof.iter().map(|line| format!("{by}{line}\n")).collect::<String>();
    format!(
        "global: {{scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 2s}}\n\
         rule_files: [weft.recording.yml, weft.alerts.yml]\n\
         scrape_configs:\n\
         \x20 - job_name: weft\n\
         \x20   honor_labels: true\n{}\
         \x20   http_sd_configs:\n\
         \x20     - url: {scheme}://{}/sd\n\
         \x20       refresh_interval: 2s\n{}",
        indented("    "),
        SocketAddr::new(ip, hub.port()),
        indented("        "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_hub_elsewhere_is_shown_the_token() {
        let own = config(([127, 0, 0, 1], 9100).into());
        assert!(own.contains("- url: http://127.0.0.1:9100/sd\n") && !own.contains("token"), "{own}");
        let open = config(([0, 0, 0, 0], 9100).into());
        assert!(open.contains("- url: https://127.0.0.1:9100/sd\n"), "{open}");
        assert_eq!(open.matches("http.token").count(), 2, "for /sd and for each process: {open}");
    }
}
