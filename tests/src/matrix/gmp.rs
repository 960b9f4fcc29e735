//! Programs of the vendor classes, and many programs at once.

use std::process::{Child, Stdio};

use super::{Case, case};
use crate::site::{expect_equal, field};
use crate::{Site, Way};

const ISSM_ONLY: &str = "requests reach only a client that has set issm";

pub(super) const CASES: &[Case] = &[
    case("ibping LID", "answers from every host, though no server runs there", ping_all),
    case("ibping -S, ibping LID", "the server program answers", ping_server).beyond_protocol(ISSM_ONLY),
    case("ibping LID of the subnet manager", "an answer, and the subnet manager goes on", ping_manager),
    case("ibsysstat LID", "the host's name", |site| sysstat(site, &[])),
    case("ibsysstat LID ping", "an answer", |site| sysstat(site, &["ping"])),
    case("ibsysstat LID cpu", "the host's processors", |site| sysstat(site, &["cpu"])),
    case("50 tools at once", "each the right answer", many_at_once).beyond_protocol("it has ten slots"),
    // The last, since a link that went down is an error that counters keep.
    case(
        "ibportstate LID PORT disable, enable, reset",
        "the port goes down and comes back",
        super::smp::port_state_changes,
    ),
];

fn answered(text: &str, count: u32) -> Result<(), String> {
    let wanted = format!("{count} packets transmitted, {count} received, 0% packet loss");
    if text.contains(&wanted) {
        return Ok(());
    }
    let line = text.lines().find(|line| line.contains("packets transmitted"));
    Err(line.unwrap_or("no statistics").to_owned())
}

fn ping_all(site: &Site<'_>) -> Result<(), String> {
    for (index, _) in site.fabric.hosts().filter(|(index, _)| *index != site.host).take(10) {
        answered(&site.run("ibping", &["-c", "1", &site.lid(index).to_string()]).out, 1)?;
    }
    Ok(())
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The server says the name of the machine that it runs on, and the emulated host's own agent does not.
fn ping_server(site: &Site<'_>) -> Result<(), String> {
    let host = site.other_host();
    let mut command = (site.command)("ibping", site.fabric.node(host));
    command.arg("-S").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = Server(command.spawn().map_err(|error| error.to_string())?);
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").map_err(|error| error.to_string())?;
    let pong = format!("Pong from {}", name.trim());
    let lid = site.lid(host).to_string();
    // Each question is a program of its own, so that asking itself takes its time.
    for _ in 0..20 {
        if site.run("ibping", &["-c", "1", &lid]).out.contains(&pong) {
            return answered(&site.run("ibping", &["-c", "3", &lid]).out, 3);
        }
        if server.0.try_wait().is_ok_and(|ended| ended.is_some()) {
            return Err("the server ended".into());
        }
    }
    Err(format!("no {pong:?}"))
}

fn ping_manager(site: &Site<'_>) -> Result<(), String> {
    let other = site.fabric.node(site.other_host());
    let said = site.run_at(other, "ibping", &["-c", "3", &site.lid(site.host).to_string()]);
    answered(&said.out, 3)?;
    let text = site.run_at(other, "sminfo", &[]).success()?;
    if text.contains("SMINFO_MASTER") { Ok(()) } else { Err("no subnet manager answers any more".into()) }
}

fn sysstat(site: &Site<'_>, operation: &[&str]) -> Result<(), String> {
    let lid = site.lid(site.other_host()).to_string();
    let text = site.read("ibsysstat", &[&[lid.as_str()], operation].concat())?;
    if text.trim().is_empty() { Err("nothing said".into()) } else { Ok(()) }
}

fn many_at_once(site: &Site<'_>) -> Result<(), String> {
    if site.way == Way::Protocol {
        return Err("there are ten slots, so that it is luck who gets one".into());
    }
    let nodes: Vec<_> = site.fabric.iter().take(50).collect();
    let children: Result<Vec<Child>, String> = nodes
        .iter()
        .map(|(index, _)| {
            let mut command = (site.command)("smpquery", site.fabric.node(site.host));
            command.args(["nodeinfo", &site.lid(*index).to_string()]);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().map_err(|error| error.to_string())
        })
        .collect();
    for (child, (_, node)) in children?.into_iter().zip(nodes) {
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        expect_equal("GUID", &field(&text, "Guid"), &Some(node.guid.to_string().as_str()))?;
    }
    Ok(())
}
