//! Names of virtual machines whose GUID is that of the function that they are in (thesis 004, lines 2569–2573): a machine offers its name
//! to subnet administration, and its peers look it up again.
//!
//! ```text
//!   the port is up, or another:   SubnAdmGet(ServiceRecord, the name) ──▶ another GID: SubnAdmDelete(that record) ──▶ gone
//!                                      └─ none, or its own ──────────────▶ SubnAdmSet(ServiceRecord, its own GID) ◀──┘
//!   a peer without answers:       SubnAdmGet(ServiceRecord, the name) ──▶ GUID ──▶ SubnAdmGet(PathRecord)
//! ```
//!
//! A machine that has moved may leave its record behind, and its lease never ends; the record of one that is destroyed, or lost with its host,
//! goes with its function when the subnet manager finds that gone. Whoever offers the name withdraws what is there, and waits for the answer,
//! so that a peer never finds both. One that asks in between finds none, and asks again after its next acknowledgement timeout. Whatever is
//! refused or not answered is begun again after a while, with the first question.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::{AddressedMad, Guid, PortFacts, SaMad, SaRecord, ServiceRecord, sa_status};

use super::sa::Question;
use super::sender::{Phase, Target};
use super::{Stack, lanes};

/// The ServiceID of machines' names: an ID of the local administrator (annex A3.2.3.4 of the architecture), "weft" and 1.
pub const SERVICE_OF_NAMES: u64 = 0x0200_7765_6674_0001;

weft_wire::named! {
    /// Whether a virtual machine keeps its GUID when it moves (paper 004, section III).
    #[derive(Default)]
    pub enum Guids {
        /// A machine takes its GUID along.
        #[default]
        Static = "static",
        /// GUIDs stay with virtual functions: a machine that moves has another one, and its peers look its name up.
        Dynamic = "dynamic",
    }
}

/// The name that a machine offers, and with which GUID it has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Offer {
    /// Empty where nothing is offered.
    name: String,
    is_wanted: bool,
    /// Whether subnet administration has confirmed it.
    stands: bool,
    /// Whether it was refused, or not answered.
    has_failed: bool,
    /// The GUID of the record that subnet administration has, or may have.
    offered: Option<Guid>,
}

impl Offer {
    /// The name is to be offered again: the port is another, or the manager may have forgotten it.
    pub(super) fn renew(&mut self) {
        (self.is_wanted, self.stands, self.has_failed) = (!self.name.is_empty(), false, false);
    }

    /// What failed is to be tried again. Whether there is anything.
    pub(super) fn retry(&mut self) -> bool {
        let is_due = std::mem::take(&mut self.has_failed);
        self.is_wanted |= is_due;
        is_due
    }

    /// No one will answer any more what was asked.
    pub(super) fn forget_question(&mut self) {
        self.is_wanted |= !self.name.is_empty() && !self.stands;
    }
}

/// A record of a name.
fn record(facts: &PortFacts, name: &str, guid: Guid) -> ServiceRecord {
    let mut service_name = [0; 64];
    let bytes = name.as_bytes();
    let length = bytes.len().min(service_name.len());
    service_name[..length].copy_from_slice(&bytes[..length]);
    ServiceRecord {
        service_id: SERVICE_OF_NAMES,
        service_gid: weft_wire::Gid { prefix: facts.gid_prefix, guid },
        service_p_key: weft_wire::PKey::DEFAULT_FULL,
        service_lease: ServiceRecord::LEASE_INFINITE,
        service_name,
        ..ServiceRecord::default()
    }
}

/// The record in an answer.
fn service_in(mad: &AddressedMad) -> ServiceRecord {
    ServiceRecord::from_bytes(&SaMad::data.get(&mad.mad.0))
}

/// The GUID in the answer to a name, or why there is none.
pub(super) fn guid_in(mad: &AddressedMad) -> Result<Guid, String> {
    let (guid, status) = (service_in(mad).service_gid.guid, mad.mad.status());
    let is_there = status == 0 && guid != Guid(0);
    is_there
        .then_some(guid)
        .ok_or_else(|| format!("SA status {status:#06x} for its name; does the machine run?"))
}

impl Stack {
    /// The machine offers this name, where GUIDs stay with functions.
    pub fn offer_name(&mut self, name: &str) {
        if self.options.guids == Guids::Dynamic && self.offer.name != name {
            self.offer = Offer { name: name.to_owned(), ..Offer::default() };
            self.offer.renew();
            self.asks_due = true;
        }
    }

