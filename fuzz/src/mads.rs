//! Targets for what stands between a port and a program: RMPP and the MAD layer.

use weft_host::mad::{Address, AgentId, AgentRequest, Input, Limits, MadLayer, Output};
use weft_machine::{Machine, Time};
use weft_mgmt::rmpp::{Endpoint, InboxLimits, OutboxLimits, Timing};
use weft_wire::{
    AddressedMad, Lid, Mad, MethodMask, MgmtClass, Oui, QKey, QpNum, RMPP_AT, RMPP_END, RMPP_VERSION,
    ServiceLevel,
};

/// RMPP packets of any kind in any order: few answers to each, and no more memory than allowed.
pub fn rmpp(bytes: &[u8]) {
    let inbox = InboxLimits {
        transfers: 4,
        message_bytes: 3000,
        bytes: 6000,
        window: 8,
        lingering: 4,
        ..InboxLimits::default()
    };
    let outbox = OutboxLimits { transfers: 4, message_bytes: 5000, bytes: 9000, ..OutboxLimits::default() };
    let mut endpoint = Endpoint::new(outbox, inbox);
    let mut now = Time::ZERO;
    for chunk in bytes.chunks_exact(16) {
        let [dt, lid, method, class, ..] = *chunk else { break };
        now += Time::from_millis(u64::from(dt) * 20);
        let mut mad = Mad([chunk[15]; 256]);
        mad.0[..24].fill(0);
        mad.0[1] = [0x03, 0x06, 0x32, 0x10][usize::from(class & 3)];
        mad.0[3] = method;
        mad.0[RMPP_AT..RMPP_END].copy_from_slice(&chunk[4..]);
        let mad = AddressedMad::gmp(Lid(u16::from(lid & 3)), ServiceLevel(0), mad);
        if class & 0x80 != 0 {
            let length = 36 + usize::from(class & 0x7f) * 30;
            let message = mad.mad.0.iter().copied().cycle().take(length).collect();
            let _ = endpoint.offer(now, &mad, message, &Timing::default());
        } else if let Some(received) = endpoint.handle(now, &mad) {
            assert!(received.data.len() <= 3000 + 256);
        }
        endpoint.handle_timeout(now);
        let said = std::iter::from_fn(|| endpoint.poll_transmit(now)).count();
        assert!(said <= 64, "{said} packets at once");
        while endpoint.poll_finished().is_some() {}
        assert!(endpoint.inbox.receiving() <= 4 && endpoint.inbox.bytes() <= 6000);
        assert!(endpoint.outbox.len() <= 4 && endpoint.outbox.bytes() <= 9000);
        assert!(endpoint.next_timer().is_none_or(|timer| timer.at > now), "nothing is overdue");
    }
}

/// A program and a device that say anything to a MAD layer.
pub fn mad_layer(bytes: &[u8]) {
    let limits = Limits {
        agents: 4,
        sends: 8,
        message_bytes: 3000,
        send_bytes: 9000,
        receives: 4,
        receive_bytes: 6000,
    };
    let mut layer = MadLayer::new(limits);
    let mut now = Time::ZERO;
    for chunk in bytes.chunks_exact(48) {
        let [operation, a, b, c, ..] = *chunk else { break };
        let agent = AgentId(u32::from(a & 7));
        let mut mad = Mad::default();
        mad.0[..40].copy_from_slice(&chunk[8..]);
        let input = match operation % 6 {
            0 => Input::Register { request: u64::from(a), registration: request(chunk) },
            1 => Input::Unregister { agent },
            2 => Input::Claimed { agent, granted: b & 1 != 0 },
            3 => {
                let length = usize::from(u16::from_be_bytes([chunk[4], chunk[5]]) % 3500);
                let data = mad.0.iter().copied().cycle().take(length).collect();
                let (timeout_ms, retries) = (u32::from(b) * 10, u32::from(c & 3));
                Input::Send { agent, address: address(chunk[6]), timeout_ms, retries, data }
            }
            _ => Input::Receive(address(chunk[6]).with(QpNum::GSI, mad)),
        };
        layer.handle_input(now, input);
        drain(&mut layer, now);
        now += Time::from_millis(u64::from(chunk[7]));
        layer.handle_timeout(now);
        drain(&mut layer, now);
        assert!(layer.outstanding() <= limits.sends);
        assert!(layer.poll_timeout().is_none_or(|due| due > now), "nothing is overdue");
    }
}

fn request(chunk: &[u8]) -> AgentRequest {
    let methods = chunk[16..32].try_into().map_or(0, u128::from_be_bytes);
    AgentRequest {
        qp: QpNum(u32::from(chunk[2] & 1)),
        class: MgmtClass::from_code(chunk[3]),
        class_version: chunk[4] & 15,
        oui: Oui(u32::from(chunk[5])),
        methods: MethodMask(methods),
        rmpp_version: chunk[6] & RMPP_VERSION,
    }
}

fn address(lid: u8) -> Address {
    Address {
        lid: Lid(u16::from(lid & 3)),
        qp: QpNum::GSI,
        qkey: QKey::GSI,
        service_level: ServiceLevel(0),
        pkey_index: 0,
    }
}

/// Grants half of what the layer asks of the device, and looks at the rest.
fn drain(layer: &mut MadLayer, now: Time) {
    let mut said = 0;
    while let Some(output) = layer.poll_output() {
        said += 1;
        match output {
            Output::Claim { agent, .. } => {
                layer.handle_input(now, Input::Claimed { agent, granted: agent.0 & 1 == 0 });
            }
            Output::Deliver { status: 0, data, .. } => assert!((40..=3256).contains(&data.len())),
            Output::Deliver { data, .. } => assert_eq!(data.len(), 24),
            _ => {}
        }
    }
    assert!(said <= 600, "{said} outputs at once");
}
