//! Programs that read performance counters.

use weft_topology::NodeIndex;
use weft_wire::PortNum;

use super::{Case, case};
use crate::site::{Totals, expect_equal, field};
use crate::{Site, Way};

const SHORT: &str =
    "the stock shim hands over 224 of a MAD's 256 bytes, and the last counters are behind them";

pub(super) const CASES: &[Case] = &[
    case("perfquery LID PORT", "packets and words between two looks of the laboratory", plain),
    case("perfquery -x LID PORT", "the same, in 64 bits", |site| bracketed(site, &["-x"])),
    case("perfquery -a LID", "the sum over all ports is above each", all_ports),
    case("perfquery -a -l LID", "a report of every port", loop_over_ports),
    case("perfquery -E LID PORT", "error details of a port without errors", |site| {
        zeros(site, "-E", &["PortLocalPhysicalErrors", "PortMalformedPktErrors", "PortBufferOverrunErrors"])
    }),
    case("perfquery -D LID PORT", "discard details of a port without discards", |site| {
        zeros(site, "-D", &["PortInactiveDiscards", "PortNeighborMTUDiscards"])
    }),
    case("perfquery -R LID PORT", "the counters are zero after it", clear),
    case("perfquery -r LID PORT", "they are shown and then zero", read_and_clear),
    case("perfquery -c LID PORT", "the sampling machine's state", |site| {
        has(site, "-c", &["SampleStatus", "SampleMechanisms"])
    }),
    case("perfquery --oprcvcounters", "an answer, or a refusal in words", |site| {
        answers(site, "--oprcvcounters")
    }),
    case("perfquery --flowctlcounters", "an answer, or a refusal in words", |site| {
        answers(site, "--flowctlcounters")
    }),
    case("perfquery --vloppackets", "packets by lane make up the packets", |site| {
        lanes(site, "--vloppackets", "PortVLOpPackets", |totals| totals.xmit_packets)
    }),
    case("perfquery --vlopdata", "words by lane make up the words", |site| {
        lanes(site, "--vlopdata", "PortVLOpData", |totals| totals.xmit_words)
    }),
    case("perfquery --vlxmitflowctlerrors", "no flow control error on any lane", |site| {
        zeros(site, "--vlxmitflowctlerrors", &["PortVLXmitFlowCtlUpdateErrors0"])
    }),
    case("perfquery --vlxmitcounters", "no wait on any lane", |site| {
        zeros(site, "--vlxmitcounters", &["PortVLXmitWait0"])
    }),
    case("perfquery -X, -S, -T, --rcvcc, --xmitcc ...", "an answer, or a refusal in words", optional),
    case("ibqueryerrors", "no node above a threshold, every node looked at", query_errors)
        .beyond_protocol(SHORT),
    case("ibqueryerrors -k -K", "all counters of all ports cleared", query_and_clear).beyond_protocol(SHORT),
];

/// A port that queries do not cross: behind the far switch's cable hangs something else than the usual host.
fn target(site: &Site<'_>) -> (NodeIndex, PortNum, String, String) {
    let (switch, port) = site.far_switch();
    (switch, port, site.lid(switch).to_string(), port.to_string())
}

fn query(site: &Site<'_>, options: &[&str]) -> Result<String, String> {
    let (_, _, lid, port) = target(site);
    site.read("perfquery", &[options, &[&lid, &port]].concat())
}

fn number(text: &str, name: &str) -> Result<u64, String> {
    let value = field(text, name).ok_or_else(|| format!("there is no {name}"))?;
    value.parse().map_err(|_| format!("{name} is {value}"))
}

fn plain(site: &Site<'_>) -> Result<(), String> {
    bracketed(site, &[])
}

/// What is asked lies between what the laboratory knew before and knows after.
fn bracketed(site: &Site<'_>, options: &[&str]) -> Result<(), String> {
    let (switch, port, ..) = target(site);
    let guid = site.fabric.node(switch).guid;
    let before = (site.totals)(guid, port);
    let text = query(site, options)?;
    let after = (site.totals)(guid, port);
    let Some((before, after)) = before.zip(after) else {
        return number(&text, "PortXmitPkts").and_then(|packets| at_least(packets, 1));
    };
    for (name, least, most) in [
        ("PortXmitPkts", before.xmit_packets, after.xmit_packets),
        ("PortRcvPkts", before.rcv_packets, after.rcv_packets),
        ("PortXmitData", before.xmit_words, after.xmit_words),
        ("PortRcvData", before.rcv_words, after.rcv_words),
    ] {
        let value = number(&text, name)?;
        if !(least..=most).contains(&value) {
            return Err(format!("{name} is {value}, not from {least} to {most}"));
        }
    }
    at_least(number(&text, "PortXmitPkts")?, 1)
}