    /// Asks for the GUID of a path by name, if that is to be asked for. Whether it could be; `None` where it is not.
    pub(super) fn ask_name(&mut self, place: u32) -> Option<bool> {
        let name = self.paths.get(place)?.wanted_name()?.to_owned();
        self.suspension.counts.names_asked += 1;
        let wanted = record(&self.facts, &name, Guid(0));
        Some(self.sa.ask_service(
            &self.facts,
            Question::Name(place),
            &["service_id", "service_name"],
            &wanted,
        ))
    }

    /// Asks who has the name that is to be offered.
    pub(super) fn ask_to_offer(&mut self, now: Time) {
        if !std::mem::take(&mut self.offer.is_wanted) {
            return;
        }
        let wanted = record(&self.facts, &self.offer.name, Guid(0));
        let names = ["service_id", "service_name"];
        if !self.sa.ask_service(&self.facts, Question::Holder, &names, &wanted) {
            self.offered(now, false);
        }
    }

    /// Takes the answer to who has the name: another port's record is withdrawn before the name is offered.
    pub(super) fn take_holder(&mut self, now: Time, answer: &AddressedMad) {
        let known = service_in(answer);
        let goes_on = match answer.mad.status() {
            0 if known.service_gid.guid != self.facts.guid => self.sa.withdraw(&self.facts, &known),
            0 | sa_status::NO_RECORDS => self.set_offer(),
            _ => false,
        };
        if !goes_on {
            self.offered(now, false);
        }
    }

    /// Takes the answer to what was withdrawn, if there is one. A record that is not there is withdrawn.
    pub(super) fn take_withdrawn(&mut self, now: Time, status: Option<u16>) {
        let is_gone = matches!(status, Some(0 | sa_status::NO_RECORDS));
        // A machine that ends offers nothing any more.
        if !(self.offer.name.is_empty() || is_gone && self.set_offer()) {
            self.offered(now, false);
        }
    }

    /// Offers the name. Whether it could be asked.
    fn set_offer(&mut self) -> bool {
        let (facts, name) = (&self.facts, &self.offer.name);
        let names = ["service_id", "service_gid", "service_p_key", "service_lease", "service_name"];
        let is_asked = self.sa.ask_service(facts, Question::Offer, &names, &record(facts, name, facts.guid));
        self.offer.offered = Some(facts.guid).filter(|_| is_asked).or(self.offer.offered);
        is_asked
    }

    /// Subnet administration has taken the offer, or has not: it is made again after a while.
    pub(super) fn offered(&mut self, now: Time, stands: bool) {
        (self.offer.stands, self.offer.has_failed) = (stands, !stands);
        match stands {
            true => self.suspension.counts.names_offered += 1,
            false => self.fail(now),
        }
    }

    /// Withdraws the name, for a machine that ends.
    pub(super) fn withdraw_offer(&mut self) {
        let offer = std::mem::take(&mut self.offer);
        if let Some(guid) = offer.offered {
            self.sa.withdraw(&self.facts, &record(&self.facts, &offer.name, guid));
        }
    }

    /// Takes the answer to a name, or why there is no GUID.
    pub(super) fn take_name(&mut self, now: Time, place: u32, found: Result<Guid, String>) {
        let guid = found.as_ref().ok().copied();
        self.suspension.counts.names_moved += u64::from(self.paths.take_name(place, guid));
        let is_nowhere = self.paths.get(place).is_some_and(|path| path.address().is_none());
        if let Err(why) = found
            && is_nowhere
        {
            self.fail_path(now, place, why);
        }
        self.asks_due = true;
    }

    /// The port of a path by name is another one, and the way there is known: what was lost is sent again at once.
    pub(super) fn repeat_if_moved(&mut self, now: Time, path: u32) {
        if !self.paths.take_moved(path) {
            return;
        }
        let rules = self.rules;
        for place in self.flows.all() {
            let Some(sender) = self.flows.sender(place) else { continue };
            let leads_there = sender.target == Target::One(path) && sender.phase == Phase::Active;
            if leads_there && sender.repeat(now, &rules) {
                lanes::arm_expiry(sender, place, &mut self.timers);
                self.dequeue(place);
                self.wake(now, place);
            }
        }
    }
}
