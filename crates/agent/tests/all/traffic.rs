//! Hosts that send to each other over real links.

use std::rc::Rc;

use common::traffic::{
    accounts, activate, activate_from, await_that, in_service, lid, report, running, stream, tell,
};
use common::{Fabric, HCA_A, HCA_B, HCA_C, Running, SWITCH, end, port_end};
use tokio::runtime::LocalOptions;
use tokio::sync::mpsc;
use weft_control::agent::{DeviceAccount, LaneAccount};
use weft_control::{Answer, ErrorCode, Request};
use weft_device::DataPathOptions;
use weft_host::traffic::{Command, FlowId};
use weft_link::{Cable, DownReason, Handler, LinkConfig, LinkEvent, LinkIndex, Links};
use weft_wire::{DataPacket, Guid, PKey, PortState, VirtualLane, opcode};

use crate::common;

const SPREAD: &[&[Guid]] = &[&[HCA_A], &[SWITCH], &[HCA_B, HCA_C]];
const PACKED: &[&[Guid]] = &[&[HCA_A, SWITCH, HCA_B, HCA_C]];

/// A run whose wake-ups were later than this, but for one in a hundred, is no measurement.
const LATE_NS: u64 = 5_000_000;
const WINDOWS_MAX: usize = 40;

/// Host A and host B send to host C as fast as they may, as flows 1 and 2.
fn hot_spot(agents: &[Running]) {
    stream(agents, 1, HCA_A, HCA_C);
    stream(agents, 2, HCA_B, HCA_C);
}

/// Bytes that have come to host C by flows 1 and 2.
fn arrived(agents: &[Running]) -> [u64; 2] {
    [1, 2].map(|flow| report(running(agents, HCA_C), HCA_C, flow, false).bytes)
}

/// Waits until each flow has brought so much more.
fn flows_on(agents: &[Running], bytes: u64) {
    let before = arrived(agents);
    await_that(&agents[0], "both flows go on", || {
        arrived(agents).iter().zip(before).all(|(now, before)| now - before >= bytes)
    });
}

fn sum(accounts: &[DeviceAccount], what: impl Fn(&LaneAccount) -> u64) -> u64 {
    accounts.iter().flat_map(|account| &account.lanes).map(what).sum()
}

/// Stops the flows and waits until everything that was sent has come, once and in order.
fn all_arrives(agents: &[Running]) {
    for (node, flow) in [(HCA_A, 1), (HCA_B, 2)] {
        let agent = running(agents, node);
        assert_eq!(tell(agent, node, Command::Stop { flow: FlowId(flow) }), Ok(Answer::Done));
        let sent = || report(agent, node, flow, true);
        let came = || report(running(agents, HCA_C), HCA_C, flow, false);
        await_that(agent, "all that was sent has come", || sent().bytes == came().bytes);
        assert_eq!((came().disorder, came().missing, sent().error), (0, 0, None), "flow {flow}");
    }
}

/// Waits until no data packet is held anywhere, and checks the accounts; the packets that were lost on cables.
fn closes(agents: &[Running]) -> u64 {
    await_that(&agents[0], "no packet is held", || sum(&accounts(agents), |lane| lane.held) == 0);
    let accounts = accounts(agents);
    assert!(accounts.iter().all(|account| account.sound), "{accounts:#?}");
    let (sent, came) = (sum(&accounts, |lane| lane.transmitted), sum(&accounts, |lane| lane.received));
    let injected = sum(&accounts, |lane| lane.injected);
    let ended = sum(&accounts, |lane| lane.to_host + lane.to_own + lane.dropped.values().sum::<u64>());
    assert_eq!(injected + came, ended + sent, "{accounts:#?}");
    sent.checked_sub(came).expect("nothing comes that was not sent")
}

/// What each flow brings while each brings so much, measured again as long as the agents were late: then it is not the
/// fabric that was measured.
fn bytes_in_time(agents: &[Running], bytes: u64) -> [u64; 2] {
    for _ in 0..WINDOWS_MAX {
        for agent in agents {
            assert_eq!(agent.ask(Request::ResetLateness), Answer::Done);
        }
        let before = arrived(agents);
        flows_on(agents, bytes);
        let now = arrived(agents);
        if agents.iter().all(|agent| agent.status().lateness.p99_ns < LATE_NS) {
            return [now[0] - before[0], now[1] - before[1]];
        }
    }
    panic!("this machine is too busy to pace packets: late in {WINDOWS_MAX} windows")
}

