//! Subnet administration under anything that a member of the fabric may send.

use weft_machine::{Machine, Time};
use weft_sim::{SimOptions, Simulation};
use weft_sm::{Input, Output, SubnetManager};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_wire::{
    AddressedMad, Lid, Mad, Method, MgmtClass, RmppType, SA_CLASS_VERSION, SaMad, ServiceLevel, SmKey,
    sa_attribute,
};

/// A manager of a switch and two hosts.
fn manager() -> (SubnetManager, Time) {
    let fabric = xgft(&[2], &[1], &GenerateOptions::default()).expect("a fabric");
    let mut simulation = Simulation::new(&fabric, SimOptions::default(), 1);
    simulation.run_until(Time::from_millis(500));
    let now = simulation.now();
    (simulation.into_sm().expect("the manager runs"), now)
}

/// Any MADs, one after the other, by three programs: each request is answered at most once, in the right shape, and
/// one that needs no reading first exactly once.
pub fn administration(bytes: &[u8]) {
    let (mut manager, mut now) = manager();
    for chunk in bytes.chunks(256) {
        now += Time::from_millis(1);
        let mut mad = Mad::default();
        mad.0[..chunk.len()].copy_from_slice(chunk);
        SaMad::mgmt_class.set(&mut mad.0, MgmtClass::SubnAdm);
        if mad.0[2] & 0xfc == 0 {
            SaMad::class_version.set(&mut mad.0, SA_CLASS_VERSION);
        }
        let from = AddressedMad::gmp(Lid(u16::from(mad.0[15] % 3) + 1), ServiceLevel(0), mad);
        let before = manager.sa_counts();
        manager.handle_input(now, Input::Receive(from));
        let mut answers = Vec::new();
        while let Some(output) = manager.poll_output() {
            if let Output::Send(sent) = output
                && sent.mad.class() == MgmtClass::SubnAdm
                && sent.mad.method() != Method::Report
                && !is_control(&sent.mad)
            {
                answers.push(sent);
            }
        }
        let after = manager.sa_counts();
        assert!(after.requests + after.ignored <= before.requests + before.ignored + 1);
        let is_new = after.requests > before.requests;
        let reads = [
            sa_attribute::P_KEY_TABLE_RECORD,
            sa_attribute::VL_ARBITRATION_RECORD,
            sa_attribute::GUID_INFO_RECORD,
        ];
        // A service's GID may be an alias.
        let offers = (mad.method(), mad.attribute_id()) == (Method::Set, sa_attribute::SERVICE_RECORD);
        if is_new && !offers && !reads.contains(&mad.attribute_id()) {
            assert_eq!(answers.len(), 1, "{mad:?}");
        }
        if is_new {
            answers.iter().for_each(|answer| check(&from, answer));
        }
        manager.handle_timeout(now);
    }
    assert!(manager.progress().lids >= 3);
}

/// Whether it is an acknowledgement or the end of a transfer.
fn is_control(mad: &Mad) -> bool {
    mad.is_rmpp_active() && mad.rmpp().kind != RmppType::Data
}

/// An answer goes where the request came from, says which one it answers, and shows no key.
fn check(request: &AddressedMad, answer: &AddressedMad) {
    assert_eq!((answer.lid, answer.remote_qp), (request.lid, request.remote_qp));
    assert_eq!(answer.mad.transaction_id(), request.mad.transaction_id());
    assert_eq!(answer.mad.attribute_id(), request.mad.attribute_id());
    assert!(answer.mad.method().is_response());
    assert_eq!(SaMad::sm_key.get(&answer.mad.0), SmKey(0));
    if answer.mad.is_rmpp_active() {
        let header = answer.mad.rmpp();
        assert_eq!(answer.mad.method(), Method::GetTableResp);
        assert_eq!((header.kind, header.segment, header.first), (RmppType::Data, 1, true));
        assert!(header.length >= 20);
    }
}
