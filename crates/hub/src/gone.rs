//! Virtual machines that have ended, as their manager said: flows end with them.

use std::collections::BTreeMap;

use weft_control::Utc;

/// Names that are kept; beyond that the one that ended first is forgotten.
const NAMES_MAX: usize = 1024;

/// When virtual machines ended last, by the hub's clock.
#[derive(Debug, Default)]
pub(crate) struct GoneVms {
    ends: BTreeMap<String, Utc>,
}

impl GoneVms {
    /// A virtual machine has ended.
    pub(crate) fn ended(&mut self, vm: String, at: Utc) {
        let end = self.ends.entry(vm).or_insert(at);
        *end = (*end).max(at);
        if self.ends.len() > NAMES_MAX {
            let first = self.ends.iter().min_by_key(|(_, at)| **at).map(|(vm, _)| vm.clone());
            first.and_then(|vm| self.ends.remove(&vm));
        }
    }

    /// Whether a virtual machine of this name has ended since then.
    pub(crate) fn has_ended_since(&self, vm: &str, then: Utc) -> bool {
        self.ends.get(vm).is_some_and(|end| *end > then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_end_counts_and_names_have_a_bound() {
        let at = Utc::from_nanos;
        let mut gone = GoneVms::default();
        gone.ended("web".into(), at(20));
        // A hub that hears a manager from the start hears old ends again.
        gone.ended("web".into(), at(10));
        assert!(gone.has_ended_since("web", at(19)) && !gone.has_ended_since("web", at(20)));
        assert!(!gone.has_ended_since("other", at(0)));
        for vm in 0..NAMES_MAX as u64 {
            gone.ended(format!("vm-{vm}"), at(100 + vm));
        }
        assert_eq!(gone.ends.len(), NAMES_MAX);
        assert!(!gone.has_ended_since("web", at(0)) && gone.has_ended_since("vm-0", at(0)));
    }
}
