//! Search for the subnet manager, and for its knowledge of moves.
//!
//! ```text
//!   PortInfo of the own port ─▶ ClassPortInfo of its port ─▶ Get(VmMove) without the key ─┬─ denied ──────────────▶ it knows moves
//!          ▲                        ▲ status 0                                            ├─ 0x000C ──────────────▶ it does not
//!          │                        └────────────── silence, less than five times ◀───────┤
//!          └──── anything else, after a pause ◀───────────────────────────────────────────┘   silence five times ─▶ it does not
//! ```
//!
//! OpenSM drops what it does not know. A dead subnet manager is silent, too, or its port says that it has no subnet administration
//! (0x0004), and one that has just taken over is busy. So silence counts only between two ClassPortInfos of status 0.

use weft_machine::Time;
use weft_mgmt::{own_port, subnet_administration};
use weft_wire::{AddressedMad, AttributeId, Method, MgmtClass, PortInfo, sa_attribute, status};

use super::{AGAIN, Key, SaClient, SubnetManager, answer};

/// This many questions without an answer, each between two answers of the same port, are what one says that drops the attribute. A
/// lossy fabric loses fewer in a row.
const SILENT: u32 = 5;

/// Whether the subnet manager knows moves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Known {
    /// Nothing.
    #[default]
    Unknown,
    /// The own port is asked for its LID.
    Finding,
    /// Its port is asked.
    Asking(Asking),
    /// It knows the attribute.
    Moves(SubnetManager),
    /// It does not.
    MovesNot(SubnetManager),
    /// No one could be asked, and it is tried again then.
    Again(Time),
}

/// A port that is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    sm: SubnetManager,
    /// How often it was silent to the attribute.
    silent: u32,
    /// Whether it said that it is busy. Transactions drop that.
    is_busy: bool,
}

/// What a port is called that answers with a status for subnet administration that it does not have.
pub(super) fn without(mad: &AddressedMad) -> String {
    let (lid, status) = (mad.lid, mad.mad.status());
    match status {
        status::BAD_VERSION => format!("no subnet manager runs at LID {lid} any more (status {status:#06x})"),
        _ => format!("LID {lid} answers with status {status:#06x}"),
    }
}

impl SaClient {
    /// Asks the own port who the subnet manager is.
    pub(super) fn find(&mut self) {
        let Some(request) = self.own_port() else { return };
        if self.probes.offer(Key::OwnPort, request).is_ok() {
            self.known = Known::Finding;
        }
    }

    /// A question for the own port.
    pub(super) fn own_port(&self) -> Option<AddressedMad> {
        Some(own_port(self.port?, self.m_key))
    }

    /// The own port says who the subnet manager is.
    pub(super) fn found(&mut self, now: Time, info: &PortInfo) {
        let sm = SubnetManager { lid: info.master_sm_lid, sl: info.master_sm_sl };
        if !sm.lid.is_unicast() {
            return self.no_one(now, "no subnet manager has configured this VM manager's port".to_owned());
        }
        self.is_it_served(now, Asking { sm, silent: 0, is_busy: false });
    }

    /// Asks whether there is subnet administration at a port.
    fn is_it_served(&mut self, now: Time, asking: Asking) {
        self.known = Known::Asking(asking);
        self.probe(now, Key::ClassPortInfo, AttributeId::ClassPortInfo);
    }

    fn probe(&mut self, now: Time, key: Key, attribute: AttributeId) {
        let Known::Asking(Asking { sm, .. }) = self.known else { return };
        let mad = subnet_administration(sm.lid, sm.sl, Method::Get, attribute, 0, &[]);
        let requests = if key == Key::Probe { &mut self.singles } else { &mut self.probes };
        if requests.offer(key, mad).is_err() {
            self.no_one(now, "too many questions wait".to_owned());
        }
    }

    /// No one can be asked now.
    pub(super) fn no_one(&mut self, now: Time, why: String) {
        self.trouble = why;
        // Where no question waits the next look at the own port begins again.
        self.known = if self.waiting.is_empty() { Known::Unknown } else { Known::Again(now + AGAIN) };
    }

    /// Subnet administration has answered ClassPortInfo.
    pub(super) fn served(&mut self, now: Time, mad: &AddressedMad) {
        let Known::Asking(asking) = self.known else { return };
        if mad.mad.status() != status::OK || mad.lid != asking.sm.lid {
            self.no_one(now, without(mad));
        } else if asking.silent >= SILENT {
            self.known = Known::MovesNot(asking.sm);
        } else {
            self.probe(now, Key::Probe, sa_attribute::VM_MOVE);
        }
    }

    /// Notes that a port is busy: that is no silence, and it has taken over or is about to be done with something. What waits for it waits
    /// longer.
    pub(super) fn note_busy(&mut self, now: Time, mad: &AddressedMad) {
        if let Known::Asking(asking) = &mut self.known
            && mad.lid == asking.sm.lid
            && mad.mad.class() == MgmtClass::SubnAdm
            && mad.mad.status() & status::BUSY != 0
        {
            asking.is_busy = true;
            let until = now + self.ask_for;
            self.jobs.values_mut().for_each(|job| job.until = job.until.max(until).min(job.at_most));
        }
    }

    /// What a port has said to the attribute, which it had no key for.
    pub(super) fn probed(&mut self, now: Time, mad: Option<&AddressedMad>) {
        let Known::Asking(asking) = self.known else { return };
        let sm = asking.sm;
        match mad {
            Some(mad) if mad.lid != sm.lid => self.no_one(now, without(mad)),
            Some(mad) if answer::knows(mad) => self.known = Known::Moves(sm),
            Some(mad) if mad.mad.status() == status::BAD_METHOD_ATTRIBUTE => {
                self.known = Known::MovesNot(sm);
            }
            Some(mad) => self.no_one(now, without(mad)),
            None if asking.is_busy => {
                self.no_one(now, format!("the subnet manager at LID {} is busy", sm.lid));
            }
            None => self.is_it_served(now, Asking { silent: asking.silent + 1, ..asking }),
        }
    }

    /// Sees to questions about the subnet manager that were not answered.
    pub(super) fn expire_probes(&mut self, now: Time) {
        while let Some(failed) = self.probes.poll_failed(now) {
            match (failed.key, self.known) {
                (Key::OwnPort, _) => self.no_one(now, "the VM manager's own port does not answer".to_owned()),
                (Key::ClassPortInfo, Known::Asking(Asking { sm, is_busy, .. })) => {
                    let says = if is_busy { "is busy" } else { "does not answer" };
                    self.no_one(now, format!("the subnet manager at LID {} {says}", sm.lid));
                }
                (Key::Beat, _) => self.forget(),
                _ => {}
            }
        }
        while self.singles.poll_failed(now).is_some() {
            self.probed(now, None);
        }
    }
}
