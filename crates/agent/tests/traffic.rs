//! Hosts that send to each other over real links.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod common;

use common::traffic::{accounts, await_that, in_service, report, stream, tell};
use common::{Fabric, HCA_A, HCA_B, HCA_C, PATIENCE, Running, SWITCH};
use weft_host::traffic::{Command, FlowId};
use weft_umad::{ControlReply, ControlRequest, DeviceAccount, LaneAccount};
use weft_wire::{Guid, PortNum};

const SPREAD: &[&[Guid]] = &[&[HCA_A], &[SWITCH], &[HCA_B, HCA_C]];

fn sum(accounts: &[DeviceAccount], what: impl Fn(&LaneAccount) -> u64) -> u64 {
    accounts.iter().flat_map(|account| &account.lanes).map(what).sum()
}

/// Waits until no data packet is anywhere, and checks the accounts.
fn closes(agents: &[Running], lost_on_cables: bool) {
    await_that(&agents[0], "everything has arrived", || sum(&accounts(agents), |lane| lane.held) == 0);
    let accounts = accounts(agents);
    assert!(accounts.iter().all(|account| account.sound), "{accounts:#?}");
    let (sent, came) = (sum(&accounts, |lane| lane.transmitted), sum(&accounts, |lane| lane.received));
    assert!(sent >= came && (lost_on_cables || sent == came), "{sent} sent, {came} came: {accounts:#?}");
    let injected = sum(&accounts, |lane| lane.injected);
    let ended = sum(&accounts, |lane| lane.to_host + lane.to_own + lane.dropped.values().sum::<u64>());
    assert_eq!(injected, ended + (sent - came), "{accounts:#?}");
}

fn stop_flows(agents: &[Running]) {
    assert_eq!(tell(&agents[0], HCA_A, Command::Stop(FlowId(1))), ControlReply::Done);
    assert_eq!(tell(agents.last().unwrap(), HCA_B, Command::Stop(FlowId(2))), ControlReply::Done);
}

#[test]
fn two_into_one_share_evenly_and_every_packet_is_accounted_for() {
    for groups in [SPREAD, &[&[HCA_A, SWITCH, HCA_B, HCA_C]]] {
        let fabric = Fabric::shaped(groups);
        let agents = in_service(&fabric);
        stream(&agents, 1, HCA_A, HCA_C);
        stream(&agents, 2, HCA_B, HCA_C);
        let last = agents.last().unwrap();
        let bytes = || [1, 2].map(|flow| report(last, HCA_C, flow, false).bytes);
        await_that(last, "both flows are under way", || bytes().iter().all(|bytes| *bytes > 100_000));
        let before = bytes();
        let moved = || {
            let now = bytes();
            [now[0] - before[0], now[1] - before[1]]
        };
        await_that(last, "a megabyte has come", || moved().iter().sum::<u64>() > 1_000_000);
        let [one, other] = moved();
        assert!(one.abs_diff(other) * 10 <= one.max(other), "{one} and {other} bytes");
        stop_flows(&agents);
        closes(&agents, false);
        for (flow, agent, node) in [(1, &agents[0], HCA_A), (2, last, HCA_B)] {
            let (sent, came) = (report(agent, node, flow, true), report(last, HCA_C, flow, false));
            assert_eq!((sent.repeated, sent.timeouts, &sent.error), (0, 0, &None), "{sent:?}");
            assert_eq!((came.bytes, came.disorder, came.missing, came.repeated), (sent.bytes, 0, 0, 0));
        }
        agents.into_iter().for_each(Running::stop);
    }
}

#[test]
fn commands_that_no_host_can_carry_out_are_refused_with_a_reason() {
    let fabric = Fabric::shaped(SPREAD);
    let agents = fabric.start();
    for (node, port) in [(SWITCH, 1), (HCA_A, 2), (HCA_A, 0), (Guid(1), 1)] {
        let command = Command::Stop(FlowId(1));
        let request = ControlRequest::Host { node, port: PortNum(port), command };
        let reply = agents[0].connect().control(request, PATIENCE).unwrap();
        assert!(matches!(&reply, ControlReply::Failed { reason } if reason.contains("no host")), "{reply:?}");
    }
    agents.into_iter().for_each(Running::stop);
    let without = Fabric::packed();
    let agents = without.start();
    assert!(matches!(tell(&agents[0], HCA_A, Command::HeedRepath(true)), ControlReply::Failed { .. }));
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn how_late_an_agent_is_can_be_asked_and_begun_anew() {
    let fabric = Fabric::shaped(&[&[HCA_A, SWITCH, HCA_B, HCA_C]]);
    let agents = in_service(&fabric);
    stream(&agents, 1, HCA_A, HCA_C);
    await_that(&agents[0], "packets were paced", || agents[0].status().lateness.count > 200);
    let lateness = agents[0].status().lateness;
    assert!(lateness.p50_ns <= lateness.p99_ns && lateness.p99_ns <= lateness.max_ns, "{lateness:?}");
    assert_eq!(tell(&agents[0], HCA_A, Command::Close(FlowId(1))), ControlReply::Done);
    await_that(&agents[0], "the last packet has left", || {
        agents[0].connect().control(ControlRequest::ResetLateness, PATIENCE).unwrap();
        agents[0].status().lateness.count == 0
    });
    agents.into_iter().for_each(Running::stop);
}