#[test]
fn two_into_one_share_evenly_and_every_packet_is_accounted_for() {
    for groups in [SPREAD, PACKED] {
        let fabric = Fabric::shaped(groups);
        let agents = in_service(&fabric);
        hot_spot(&agents);
        flows_on(&agents, 100_000);
        let [one, other] = bytes_in_time(&agents, 500_000);
        assert!(one.abs_diff(other) * 10 <= one.max(other), "{one} and {other} bytes");
        let waited = running(&agents, SWITCH).port(end(SWITCH, 3)).totals.xmit_wait;
        assert!(waited > 0, "the port to the hot spot waits for credit");
        all_arrives(&agents);
        assert_eq!(closes(&agents), 0, "no packet was lost");
        for (flow, node) in [(1, HCA_A), (2, HCA_B)] {
            let sent = report(running(&agents, node), node, flow, true);
            assert_eq!((sent.repeated, sent.timeouts), (0, 0), "{sent:?}");
        }
        agents.into_iter().for_each(Running::stop);
    }
}

#[test]
fn unshaped_traffic_goes_through_and_its_accounts_close() {
    for groups in [SPREAD, PACKED] {
        let fabric = Fabric::with_hosts(groups, &DataPathOptions::default());
        let agents = in_service(&fabric);
        hot_spot(&agents);
        flows_on(&agents, 10_000_000);
        all_arrives(&agents);
        assert_eq!(closes(&agents), 0, "no packet was lost");
        agents.into_iter().for_each(Running::stop);
    }
}

#[test]
fn flows_survive_a_cable_that_is_cut_and_plugged_in_again() {
    for groups in [SPREAD, PACKED] {
        let fabric = Fabric::shaped(groups).impatient();
        let agents = in_service(&fabric);
        hot_spot(&agents);
        flows_on(&agents, 100_000);
        let (switch, hot) = (running(&agents, SWITCH), running(&agents, HCA_C));
        assert_eq!(switch.set_cable(end(SWITCH, 3), false), Ok(Answer::Done));
        hot.await_port(end(HCA_C, 1), |port| !port.link_up && port.state == PortState::Down.into());
        switch.await_port(end(SWITCH, 3), |port| port.state == PortState::Down.into());
        assert_eq!(switch.set_cable(end(SWITCH, 3), true), Ok(Answer::Done));
        hot.await_link(end(HCA_C, 1), true);
        switch.await_link(end(SWITCH, 3), true);
        activate(&agents);
        flows_on(&agents, 100_000);
        all_arrives(&agents);
        let lost = closes(&agents);
        let status = |node| running(&agents, node).status().counts["credit_overruns"];
        assert_eq!(
            [HCA_A, SWITCH, HCA_C].map(status),
            [0; 3],
            "credits began anew; {lost} lost on the cable"
        );
        agents.into_iter().for_each(Running::stop);
    }
}

#[test]
fn flows_survive_a_switch_that_is_killed_under_traffic() {
    let fabric = Fabric::shaped(SPREAD).impatient();
    let mut agents = in_service(&fabric);
    hot_spot(&agents);
    flows_on(&agents, 100_000);
    agents.remove(1).kill();
    agents.insert(1, Running::start(&fabric.agents[1]));
    for at in fabric.agents[1].part.cables.iter().map(|cable| cable.remote) {
        // The old link's end and the new one's begin are both heard of.
        running(&agents, at.guid).await_port(at, |port| port.link_up && port.totals.link_downed > 0);
    }
    activate(&agents);
    flows_on(&agents, 100_000);
    all_arrives(&agents);
    // A new switch has an account of its own, so that only each device's balance can be looked at.
    assert!(accounts(&agents).iter().all(|account| account.sound));
    let overruns = agents.iter().map(|agent| agent.status().counts["credit_overruns"]);
    assert_eq!(overruns.sum::<u64>(), 0);
    agents.into_iter().for_each(Running::stop);
}

struct Ear(mpsc::UnboundedSender<LinkEvent>);

impl Handler for Ear {
    fn on_event(&self, event: LinkEvent) {
        let _ = self.0.send(event);
    }
}

