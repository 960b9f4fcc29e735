//! Programs that listen to what crosses an agent's cables.

use std::io::Write;
use std::process::{Command, Stdio};
use std::rc::Rc;

use common::traffic::{await_that, in_service, report, running, stream, tell};
use common::{Fabric, HCA_A, HCA_B, PATIENCE, Running, SWITCH, get, node_at};
use tokio::runtime::LocalOptions;
use tokio::sync::{Notify, oneshot};
use weft_control::agent::{CaptureTotals, Captured, PortEnd, Tap, TappedPort};
use weft_control::{Answer, HexGuid, ReplyBody, Request};
use weft_host::traffic::FlowId;
use weft_link::{Cable, DropReason, Handler, LinkConfig, LinkEvent, LinkIndex, Links, SendOutcome};
use weft_process::{Client, ClientError};
use weft_umad::ServerMessage;
use weft_wire::{
    AttributeId, Guid, Lid, LinkParameters, Mad, MadRoute, Method, Packet, PortNum, VirtualLane, erf,
};

use crate::common;
use crate::visitors::ask;

const DROPPED: SendOutcome = SendOutcome::Dropped(DropReason::LinkDown);

fn at(node: Guid, port: u8) -> PortEnd {
    PortEnd { node: HexGuid(node), port: PortNum(port) }
}

fn ports(ends: &[(Guid, u8, bool)]) -> Tap {
    let port = |&(node, port, received)| TappedPort { end: at(node, port), received };
    Tap::Ports(ends.iter().map(port).collect())
}

/// A connection that captures, and the number of its request.
fn capture(agent: &Running, tap: Tap) -> (Client, u64) {
    let mut client = agent.client();
    let id = begin_capture(&mut client, tap);
    (client, id)
}

fn begin_capture(client: &mut Client, tap: Tap) -> u64 {
    let id = client.post(Request::Capture { tap }).unwrap();
    let line = client.next_line(PATIENCE).unwrap().unwrap();
    assert_eq!((line.id, line.body), (Some(id), ReplyBody::Answer(Box::new(Answer::Done))));
    id
}

