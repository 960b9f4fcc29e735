//! Counters of an agent: each is a name in `status` and in metrics.

/// Declares the counters: those that show 0 from the start, and those that show once they have counted.
macro_rules! counters {
    (from_the_start { $($early:ident,)* } once_counted { $($late:ident,)* }) => {
        /// Something that an agent counts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Counter {
            $($early,)*
            $($late,)*
        }

        const FROM_THE_START: &[Counter] = &[$(Counter::$early),*];
        const ALL: &[Counter] = &[$(Counter::$early,)* $(Counter::$late),*];
    };
}

counters! {
    // What an operator looks for even when it has not happened.
    from_the_start {
        CapturesOfOneRefused,
        CapturesRefused,
        CreditOverruns,
        HostsRefused,
        ProgramFramesMalformed,
        ProgramMadsDropped,
        ProgramsOfOneTurnedAway,
        ProgramsTurnedAway,
        SlowClient,
        UmadMadsDropped,
        UmadMessagesMalformed,
        UmadSendsRefused,
        VisitorsTurnedAway,
    }
    once_counted {
        AttachNotAllowed,
        AttachVisitors,
        AttachmentsSuperseded,
        CableFramesDropped,
        Captures,
        ClientAttached,
        ClientDetached,
        ClientRefused,
        ForwardingTableWritten,
        HostCommandsRefused,
        LidChanged,
        LinkDegraded,
        LinkDown,
        LinkMismatch,
        LinkUp,
        MKeyViolation,
        PacketDropped,
        PacketsWithoutHost,
        PeerNamesFailed,
        PortStateChanged,
        RequestsRefused,
        TrapAbandoned,
        TrapRepressed,
        TrapSent,
        Visitors,
        VisitorsWithoutRole,
        VmSteps,
        Other,
    }
}

impl Counter {
    /// The name: the variant's in lower case, its words joined by underscores.
    fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_ascii_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }
}

/// What has been counted.
#[derive(Debug)]
pub(crate) struct Counted([u64; ALL.len()]);

impl Default for Counted {
    fn default() -> Self {
        Self([0; ALL.len()])
    }
}

impl Counted {
    /// Counts one more, and says how many that makes.
    pub(crate) fn add(&mut self, counter: Counter) -> u64 {
        let count = &mut self.0[counter as usize];
        *count += 1;
        *count
    }

    /// Names and values of those that show.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (String, u64)> {
        let all = ALL.iter().zip(self.0);
        let shown = all.filter(|(counter, count)| *count > 0 || FROM_THE_START.contains(counter));
        shown.map(|(counter, count)| (counter.name(), count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_variants() {
        assert_eq!(Counter::MKeyViolation.name(), "m_key_violation");
        let mut counted = Counted::default();
        assert_eq!((counted.add(Counter::LinkDown), counted.add(Counter::LinkDown)), (1, 2));
        let shown: Vec<(String, u64)> = counted.shown().collect();
        assert!(
            shown.contains(&("link_down".to_owned(), 2)) && shown.contains(&("slow_client".to_owned(), 0))
        );
        assert_eq!(shown.len(), FROM_THE_START.len() + 1, "what has not happened does not show");
    }
}