#[test]
fn a_peer_that_overruns_its_credit_is_disconnected() {
    let fabric = Fabric::shaped(&[&[HCA_A], &[SWITCH, HCA_B, HCA_C]]);
    let agents = [Running::start(&fabric.agents[1])];
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    runtime.unwrap().block_on(async {
        // In place of HCA A's agent stands somebody who heeds no credit.
        let config = &fabric.agents[0];
        let cable = config.part.cables[0].clone();
        let parameters = config.part.devices[0].ports[0].link;
        let remote_addr = cable.remote_addr.unwrap();
        let cable = Cable { local: cable.local, remote: cable.remote, remote_addr, parameters };
        let (tell, mut told) = mpsc::unbounded_channel();
        let link = LinkIndex(0);
        let links = Links::bind(
            config.part.bind,
            &config.credentials,
            LinkConfig::new("test", 1),
            vec![cable],
            Rc::new(Ear(tell)),
        )
        .unwrap();
        links.start_dialling();
        while !matches!(told.recv().await.unwrap(), LinkEvent::Up { .. }) {}
        let activated = std::thread::spawn(move || {
            agents[0].await_link(end(SWITCH, 1), true);
            activate_from(&agents, HCA_B, Some(HCA_A));
            agents
        });
        // QUIC goes on while the switch is set up.
        let agents = tokio::task::spawn_blocking(|| activated.join().unwrap()).await.unwrap();
        for sequence in 0..500 {
            let _ = links.send_data(
                link,
                DataPacket {
                    sequence,
                    opcode: opcode::RC_SEND_ONLY,
                    payload: 2048,
                    slid: lid(HCA_A),
                    dlid: lid(HCA_B),
                    p_key: PKey(0xffff),
                    vl: VirtualLane(0),
                    ..DataPacket::default()
                },
            );
        }
        let reason = loop {
            match told.recv().await.unwrap() {
                LinkEvent::Down { reason, .. } => break reason,
                LinkEvent::Credit { flow_control, .. } => assert!(flow_control.vl.0 < 8),
                other => panic!("{other:?}"),
            }
        };
        assert!(matches!(&reason, DownReason::ClosedByPeer(text) if text.contains("credit")), "{reason:?}");
        let agents = tokio::task::spawn_blocking(move || {
            assert!(agents[0].status().counts["credit_overruns"] >= 1);
            let port = agents[0].port(end(SWITCH, 1));
            assert!(port.totals.excessive_buffer_overrun_errors >= 1, "{port:?}");
            assert!(accounts(&agents).iter().all(|account| account.sound));
            agents
        });
        let agents = agents.await.unwrap();
        // The link may come up again.
        while !matches!(told.recv().await.unwrap(), LinkEvent::Up { .. }) {}
        links.shutdown().await;
        agents.into_iter().for_each(Running::stop);
    });
    assert_eq!(fabric.events("credit-overrun").len(), 1, "told once, however many packets came too many");
}

#[test]
fn commands_for_absent_hosts_are_refused_with_a_reason() {
    let fabric = Fabric::shaped(SPREAD);
    let agents = fabric.start();
    for (node, port) in [(SWITCH, 1), (HCA_A, 2), (HCA_A, 0), (Guid(1), 1)] {
        let command = Command::Stop { flow: FlowId(1) };
        let error = agents[0].try_ask(Request::Host { end: port_end(end(node, port)), command }).unwrap_err();
        assert!(error.code == ErrorCode::NotFound && error.message.contains("no host"), "{error:?}");
    }
    agents.into_iter().for_each(Running::stop);
    let without = Fabric::packed();
    let agents = without.start();
    assert!(tell(&agents[0], HCA_A, Command::HeedRepath(true)).is_err());
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn agent_lateness_can_be_read_and_reset() {
    let fabric = Fabric::shaped(PACKED);
    let agents = in_service(&fabric);
    stream(&agents, 1, HCA_A, HCA_C);
    await_that(&agents[0], "packets were paced", || agents[0].status().lateness.count > 200);
    let lateness = agents[0].status().lateness;
    assert!(lateness.p50_ns <= lateness.p99_ns && lateness.p99_ns <= lateness.max_ns, "{lateness:?}");
    assert_eq!(tell(&agents[0], HCA_A, Command::Close { flow: FlowId(1) }), Ok(Answer::Done));
    await_that(&agents[0], "the last packet has left", || {
        agents[0].ask(Request::ResetLateness);
        agents[0].status().lateness.count == 0
    });
    agents.into_iter().for_each(Running::stop);
}