/// Ends a capture; all packets that it sent from the beginning on.
fn end_capture((client, capture): &mut (Client, u64)) -> (Vec<Captured>, CaptureTotals) {
    let number = client.post(Request::Cancel { request: *capture }).unwrap();
    let mut packets = Vec::new();
    loop {
        let line = client.next_line(PATIENCE).unwrap().unwrap();
        match line.body {
            ReplyBody::Captured(captured) => packets.push(*captured),
            ReplyBody::Answer(answer) => {
                let Answer::CaptureEnded(totals) = *answer else { panic!("{answer:?}") };
                assert_eq!(line.id, Some(number));
                return (packets, totals);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Where, which way, and what.
fn story(packets: &[Captured]) -> Vec<(PortEnd, bool, Method, AttributeId)> {
    let told = packets.iter().map(|captured| {
        let mad = Packet::parse(captured.packet.0.clone()).unwrap().mad().unwrap();
        (captured.end, captured.sent, mad.method(), mad.attribute_id())
    });
    told.collect()
}

/// Every arrangement of the three devices in agents.
fn arrangements() -> [Fabric; 3] {
    let groups: [&[&[Guid]]; 3] =
        [&[&[HCA_A], &[SWITCH], &[HCA_B]], &[&[HCA_A, SWITCH, HCA_B]], &[&[HCA_A, HCA_B], &[SWITCH]]];
    groups.map(|groups| Fabric::new(groups, 2000))
}

#[test]
fn one_end_of_a_cable_sees_both_directions() {
    for fabric in arrangements() {
        let agents = fabric.up();
        let mut capture = capture(&agents[0], ports(&[(HCA_A, 1, true)]));
        let mut program = agents[0].attach(HCA_A, 1);
        assert_eq!(node_at(&mut program, &[1]), SWITCH);
        let (packets, totals) = end_capture(&mut capture);
        let expected = [(at(HCA_A, 1), true, Method::Get), (at(HCA_A, 1), false, Method::GetResp)];
        let expected = expected.map(|(end, sent, method)| (end, sent, method, AttributeId::NodeInfo));
        assert_eq!(story(&packets), expected);
        assert_eq!(totals, CaptureTotals { packets: 2, lost: 0 });
        assert!(packets[0].time_ns <= packets[1].time_ns && packets.iter().all(|packet| !packet.damaged));
        agents.into_iter().for_each(Running::stop);
    }
}

#[test]
fn taps_everywhere_see_each_packet_once_where_it_was_sent() {
    for fabric in arrangements() {
        let agents = fabric.up();
        let mut captures: Vec<_> = agents.iter().map(|agent| capture(agent, Tap::Everything)).collect();
        let mut program = agents[0].attach(HCA_A, 1);
        assert_eq!(node_at(&mut program, &[1, 2]), HCA_B);
        let mut packets: Vec<Captured> =
            captures.iter_mut().flat_map(|capture| end_capture(capture).0).collect();
        packets.sort_by_key(|packet| packet.time_ns);
        let expected = [
            (HCA_A, 1, Method::Get),
            (SWITCH, 2, Method::Get),
            (HCA_B, 1, Method::GetResp),
            (SWITCH, 1, Method::GetResp),
        ];
        let expected =
            expected.map(|(node, port, method)| (at(node, port), true, method, AttributeId::NodeInfo));
        assert_eq!(story(&packets), expected);
        agents.into_iter().for_each(Running::stop);
    }
}

#[test]
fn a_slow_capture_loses_packets_and_slows_no_one() {
    const REQUESTS: u64 = 12_000;
    let fabric = Fabric::packed();
    let agents = fabric.up();
    let mut slow = capture(&agents[0], ports(&[(HCA_A, 1, true)]));
    let mut program = agents[0].attach(HCA_A, 1);
    for _ in 0..REQUESTS {
        program.send(&get(AttributeId::NodeInfo, &[1])).unwrap();
        program.flush().unwrap();
        assert!(matches!(program.recv(PATIENCE), Ok(Some(ServerMessage::Receive(_)))), "the fabric stopped");
    }
    let (packets, totals) = end_capture(&mut slow);
    assert!(totals.lost > 0, "{totals:?}");
    assert_eq!((totals.packets + totals.lost, totals.packets), (2 * REQUESTS, packets.len() as u64));
    // Losses are reported with the packet behind the gap; there was no such packet before the end.
    assert_eq!(packets.iter().map(|packet| u64::from(packet.lost)).sum::<u64>(), 0);
    // Now there is room again.
    slow.1 = begin_capture(&mut slow.0, Tap::Everything);
    assert_eq!(node_at(&mut program, &[1]), SWITCH);
    assert_eq!(end_capture(&mut slow).1, CaptureTotals { packets: 2, lost: 0 });
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn a_capture_that_makes_no_sense_is_refused() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    let mut client = agents[0].client();
    let refused = |client: &mut Client, request| match client.ask(request, PATIENCE) {
        Err(ClientError::Refused(_)) => true,
        answered => answered.map(|_| false).unwrap(),
    };
    for nowhere in [(HCA_A, 0), (HCA_A, 2), (SWITCH, 255), (Guid(1), 1)] {
        let tap = ports(&[(nowhere.0, nowhere.1, true)]);
        assert!(refused(&mut client, Request::Capture { tap }), "{nowhere:?}");
    }
    assert!(refused(&mut client, Request::Cancel { request: 1 }));
    let request = begin_capture(&mut client, Tap::Everything);
    let again = Request::Capture { tap: Tap::Everything };
    assert!(refused(&mut client, again), "one capture for each connection");
    assert!(!refused(&mut client, Request::Cancel { request }));
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn one_process_leaves_captures_for_others() {
    let fabric = Fabric::spread();
    let agents = fabric.start();
    let _own: Vec<_> = (0..24).map(|_| capture(&agents[0], Tap::Everything)).collect();
    let mut client = agents[0].client();
    let refused = client.ask(Request::Capture { tap: Tap::Everything }, PATIENCE).unwrap_err();
    assert!(refused.to_string().contains("has 24 captures under way already"), "{refused}");
    let operator = fabric.authority.issue_role("operator", &[]).unwrap();
    let asked = ask(&agents[0], HCA_A, &operator, &[Request::Capture { tap: Tap::Everything }]).unwrap();
    assert_eq!(asked, [ReplyBody::Answer(Box::new(Answer::Done))]);
    let Answer::AgentStatus(status) = client.ask(Request::AgentStatus, PATIENCE).unwrap() else {
        panic!("no status")
    };
    let refused = ["captures_of_one_refused", "captures_refused"].map(|count| status.counts[count]);
    assert_eq!(refused, [1, 0]);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn a_capture_that_just_goes_is_forgotten() {
    let fabric = Fabric::packed();
    let agents = fabric.up();
    // More than may capture at once.
    for _ in 0..100 {
        let mut client = agents[0].client();
        let deadline = std::time::Instant::now() + PATIENCE;
        while client.ask(Request::Capture { tap: Tap::Everything }, PATIENCE).is_err() {
            assert!(std::time::Instant::now() < deadline, "those that went still count");
        }
    }
    assert_eq!(node_at(&mut agents[0].attach(HCA_A, 1), &[1]), SWITCH);
    agents.into_iter().for_each(Running::stop);
}

/// Tells when a link is up.
struct Ear(Rc<Notify>);

impl Handler for Ear {
    fn on_event(&self, event: LinkEvent) {
        if matches!(event, LinkEvent::Up { .. }) {
            self.0.notify_one();
        }
    }
}

/// An agent in the switch's place that sends what is no packet, as long as the returned word is held.
fn rogue_switch(fabric: &Fabric) -> oneshot::Sender<()> {
    let config = fabric.agents[1].clone();
    let (held, released) = oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())
            .unwrap();
        runtime.block_on(async {
            let up = Rc::new(Notify::new());
            let cable = config.part.cables.iter().find(|cable| cable.remote.guid == HCA_A).unwrap();
            let cable = Cable {
                local: cable.local,
                remote: cable.remote,
                remote_addr: cable.remote_addr.clone().unwrap(),
                parameters: LinkParameters::default(),
            };
            let settings = LinkConfig::new("test", 1);
            let ear = Rc::new(Ear(up.clone()));
            let links =
                Links::bind(config.part.bind, &config.credentials, settings, vec![cable], ear).unwrap();
            links.start_dialling();
            up.notified().await;
            send_garbage(&links);
            let _ = released.await;
        });
    });
    held
}

/// Too short, too long for what it says, a wrong VCRC, and a good packet on the wrong lane.
fn send_garbage(links: &Links) {
    let packet = Packet::from_mad(&MadRoute::smp(Lid(1), Lid(2)), &Mad::default());
    let mut wrong_vcrc = packet.bytes().to_vec();
    wrong_vcrc[289] ^= 1;
    for bytes in [vec![0; 3], vec![0xff; 1000], wrong_vcrc] {
        assert_ne!(links.send(LinkIndex(0), VirtualLane::MANAGEMENT, bytes.into()), DROPPED);
    }
    assert_ne!(links.send(LinkIndex(0), VirtualLane(3), packet.into_bytes().into()), DROPPED);
}

#[test]
fn packets_refused_by_a_port_are_captured_and_marked() {
    let fabric = Fabric::new(&[&[HCA_A], &[SWITCH], &[HCA_B]], 2000);
    let agent = Running::start(&fabric.agents[0]);
    let mut capture = capture(&agent, ports(&[(HCA_A, 1, true)]));
    let _rogue = rogue_switch(&fabric);
    let mut lengths = Vec::new();
    while lengths.len() < 4 {
        let Some(ReplyBody::Captured(captured)) = capture.0.next_line(PATIENCE).unwrap().map(|l| l.body)
        else {
            panic!("{lengths:?}")
        };
        assert!(captured.damaged && !captured.sent);
        lengths.push(captured.packet.0.len());
    }
    lengths.sort_unstable();
    assert_eq!(lengths, [3, 290, 290, 1000]);
    agent.stop();
}

/// A capture file of these packets.
fn pcap(packets: &[Captured]) -> Vec<u8> {
    let mut file = erf::file_header().to_vec();
    for Captured { time_ns, sent, damaged, lost, packet, .. } in packets {
        let (time_ns, sent, damaged, lost) = (*time_ns, *sent, *damaged, *lost);
        erf::Record { time_ns, sent, damaged, lost, port: None, packet: &packet.0 }.encode_into(&mut file);
    }
    file
}

/// What tshark says of these fields, packet by packet.
fn dissected(packets: &[Captured], fields: &[&str]) -> Vec<Vec<String>> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-r", "-", "-T", "fields", "-E", "separator=;", "-E", "occurrence=f"]);
    fields.iter().for_each(|field| {
        tshark.args(["-e", field]);
    });
    let pipes = tshark.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut tshark = pipes.expect("tshark must be installed: apt-get install tshark");
    let mut stdin = tshark.stdin.take().unwrap();
    let file = pcap(packets);
    let writer = std::thread::spawn(move || stdin.write_all(&file).unwrap());
    let output = tshark.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split(';').map(str::to_owned).collect()).collect()
}

#[test]
fn tshark_reads_sends_and_acks_without_payloads() {
    let fabric =
        Fabric::with_hosts(&[&[HCA_A], &[SWITCH], &[HCA_B]], &weft_device::DataPathOptions::default());
    let agents = in_service(&fabric);
    let mut capture = capture(&agents[0], ports(&[(HCA_A, 1, true)]));
    stream(&agents, 1, HCA_A, HCA_B);
    await_that(&agents[0], "packets have gone", || report(&agents[0], HCA_A, 1, true).packets > 300);
    assert_eq!(
        tell(&agents[0], HCA_A, weft_host::traffic::Command::Stop { flow: FlowId(1) }),
        Ok(Answer::Done)
    );
    let came = || report(running(&agents, HCA_B), HCA_B, 1, false).bytes;
    await_that(&agents[0], "all has come", || report(&agents[0], HCA_A, 1, true).bytes == came());
    let (packets, totals) = end_capture(&mut capture);
    assert_eq!((totals.packets, totals.lost), (packets.len() as u64, 0));
    let fields = [
        "infiniband.bth.opcode",
        "erf.flags.cap",
        "erf.wlen",
        "infiniband.lrh.slid",
        "infiniband.lrh.dlid",
        "infiniband.bth.psn",
        "infiniband.aeth.syndrome",
        "infiniband.invariant.crc",
        "_ws.malformed",
    ];
    let mut told = dissected(&packets, &fields);
    assert_eq!(told.len(), packets.len());
    let number = |text: &str| {
        let digits = text.trim_start_matches("0x");
        u64::from_str_radix(digits, if digits.len() == text.len() { 10 } else { 16 }).unwrap()
    };
    assert!(told.iter().all(|fields| fields[8].is_empty()), "{told:?}");
    // A reliable connection's SEND Only is 4, its acknowledgement 17 (IBA 9.2.1).
    told.retain(|fields| ["4", "17"].contains(&fields[0].as_str()));
    let (sends, acks): (Vec<_>, Vec<_>) = told.iter().partition(|fields| fields[0] == "4");
    assert!(sends.len() > 300 && !acks.is_empty(), "{} sends, {} acknowledgements", sends.len(), acks.len());
    for (at, send) in sends.iter().enumerate() {
        let told: Vec<u64> = send[1..6].iter().map(|text| number(text)).collect();
        assert_eq!(told[..4], [1, 8 + 12 + 2048 + 4 + 2, 1, 2]);
        assert_eq!(told[4], number(&sends[0][5]) + at as u64, "packet numbers follow each other");
    }
    for ack in acks {
        let told: Vec<u64> = ack[1..5].iter().map(|text| number(text)).collect();
        assert_eq!(told, [0, 8 + 12 + 4 + 4 + 2, 2, 1]);
        assert_eq!(number(&ack[6]) & 0x60, 0, "it acknowledges");
    }
    agents.into_iter().for_each(Running::stop);
}
