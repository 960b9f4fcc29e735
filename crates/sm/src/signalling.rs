//! Datagrams that tell hosts of another routing, in closed form: weft's own, and the paper's equations beside
//! (004, table I and equations 1 to 6, lines 1098–1163).
//!
//! ```text
//!   wildcard, hybrid:  Report ▶ ReportResp ▶ GetTable ▶ Data 1 ▶ Ack ▶ Data 2 … 65 ▶ Ack …   for each host
//!   repath:            Report ▶ ReportResp                                                  for each end of a changed pair
//! ```
//!
//! weft counts what agents receive. Its answers have 200 bytes of records in a segment (IBA 13.6.2), every Report is answered, and every
//! port with a LID has a path record, port 0 of switches too. The paper packs four records into 256 bytes, counts two datagrams for RMPP's
//! beginning and end, no ReportResp, and one notice for both ends of a pair.

use weft_mgmt::rmpp::InboxLimits;

pub use weft_vocabulary::sm::{MAD_BYTES, Signalled};

use crate::Signalling;

/// Bytes of a path record.
pub const RECORD_BYTES: u64 = 64;
/// Bytes of records in a segment.
pub const SEGMENT_BYTES: u64 = 200;

/// Notices to hosts, and what they ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// Ports that have subscribed to trap 69.
    pub hosts: u64,
    /// Of these, ports that have asked for a path record before: others have nothing to ask for again.
    pub askers: u64,
    /// Path records in an answer: one for each port with a LID, the asker's own included.
    pub records: u64,
    /// Ordered pairs of hosts whose service level is another.
    pub changes: u64,
    /// How often the manager routes: 1 for a cable, or 2 where each of its two traps is answered by a sweep.
    pub routings: u64,
}

/// Segments of an answer with this many records.
pub fn segments(records: u64) -> u64 {
    (records * RECORD_BYTES).div_ceil(SEGMENT_BYTES).max(1)
}

/// Acknowledgements of this many segments: of the first, of each full window behind it, and of the last.
pub fn acks(segments: u64) -> u64 {
    1 + segments.saturating_sub(1).div_ceil(InboxLimits::default().window.into())
}

/// How often all subscribers are notified.
pub fn notices(method: Signalling, case: &Case) -> u64 {
    match method {
        Signalling::Wildcard => case.routings,
        // The first routing brings the change; a second one finds none.
        Signalling::Hybrid => u64::from(case.changes > 0),
        Signalling::Off | Signalling::Repath => 0,
    }
}

/// What agents receive, where nothing is lost and no host is put off.
pub fn messages(method: Signalling, case: &Case) -> Signalled {
    if method == Signalling::Repath {
        let reports = 2 * case.changes;
        return Signalled { reports, responses: reports, ..Signalled::default() };
    }
    let notices = notices(method, case);
    let (reports, queries) = (notices * case.hosts, notices * case.askers);
    let each = segments(case.records);
    Signalled {
        reports,
        responses: reports,
        queries,
        segments: queries * each,
        acks: queries * acks(each),
        ..Signalled::default()
    }
}

/// Bytes by the paper's equations for `n` switches with a host each and `m` changed path records: 5 for the wildcard, 6 for repath-only, 4
/// for the hybrid, each as printed. A fault that changes nothing is none of its cases; there repath-only and hybrid have 0.
pub fn paper_bytes(method: Signalling, n: u64, m: u64) -> u64 {
    let ideal = (4 * n * MAD_BYTES) + n * n * MAD_BYTES / 4;
    match method {
        Signalling::Off => 0,
        Signalling::Wildcard => 2 * ideal,
        Signalling::Repath => m * MAD_BYTES,
        Signalling::Hybrid => ideal * u64::from(m > 0),
    }
}

/// One reason why weft's number is another than the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// The kind of datagrams.
    pub what: &'static str,
    /// Datagrams of weft.
    pub weft: u64,
    /// Datagrams of the paper, in quarters: a record is a quarter of one.
    pub paper_quarters: u64,
}

/// The terms of both, one beside the other; their sums are the totals. `n` and `m` as in [`paper_bytes`].
pub fn terms(method: Signalling, case: &Case, n: u64, m: u64) -> Vec<Term> {
    let weft = messages(method, case);
    let term = |what, weft, paper| Term { what, weft, paper_quarters: paper };
    if method == Signalling::Repath {
        return vec![
            term("notices: both ends of a pair hear, the paper counts one", weft.reports, 4 * m),
            term("answers to notices", weft.responses, 0),
        ];
    }
    let times = match method {
        Signalling::Wildcard => 2,
        Signalling::Hybrid => u64::from(m > 0),
        Signalling::Off | Signalling::Repath => 0,
    };
    vec![
        term("notices", weft.reports, 4 * n * times),
        term("answers to notices", weft.responses, 0),
        term("questions", weft.queries, 4 * n * times),
        term("records: 200 bytes a segment for 256, and those of switches", weft.segments, n * n * times),
        term("acknowledgements: by window, for two an answer", weft.acks, 8 * n * times),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(n: u64, changes: u64) -> Case {
        Case { hosts: n, askers: n, records: 2 * n, changes, routings: 1 }
    }

    #[test]
    fn windows_and_answers_are_acknowledged_at_their_ends() {
        assert_eq!([1, 2, 65, 66, 129, 130].map(acks), [1, 2, 2, 3, 3, 4]);
        assert_eq!([1, 3, 4, 25, 399, 800].map(segments), [1, 1, 2, 8, 128, 256]);
    }

    #[test]
    fn the_papers_numbers_follow_from_its_equations() {
        // Figure 10 for 400 switches: "20 Mbytes" for repath-only and wildcard, "approximately 10 Mbytes" for the hybrid.
        let printed = |method| paper_bytes(method, 400, 79_798) as f64 / 1e6;
        assert_eq!(paper_bytes(Signalling::Hybrid, 400, 79_798), 10_649_600);
        assert_eq!(paper_bytes(Signalling::Wildcard, 400, 79_798), 2 * 10_649_600);
        assert!((printed(Signalling::Repath) - 20.43).abs() < 0.01);
    }

    #[test]
    fn terms_add_up_to_both_totals() {
        for n in [6, 36, 400] {
            for m in [0, 4 * n] {
                for method in [Signalling::Wildcard, Signalling::Repath, Signalling::Hybrid] {
                    let terms = terms(method, &case(n, m), n, m);
                    let weft: u64 = terms.iter().map(|term| term.weft).sum();
                    let paper: u64 = terms.iter().map(|term| term.paper_quarters * MAD_BYTES / 4).sum();
                    assert_eq!(weft, messages(method, &case(n, m)).total(), "{method} {n} {m}");
                    assert_eq!(paper, paper_bytes(method, n, m), "{method} {n} {m}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_sent_where_nothing_changes_but_by_the_wildcard() {
        let total = |method| messages(method, &case(6, 0)).total();
        assert_eq!([Signalling::Off, Signalling::Repath, Signalling::Hybrid].map(total), [0; 3]);
        // 12 records are 4 segments with 2 acknowledgements.
        assert_eq!(total(Signalling::Wildcard), 6 * (1 + 1 + 1 + 4 + 2));
    }
}
