//! Clients of an agent over QUIC.

use common::{Fabric, HCA_A, PATIENCE, Running, SWITCH, end, port_end};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;
use weft_agent_config::SlotConfig;
use weft_control::fault::Damage;
use weft_control::vm::{VmOrder, VmStep};
use weft_control::{
    Answer, ErrorCode, EventFilter, HexGuid, Incarnation, Page, ReplyBody, ReplyLine, Request, RequestLine,
    Role,
};
use weft_link::{Authority, Credentials, Identity, Protocol, visit};
use weft_wire::Guid;

use crate::common;

/// What an agent answers to one request after the other, or `None` where it sends the client away.
pub(crate) fn ask(
    agent: &Running,
    node: Guid,
    identity: &Identity,
    requests: &[Request],
) -> Option<Vec<ReplyBody>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let credentials = Credentials::new(identity.clone()).unwrap();
        let visited = visit(agent.config.part.bind, node, &credentials, Protocol::Control).await;
        let mut visit = visited.ok()?;
        let mut replies = Vec::new();
        for (id, request) in (0..).zip(requests) {
            let line = RequestLine { id, request: request.clone() }.to_line();
            visit.send.write_all(line.as_bytes()).await.ok()?;
            let mut reply = String::new();
            let mut reader = BufReader::new(&mut visit.receive);
            let read = timeout(PATIENCE, reader.read_line(&mut reply)).await.unwrap();
            if read.is_err() || reply.is_empty() {
                return None;
            }
            replies.push(ReplyLine::parse(reply.trim_end().as_bytes()).unwrap().body);
        }
        visit.end().await;
        Some(replies)
    })
}

fn cut() -> Request {
    let damage = Damage::Unplugged(port_end(end(SWITCH, 2)));
    Request::SetFault { id: "f1".parse().unwrap(), damage, for_ms: None }
}

#[test]
fn a_viewer_looks_and_an_operator_breaks() {
    let fabric = Fabric::spread();
    let agents = fabric.start();
    agents[1].await_link(end(SWITCH, 1), true);
    agents[1].await_link(end(SWITCH, 2), true);
    let viewer = fabric.authority.issue_role("viewer", &[]).unwrap();
    let replies = ask(&agents[1], SWITCH, &viewer, &[Request::Hello, Request::AgentStatus, cut()]).unwrap();
    let [ReplyBody::Answer(hello), ReplyBody::Answer(status), ReplyBody::Error(refused)] = &replies[..]
    else {
        panic!("{replies:?}")
    };
    assert!(matches!(&**hello, Answer::Hello(hello) if hello.role == Role::Viewer), "{hello:?}");
    assert!(matches!(&**status, Answer::AgentStatus(status) if status.links_up == 2), "{status:?}");
    assert_eq!(refused.code, ErrorCode::Forbidden);
    assert!(agents[1].port(end(SWITCH, 2)).plugged);
    let operator = fabric.authority.issue_role("operator", &[]).unwrap();
    let replies = ask(&agents[1], SWITCH, &operator, &[cut()]).unwrap();
    assert_eq!(replies, [ReplyBody::Answer(Box::new(Answer::Done))]);
    assert!(!agents[1].port(end(SWITCH, 2)).plugged);
    agents.into_iter().for_each(Running::stop);
}

/// A VM manager's certificate lets it look and order slots, and nothing else: not what an operator orders.
#[test]
fn a_vm_manager_orders_slots_alone() {
    let mut fabric = Fabric::spread();
    let slot = SlotConfig { guid: HCA_A, empty: true };
    fabric.agents[0].part.slots = vec![slot];
    let agents = fabric.start();
    let vmm = fabric.authority.issue_role("vmm", &[HCA_A]).unwrap();
    let may = [
        Request::Hello,
        Request::VmGeneration { generation: 1, manager: String::new() },
        Request::Slots(Page::default()),
        // The last one: events would come between the answers.
        Request::Events(EventFilter::default()),
    ];
    let replies = ask(&agents[0], HCA_A, &vmm, &may).unwrap();
    assert!(replies.iter().all(|reply| matches!(reply, ReplyBody::Answer(_))), "{replies:?}");
    let ReplyBody::Answer(hello) = &replies[0] else { panic!("{replies:?}") };
    assert!(matches!(&**hello, Answer::Hello(hello) if hello.role == Role::VmManager), "{hello:?}");

    // What is wrong with an order is for the slot to say.
    let (incarnation, slot, vm) = (Incarnation(1), HexGuid(HCA_A), "web".to_owned());
    let order = VmOrder {
        incarnation,
        generation: 1,
        manager: String::new(),
        slot,
        vm,
        epoch: 1,
        step: VmStep::Reserve,
    };
    let replies = ask(&agents[0], HCA_A, &vmm, &[Request::Vm(Box::new(order))]).unwrap();
    let [ReplyBody::Error(refused)] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!(refused.code, ErrorCode::Conflict, "{refused:?}");

    let list = String::new();
    let may_not = [
        cut(),
        Request::Shutdown,
        Request::Revoke { list },
        Request::RenewIdentity,
        Request::Begin,
        Request::SetLogFilter { filter: "trace".into() },
    ];
    for reply in ask(&agents[0], HCA_A, &vmm, &may_not).unwrap() {
        let ReplyBody::Error(refused) = reply else { panic!("{reply:?}") };
        assert_eq!(refused.code, ErrorCode::Forbidden);
        assert!(refused.message.contains("needs the operator role"), "{refused:?}");
    }
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn strangers_and_agents_are_sent_away_and_the_links_do_not_mind() {
    let fabric = Fabric::spread();
    let agents = fabric.start();
    agents[0].await_link(end(HCA_A, 1), true);
    let stranger = Authority::new("test").unwrap().issue_role("operator", &[]).unwrap();
    let neighbour = fabric.authority.issue(&[SWITCH]).unwrap();
    let unknown = fabric.authority.issue_role("janitor", &[]).unwrap();
    for identity in [&stranger, &neighbour, &unknown] {
        assert_eq!(ask(&agents[0], HCA_A, identity, &[Request::Hello]), None);
    }
    // A client that means another agent does not talk to this one.
    let operator = fabric.authority.issue_role("operator", &[]).unwrap();
    assert_eq!(ask(&agents[0], SWITCH, &operator, &[Request::Hello]), None);
    assert!(ask(&agents[0], HCA_A, &operator, &[Request::Hello]).is_some());
    let counts = agents[0].status().counts;
    assert_eq!((counts["visitors"], counts["visitors_without_role"]), (1, 2), "{counts:?}");
    assert!(agents[0].port(end(HCA_A, 1)).link_up);
    assert_eq!(agents[0].port(end(HCA_A, 1)).totals.link_downed, 0);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn a_crowd_is_served_in_turns_and_leaves_no_trace() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    drop(agents[0].client());
    let viewer = fabric.authority.issue_role("viewer", &[]).unwrap();
    for _ in 0..100 {
        assert!(ask(&agents[0], HCA_A, &viewer, &[Request::Health]).is_some());
    }
    agents.into_iter().for_each(Running::stop);
}
