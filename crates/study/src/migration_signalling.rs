//! Datagrams of migration signalling for many servers and machines, beside the paper's equations 1 to 4 (004, lines 2720–2787).

use serde::Serialize;
use weft_sm::migrations::{Servers, Subscribers, datagrams, paper};

/// One way to subscribe, with a number of servers and machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Physical servers.
    pub servers: u64,
    /// Machines of each.
    pub machines: u64,
    /// Subscribers: `functions` or `servers`.
    pub subscribers: &'static str,
    /// Subscriptions and their answers, when all are there for the first time.
    pub start: u64,
    /// The paper's, by equations 1 and 2.
    pub paper_start: u64,
    /// Notices of one move, their answers, and the subscription of the machine that has moved.
    pub a_move: u64,
    /// Of these, the notices.
    pub notices: u64,
    /// The paper's notices, by equations 3 and 4.
    pub paper_notices: u64,
    /// Machines to which their server hands the notice on.
    pub handed_on: u64,
}

/// Both ways to subscribe, with each number of servers and machines.
pub fn rows(servers: &[u64], machines: &[u64]) -> Vec<Row> {
    let cases = servers.iter().flat_map(|servers| machines.iter().map(|machines| (*servers, *machines)));
    let row = |(servers, machines): (u64, u64), (subscribers, name): (Subscribers, &'static str)| {
        let of = Servers { servers, machines: servers * machines };
        let (weft, printed) = (datagrams(subscribers, of), paper(subscribers, of));
        Row {
            servers,
            machines,
            subscribers: name,
            start: weft.start,
            paper_start: printed.start,
            a_move: weft.reports + weft.responses + weft.again,
            notices: weft.reports,
            paper_notices: printed.reports,
            handed_on: weft.handed_on,
        }
    };
    let both = [(Subscribers::Functions, "functions"), (Subscribers::Servers, "servers")];
    cases.flat_map(|case| both.map(|way| row(case, way))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_save_all_but_a_notice_each() {
        let rows = rows(&[3, 324], &[1, 16]);
        assert_eq!(rows.len(), 8);
        for pair in rows.chunks(2) {
            let [all, once] = pair else { panic!("two ways") };
            // n(m + 1) - 1 notices, and n.
            assert_eq!(all.notices, all.servers * (all.machines + 1) - 1);
            assert_eq!((once.notices, once.paper_notices), (once.servers, once.servers));
            assert_eq!(all.paper_notices, all.servers * all.machines);
            // Every notice is answered, and the machine that has moved subscribes again.
            assert_eq!((all.a_move, once.a_move), (2 * all.notices + 2, 2 * once.notices));
        }
    }
}
