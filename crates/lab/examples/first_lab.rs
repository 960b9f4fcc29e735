//! A test of somebody's own on processes: a ring comes up, a cable is cut, the subnet manager routes around it, and nothing is left behind,
//! however the test ends.
//!
//! ```text
//! cargo run -p weft-lab --example first_lab
//! ```

use std::time::Duration;

use weft_bundle::folder::Base;
use weft_bundle::folder::front::Front;
use weft_bundle::plan::wanted::{Wanted, WantedSm};
use weft_lab::faults::lasting::unplug;
use weft_lab::{check, child, owned};
use weft_topology::PortRef;
use weft_topology::generate::{GenerateOptions, ring};

fn main() -> anyhow::Result<()> {
    // The laboratory's processes are this program, started again.
    if let Some(ended) = child::child_main(Front::default()) {
        return ended;
    }
    // Four switches in a ring, with a host each; the subnet manager sits at the first host.
    let fabric = ring(4, 1, &GenerateOptions::default())?;
    let seat = fabric.hosts().find_map(|(host, node)| Some(PortRef::new(host, node.attach_port()?)));
    let sm = seat.map(|at| WantedSm { at, options: weft_sm::Options::default(), partitions: None });
    let wanted = Wanted { sm, ..Wanted::bare(&fabric, "a ring of four") };

    owned::with(&Base::locate(), "first-lab", &wanted, |running| {
        let before = check::check(&running.lab, &check::Options::default())?;
        assert!(before.ok && before.subnet_up && before.hosts == 4, "{before:?}");

        let is_switch = |port: PortRef| fabric.node(port.node).is_switch();
        let cable = fabric.cables().find(|cable| is_switch(cable.a) && is_switch(cable.b));
        let cable = cable.expect("a ring has cables between switches");
        unplug(&running.lab, &fabric.port_label(cable.a).to_string(), None)?;
        let times = running.rerouted(Duration::from_secs(30))?;
        assert!(times.len() == 1 && times[0].pairs_lost == Some(0), "{times:?}");

        // Every host reaches every other by tables that are read back, and by a packet.
        let after = check::check(&running.lab, &check::Options::default())?;
        assert!(after.ok && after.cables_out_of_service == 1 && after.packets == 4 * 3, "{after:?}");
        how_it_ends()
    })
}

/// Ends as the argument says, for the test of this example.
fn how_it_ends() -> anyhow::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("panics") => panic!("as it was told"),
        Some("waits") => {
            println!("up");
            std::thread::park();
            Ok(())
        }
        _ => Ok(()),
    }
}
