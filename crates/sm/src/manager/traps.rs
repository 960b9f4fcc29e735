//! Traps: what devices say of their own accord. Each is repressed at once and judged for news.

use std::collections::BTreeMap;

use weft_mgmt::{DirectedPath, Request, SmpRoute};
use weft_wire::{AddressedMad, Lid, MKey, Method, Notice, Smp, TransactionId, TrapNumber};

/// The most LIDs whose last traps are kept.
const SENDERS_MAX: usize = 1 << 16;

/// The last trap of every sender, so that one sent again, because its repression was lost, is known as such.
#[derive(Debug, Default)]
pub(crate) struct TrapLog {
    last: BTreeMap<Lid, (TransactionId, TrapNumber)>,
}

/// A trap as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trap {
    pub(crate) number: TrapNumber,
    pub(crate) lid: Lid,
}

impl TrapLog {
    /// Reads a trap, and says whether it is another than the last one of this sender.
    pub(crate) fn note(&mut self, received: &AddressedMad) -> Option<(Trap, bool)> {
        let notice = Notice::from_smp_data(received.mad.smp_data());
        let lid = if notice.issuer_lid.is_unicast() { notice.issuer_lid } else { received.lid };
        if !notice.is_generic || !lid.is_unicast() {
            return None;
        }
        let this = (received.mad.transaction_id(), notice.trap_number);
        let full = self.last.len() >= SENDERS_MAX && !self.last.contains_key(&lid);
        let new = full || self.last.insert(lid, this) != Some(this);
        Some((Trap { number: notice.trap_number, lid }, new))
    }

    /// Forgets all: a sweep answers everything that came before it, and a device that restarts counts again.
    pub(crate) fn clear(&mut self) {
        self.last.clear();
    }
}

/// Tells the sender that its trap was heard: the same transaction and notice go back (IBA 13.4.9).
pub(crate) fn repress(received: &AddressedMad, m_key: MKey) -> Option<AddressedMad> {
    let mut mad = received.mad;
    if mad.is_directed() || !received.lid.is_unicast() {
        return None;
    }
    Smp::method.set(&mut mad.0, Method::TrapRepress);
    Smp::m_key.set(&mut mad.0, m_key);
    Some(AddressedMad::smp(received.lid, mad))
}

/// The same to a sender that no LID leads to.
pub(crate) fn repress_along(
    received: &AddressedMad,
    path: &DirectedPath,
    m_key: MKey,
) -> Option<AddressedMad> {
    let mad = repress(received, m_key)?.mad;
    Some(Request::of(mad).by(&SmpRoute::Directed(*path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_wire::{AttributeId, Details, Mad, MgmtClass, NodeType, trap};

    fn trap_mad(lid: Lid, id: u64) -> AddressedMad {
        let mut mad = Mad::default();
        Smp::mgmt_class.set(&mut mad.0, MgmtClass::SubnLid);
        Smp::method.set(&mut mad.0, Method::Trap);
        Smp::attribute_id.set(&mut mad.0, AttributeId::Notice);
        Smp::transaction_id.set(&mut mad.0, TransactionId(id));
        let notice = Notice::generic(NodeType::Switch, lid, &Details::link_state_change(lid));
        mad.set_smp_data(&notice.to_smp_data());
        AddressedMad::smp(lid, mad)
    }

    #[test]
    fn a_trap_sent_again_is_no_news() {
        let mut log = TrapLog::default();
        let trap = Trap { number: trap::LINK_STATE_CHANGE, lid: Lid(7) };
        assert_eq!(log.note(&trap_mad(Lid(7), 1)), Some((trap, true)));
        assert_eq!(log.note(&trap_mad(Lid(7), 1)), Some((trap, false)));
        assert!(log.note(&trap_mad(Lid(8), 1)).unwrap().1);
        assert_eq!(log.note(&trap_mad(Lid(7), 2)), Some((trap, true)));
        log.clear();
        assert_eq!(log.note(&trap_mad(Lid(7), 2)), Some((trap, true)));
    }

    #[test]
    fn a_repression_is_the_trap_sent_back() {
        let received = trap_mad(Lid(7), 0xabc);
        let repression = repress(&received, MKey(0x77)).unwrap();
        assert_eq!((repression.lid, repression.mad.method()), (Lid(7), Method::TrapRepress));
        assert_eq!(repression.mad.transaction_id(), TransactionId(0xabc));
        assert_eq!(Smp::m_key.get(&repression.mad.0), MKey(0x77));
        assert_eq!(repression.mad.smp_data(), received.mad.smp_data());
    }

    #[test]
    fn nonsense_is_neither_news_nor_repressed() {
        let mut log = TrapLog::default();
        let nobody = trap_mad(Lid(0), 1);
        assert_eq!(log.note(&nobody), None);
        assert_eq!(repress(&nobody, MKey(0)), None);
        let empty = AddressedMad::smp(Lid(1), Mad::default());
        assert_eq!(log.note(&empty), None);
    }
}
