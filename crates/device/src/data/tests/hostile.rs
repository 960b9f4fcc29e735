//! Peers that lie about credit.

use weft_machine::Time;

use super::*;
use crate::{Frame, LaneAccount};

/// Xorshift64* (Vigna, 2016).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) * bound) >> 32
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

fn overruns(outputs: &[Output]) -> usize {
    outputs.iter().filter(|output| matches!(output, Output::Overrun { .. })).count()
}

fn small() -> DataPathOptions {
    DataPathOptions { buffer_packets: 2, ..shaped() }
}

/// Whatever the lanes hold, it fits, and everything is accounted for. What a liar may send by its own count does not.
fn fits(bench: &Bench) {
    let account = bench.device.data_account();
    assert!(account.lanes.iter().all(LaneAccount::is_balanced), "{:?}", account.lanes);
    for buffer in &account.buffers {
        assert!(buffer.occupied <= buffer.size, "{buffer:?}");
    }
}

#[test]
fn a_lying_peer_cannot_overfill_an_input_buffer() {
    let mut bench = data_switch(2, small());
    let size = 2 * 66;
    // Nothing leaves by port 2, and the peer of port 1 says before each packet that it has sent nothing yet.
    for _ in 0..size / BLOCKS {
        bench.credit(ONE, 0, 0, 0);
        assert_eq!(overruns(&arrive(&mut bench, 1, packet(1, 2, 0))), 0);
        fits(&bench);
    }
    bench.credit(ONE, 0, 0, 0);
    let outputs = arrive(&mut bench, 1, packet(1, 2, 0));
    assert_eq!((overruns(&outputs), drop_reason(&outputs)), (1, Some(DropReason::BufferOverrun)));
    let counted = counters(&bench, 1);
    assert_eq!((counted.port_buffer_overrun_errors, counted.excessive_buffer_overrun_errors), (1, 1));
    fits(&bench);
}

#[test]
fn a_peer_that_overstates_its_sends_gets_fresh_credit() {
    let mut bench = data_switch(2, small());
    let told = credits(&bench.credit(ONE, 0, 2 * 66 + 1, 0));
    // A cable that was wrong once does not stand still.
    assert_eq!(told.iter().map(|(_, told)| told.fccl).collect::<Vec<u16>>(), [4 * 66 + 1]);
    assert_eq!(overruns(&arrive(&mut bench, 1, packet(1, 2, 0))), 0);
    bench.input(Input::LinkDown { port: ONE });
    fits(&bench);
}

fn wild_packet(dice: &mut Dice) -> DataPacket {
    let opcodes = [opcode::RC_SEND_ONLY, opcode::UD_SEND_ONLY, opcode::RC_ACKNOWLEDGE, 0xff];
    let payload = [0, 16, 2048, 2048, 2048, 4096, 8152, 0xfffc][dice.below(8) as usize];
    let p_key = if dice.one_in(8) { dice.below(1 << 16) as u16 } else { PKey::DEFAULT_FULL.0 };
    DataPacket {
        slid: Lid(dice.below(1 << 16) as u16),
        dlid: Lid(if dice.one_in(6) {
            dice.below(1 << 16) as u16
        } else {
            [1, 2, 3, 7][dice.below(4) as usize]
        }),
        vl: VirtualLane(if dice.one_in(6) { dice.below(256) as u8 } else { dice.below(2) as u8 }),
        service_level: ServiceLevel(if dice.one_in(6) {
            dice.below(256) as u8
        } else {
            dice.below(16) as u8
        }),
        opcode: opcodes[dice.below(4) as usize],
        dest_qp: QpNum(dice.below(1 << 32) as u32),
        src_qp: QpNum(dice.below(1 << 32) as u32),
        p_key: PKey(p_key),
        psn: dice.below(1 << 32) as u32,
        fecn: dice.one_in(2),
        becn: dice.one_in(2),
        payload,
        ..DataPacket::default()
    }
}

fn wild_credit(dice: &mut Dice) -> FlowControl {
    // Some are beyond what the wire has bits for.
    let most = if dice.one_in(9) { 1 << 16 } else { 4096 };
    let (fctbs, fccl) = (dice.below(most) as u16, dice.below(most) as u16);
    let vl = VirtualLane(if dice.one_in(3) { dice.below(18) as u8 } else { dice.below(2) as u8 });
    FlowControl { op: dice.below(4) as u8, fctbs, vl, fccl }
}

/// From a seed: packets and flow control without any sense, links that come and go, and time.
fn besiege(mut bench: Bench, ports: u64, seed: u64) -> usize {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut refused = 0;
    for _ in 0..4000 {
        let port = PortNum(dice.below(ports + 2) as u8);
        let outputs = match dice.below(40) {
            0..20 => bench.input(Input::Arrive { port, frame: Frame::Data(wild_packet(&mut dice)) }),
            20..36 => bench.input(Input::Arrive { port, frame: Frame::Credit(wild_credit(&mut dice)) }),
            36 if dice.one_in(20) => bench.input(Input::LinkDown { port }),
            36 | 37 if (1..=ports).contains(&port.0.into()) => bench.link_up(port),
            _ => {
                let end = bench.now + Time::from_nanos(dice.below(100_000));
                pass(&mut bench, end)
            }
        };
        assert!(outputs.len() < 1000, "WEFT_SEED={seed}: one input causes so much");
        refused += overruns(&outputs);
        fits(&bench);
    }
    refused
}

#[test]
#[expect(clippy::disallowed_macros, reason = "a randomised test prints its seed")]
fn no_peer_makes_a_device_panic_or_hold_more_than_fits() {
    let seeds = match std::env::var("WEFT_SEED") {
        Ok(seed) => vec![seed.parse().expect("WEFT_SEED is a number")],
        Err(_) => (1..=12).collect::<Vec<u64>>(),
    };
    let mut refused = 0;
    for seed in seeds {
        println!("WEFT_SEED={seed}");
        refused += besiege(data_switch(3, small()), 3, seed);
        let limit = DataPathOptions { host_limit_mbps: 1000, ..small() };
        refused += besiege(data_hca(limit), 1, seed);
    }
    assert!(refused > 0, "some of it was too much");
}
