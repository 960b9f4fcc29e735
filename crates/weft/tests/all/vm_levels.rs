//! A virtual machine that moves where service levels differ by pair.

use crate::common::{Home, text};

/// Levels differ by pair on a ring under lash and on a tree under vftree. A machine moves all the same; where packets on levels of both places
/// could wait in a circle, the plan names the circle, and queue pairs are held for as long as it says at least.
#[test]
fn a_machine_moves_where_levels_differ() {
    for engine in ["lash", "vftree"] {
        let home = Home::new();
        let mut file = home.small_tree();
        if engine == "lash" {
            file = file.with_file_name("ring.topo");
            let ring = ["topo", "gen", "ring", "--switches", "6", "--hosts", "1", "-o", text(&file)];
            home.weft(&ring).succeeds();
        }
        let chain = format!("{engine},no_fallback");
        let up = ["up", text(&file), "--vfs", "1", "--lids", "dynamic", "--engine", &chain];
        home.weft(&[&up[..], &["--packet-life-time", "14"]].concat()).succeeds();
        home.weft(&["vm", "create", "web1", "--host", "host-0"]).succeeds();
        home.weft(&["check", "--wait", "30"]).succeeds();
        let mut held = 0;
        for host in ["host-3", "host-1", "host-2", "host-0"] {
            let plan = home.json(&["vm", "plan", "web1", host, "--json"]);
            let moved = home.json(&["vm", "migrate", "web1", host, "--json"]);
            assert_eq!(moved["counts"]["held_ns"], plan["counts"]["held_ns"], "{moved}");
            let pause = plan["counts"]["held_ns"].as_u64().unwrap();
            if pause > 0 {
                held += 1;
                assert!(plan["counts"]["fallbacks"][0].as_str().unwrap().starts_with("VL "), "{plan}");
                assert!(moved["downtime_ns"].as_u64().unwrap() >= pause, "{moved}");
            }
            home.weft(&["check", "--wait", "30"]).succeeds();
        }
        assert_eq!(held > 0, engine == "lash", "a ring's mixtures have circles, a tree's have none");
        let events = home.weft(&["events", "--kind", "move-held"]).stdout;
        assert_eq!(events.lines().count(), held, "{events}");
        home.weft(&["down"]).succeeds();
    }
}