fn at_least(value: u64, least: u64) -> Result<(), String> {
    if value >= least { Ok(()) } else { Err(format!("{value} is less than {least}")) }
}

fn all_ports(site: &Site<'_>) -> Result<(), String> {
    let (_, _, lid, _) = target(site);
    let one = number(&query(site, &["-x"])?, "PortXmitPkts")?;
    let all = number(&site.read("perfquery", &["-x", "-a", &lid])?, "PortXmitPkts")?;
    at_least(all, one)
}

fn loop_over_ports(site: &Site<'_>) -> Result<(), String> {
    let (switch, _, lid, _) = target(site);
    let text = site.read("perfquery", &["-a", "-l", &lid])?;
    let reports = text.lines().filter(|line| line.starts_with("# Port counters:")).count();
    at_least(reports as u64, u64::from(site.fabric.node(switch).port_count()))
}

fn zeros(site: &Site<'_>, option: &str, names: &[&str]) -> Result<(), String> {
    let text = query(site, &[option])?;
    names.iter().try_for_each(|name| expect_equal(name, &number(&text, name)?, &0))
}

fn has(site: &Site<'_>, option: &str, names: &[&str]) -> Result<(), String> {
    let text = query(site, &[option])?;
    names.iter().try_for_each(|name| match field(&text, name) {
        Some(_) => Ok(()),
        None => Err(format!("there is no {name}")),
    })
}

/// An answer, or at once a refusal. Silence is wrong.
fn answers(site: &Site<'_>, option: &str) -> Result<(), String> {
    let (_, _, lid, port) = target(site);
    let said = site.run("perfquery", &[option, &lid, &port, "-e"]);
    if said.code == 0 || said.err.contains("status") || said.err.contains("not supported") {
        return Ok(());
    }
    Err(said.err.lines().next().unwrap_or("nothing said").to_owned())
}

fn optional(site: &Site<'_>) -> Result<(), String> {
    let options = [
        "-X",
        "-S",
        "-T",
        "--swportvlcong",
        "--rcvcc",
        "--slrcvfecn",
        "--slrcvbecn",
        "--xmitcc",
        "--vlxmittimecc",
    ];
    options.iter().try_for_each(|option| answers(site, option).map_err(|error| format!("{option}: {error}")))
}

fn clear(site: &Site<'_>) -> Result<(), String> {
    let before = number(&query(site, &[])?, "PortXmitPkts")?;
    query(site, &["-R"])?;
    let after = number(&query(site, &[])?, "PortXmitPkts")?;
    // The port lies on no path of these questions, but a subnet manager may have looked meanwhile.
    if after < before { Ok(()) } else { Err(format!("{before} before, {after} after")) }
}

fn read_and_clear(site: &Site<'_>) -> Result<(), String> {
    // A subnet manager may look in between, though not each time.
    let mut seen = Vec::new();
    for _ in 0..5 {
        let shown = number(&query(site, &["-r"])?, "PortXmitPkts")?;
        let after = number(&query(site, &[])?, "PortXmitPkts")?;
        if after <= shown {
            return Ok(());
        }
        seen.push(format!("{shown} shown, {after} after"));
    }
    Err(seen.join("; "))
}

fn lanes(site: &Site<'_>, option: &str, name: &str, of: fn(Totals) -> u64) -> Result<(), String> {
    let (switch, port, ..) = target(site);
    let guid = site.fabric.node(switch).guid;
    let text = query(site, &[option])?;
    let sum: u64 = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.rsplit('.').next()?.parse::<u64>().ok())
        .sum();
    match (site.totals)(guid, port) {
        Some(totals) if sum > 0 && sum <= of(totals) => Ok(()),
        Some(totals) => Err(format!("{sum} on all lanes together, {} in all", of(totals))),
        None if site.way == Way::Ibsim => at_least(sum, 1),
        None => Err("the laboratory does not know the port".into()),
    }
}

fn query_errors(site: &Site<'_>) -> Result<(), String> {
    let text = site.read("ibqueryerrors", &[])?;
    let summary = format!("## Summary: {} nodes checked, 0 bad nodes found", site.fabric.nodes().len());
    if text.lines().any(|line| line.trim() == summary) {
        return Ok(());
    }
    let found = text.lines().find(|line| line.contains("Summary")).unwrap_or("no summary");
    Err(format!("{found:?}, not {summary:?}"))
}

fn query_and_clear(site: &Site<'_>) -> Result<(), String> {
    let before = number(&query(site, &[])?, "PortXmitPkts")?;
    site.read("ibqueryerrors", &["-k", "-K", "--data"])?;
    let after = number(&query(site, &[])?, "PortXmitPkts")?;
    if after <= before || before == 0 { Ok(()) } else { Err(format!("{before} before, {after} after")) }
}
