//! Datagrams that tell servers of a machine that has moved, in closed form: weft's own, and the paper's equations beside
//! (004, table I and equations 1 to 4, lines 2720–2787).
//!
//! ```text
//!   at first:   SubnAdmSet(InformInfo) ▶ GetResp        for each subscriber
//!   a move:     Report ▶ ReportResp                     for each subscriber that is there
//! ```
//!
//! | | subscribers | of them there when a machine is found at its new place |
//! |---|---|---|
//! | each function by itself | physical functions and machines | all but the machine that moves, whose subscription has gone with its port |
//! | once a server | physical functions | all |
//!
//! The paper counts machines alone where each subscribes by itself, and no answer to a notice.

/// Servers and their machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Servers {
    /// Physical servers: `n` of the paper.
    pub servers: u64,
    /// Machines on all of them, that which moves included: `n` times `m`.
    pub machines: u64,
}

/// Subscribers to trap 69.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subscribers {
    /// Each function, physical and virtual.
    Functions,
    /// Physical functions, which hand on what they hear.
    Servers,
}

/// Datagrams of subscriptions, and of one move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagrams {
    /// Subscriptions and their answers, when all are there for the first time.
    pub start: u64,
    /// Reports of one move.
    pub reports: u64,
    /// Their answers.
    pub responses: u64,
    /// The subscription of the machine that has moved, and its answer.
    pub again: u64,
    /// Machines that a physical function hands the notice on to, without a datagram.
    pub handed_on: u64,
}

/// What agents receive, where nothing is lost and one machine moves at a time.
pub fn datagrams(subscribers: Subscribers, of: Servers) -> Datagrams {
    let Servers { servers, machines } = of;
    let (all, there, again, handed_on) = match subscribers {
        Subscribers::Functions => (servers + machines, servers + machines.saturating_sub(1), 2, 0),
        Subscribers::Servers => (servers, servers, 0, machines),
    };
    Datagrams { start: 2 * all, reports: there, responses: there, again, handed_on }
}

/// Datagrams of the paper: equations 1 and 3 where each machine subscribes, 2 and 4 where servers do; those of subscriptions, and those of
/// a move.
pub fn paper(subscribers: Subscribers, of: Servers) -> Datagrams {
    let count = match subscribers {
        Subscribers::Functions => of.machines,
        Subscribers::Servers => of.servers,
    };
    Datagrams { start: 2 * count, reports: count, ..Datagrams::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_cost_n_times_m_and_servers_n() {
        for servers in [3, 18, 324] {
            for each in [1, 4, 16] {
                let of = Servers { servers, machines: servers * each };
                let (all, once) = (paper(Subscribers::Functions, of), paper(Subscribers::Servers, of));
                assert_eq!((all.start, once.start), (2 * servers * each, 2 * servers));
                assert_eq!((all.reports, once.reports), (servers * each, servers));
                // What differs: physical functions subscribe too, the machine that moves is not there, and notices are answered.
                let (weft, saved) =
                    (datagrams(Subscribers::Functions, of), datagrams(Subscribers::Servers, of));
                assert_eq!(weft.start - all.start, 2 * servers);
                assert_eq!(weft.reports - all.reports, servers - 1);
                assert_eq!(
                    (saved.start, saved.reports, saved.responses),
                    (once.start, once.reports, servers)
                );
                assert_eq!(saved.handed_on, of.machines);
            }
        }
    }
}
