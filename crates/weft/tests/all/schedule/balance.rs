//! Links that moves have left unevenly loaded, and the subnet manager that evens them out.
//!
//! Three leaves of two hosts, and two spines. The leaves send to a leaf's first host by one spine, to its second by the other. Two
//! machines leave the first leaf's first host for the second leaf's two hosts: the third leaf, which has two machines, still sends to
//! both by one spine. That is four pairs of machines on one link, and two on each of two by fresh rows.

use super::Schedule;
use crate::common::{Home, text, wait_until};

/// What the worst link may carry beside fresh rows, and where the machines run at first.
const BELOW: &str = "0.9";
const PLACES: [(&str, &str); 4] = [("a", "host-0"), ("b", "host-0"), ("c", "host-4"), ("d", "host-5")];

impl Schedule {
    /// A laboratory that rebalances, with four machines.
    pub(crate) fn uneven() -> Self {
        let home = Home::new();
        let file = home.base().with_file_name("uneven.topo");
        let tree = ["topo", "gen", "xgft", "--children", "2,3", "--parents", "1,2", "-o", text(&file)];
        home.weft(&tree).succeeds();
        let options = ["--lids", "dynamic", "--engine", "vswitch-ftree", "--rebalance-below", BELOW];
        let schedule = Self::on(home, &file, &options, 1);
        for (vm, host) in PLACES {
            schedule.home.weft(&["vm", "create", vm, "--host", host]).succeeds();
        }
        schedule
    }

    /// Machines move, and the subnet manager rebalances.
    pub(crate) fn rebalances(mut self) {
        self.rows_are_the_logs("the start").unwrap();
        assert_eq!(self.rows.rebalanced(), 0, "where machines have started rows are fresh");
        for (vm, host) in [("a", "host-2"), ("b", "host-3")] {
            self.home.weft(&["vm", "migrate", vm, host]).succeeds();
        }
        // Packets find both from everywhere, on the way too.
        wait_until("the subnet manager has rebalanced", || {
            for (from, to) in [("vm:c", "vm:a"), ("vm:d", "vm:b"), ("vm:a", "vm:c"), ("vm:b", "vm:d")] {
                self.home.weft(&["trace", from, to]).succeeds();
            }
            let status = self.home.json(&["ask", "sm", "sm-status"]);
            status["vm_lids"]["rebalances"]["runs"].as_u64().unwrap() > 0
        });
        self.rows_are_the_logs("a rebalance").unwrap();
        let rebalances = self.home.json(&["ask", "sm", "sm-status"])["vm_lids"]["rebalances"].clone();
        assert!(self.rows.rebalanced() > 0, "{rebalances}");
        assert_eq!(rebalances["lids"], self.rows.rebalanced(), "{rebalances}");
        assert_eq!(
            rebalances["balance"], 1000,
            "two pairs on each link are what fresh rows have: {rebalances}"
        );
        let events = self.home.weft(&["events"]).stdout;
        assert!(events.contains("rebalanced"), "{events}");
        // Both spines lead to the two machines now.
        let spine = |to: &str| {
            let hops = self.home.json(&["trace", "vm:c", to, "--json"])["hops"].clone();
            let switches =
                hops.as_array().unwrap().iter().map(|hop| hop["node"].as_str().unwrap().to_owned());
            switches.filter(|name| self.switches.contains(name)).nth(1)
        };
        assert_ne!(spine("vm:a"), spine("vm:b"));
        self.home.weft(&["check", "--wait", "30"]).succeeds();
        self.home.weft(&["down"]).succeeds();
    }
}
