//! The tool matrix on ibsim with OpenSM, to see that the cases themselves are right.

use weft_judges::{Ibsim, OpenSm, Site, Way, matrix, opensm};

#[test]
fn on_ibsim() {
    let text = include_str!("../../topologies/psmn-x5.topo");
    let fabric = weft_topology::parse("psmn-x5.topo", text).unwrap();
    let ibsim = Ibsim::start(&fabric);
    let (host, node) = fabric.hosts().next().unwrap();
    let mut manager = ibsim.command("opensm", &node.id);
    manager.args(["-R", "minhop"]);
    let _manager = OpenSm::start(manager, ibsim.folder());
    let read = |name: &str| std::fs::read_to_string(ibsim.folder().join(name)).unwrap();
    let lids = opensm::lids_of(&fabric, &read("guid2lid"));
    let routes = opensm::routes_of(&fabric, &lids, &opensm::tables_of(&read("opensm.fdbs")));
    let site = Site {
        way: Way::Ibsim,
        fabric: &fabric,
        lids,
        routes,
        host,
        folder: ibsim.folder().to_owned(),
        command: &|program, node| ibsim.command(program, &node.id),
        totals: &|_, _| None,
    };
    let verdicts = matrix::run(&site);
    println!("{}", matrix::table(&[(Way::Ibsim, verdicts)]));
}
