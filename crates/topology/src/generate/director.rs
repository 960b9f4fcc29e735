//! Director switches: chassis that are two-level Clos networks inside, under edge switches.

use super::{End, GenerateError, GenerateOptions, Generator, end, in_range};
use crate::{Fabric, NodeIndex};

weft_wire::defaults! {
    /// What a fabric of director switches is made of. The default has one spine chip per chassis, one cable to each line chip, and
    /// nothing else.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Directors {
        /// Line chips per chassis, one number for each chassis. These have the connectors.
        pub lines: Vec<u32> = Vec::new(),
        /// Spine chips of each chassis. Each is cabled to all line chips of its chassis.
        pub spines: u32 = 1,
        /// Cables between a line chip and a spine chip.
        pub inside: u32 = 1,
        /// Hosts on each line chip.
        pub line_hosts: u32 = 0,
        /// Edge switches outside of the chassis.
        pub edges: u32 = 0,
        /// Hosts on each edge switch.
        pub edge_hosts: u32 = 0,
        /// Line chips that each edge switch is cabled to.
        pub uplinks: u32 = 0,
        /// Cables from line chips of a chassis to those of each other chassis.
        pub trunks: u32 = 0,
    }
}

/// Chassis of director switches, joined by trunks between their line chips, by edge switches, or by both.
///
/// Line chips form a ring that takes one of each chassis in turn. The edge switches are spread over this ring, and each
/// is cabled to `uplinks` line chips in sequence. So neighbouring edge switches share some line chips but not all, and
/// shortest paths between edges may lead through an edge as well as through a spine. Trunks use line chips in turn.
///
/// # Errors
///
/// Parameters out of range, or switches with more ports than the radix.
pub fn director(parameters: &Directors, options: &GenerateOptions) -> Result<Fabric, GenerateError> {
    let Directors { spines, inside, line_hosts, edges, edge_hosts, uplinks, trunks, .. } = *parameters;
    let chassis = in_range("the number of chassis", parameters.lines.len() as u64, 1, 254)?;
    for lines in &parameters.lines {
        in_range("the number of line chips of a chassis", u64::from(*lines), 1, 254)?;
    }
    in_range("the number of spine chips of a chassis", u64::from(spines), 1, 254)?;
    in_range("the number of cables between a line chip and a spine chip", u64::from(inside), 1, 254)?;
    in_range("the number of edge switches", u64::from(edges), 0, 49_151)?;
    let all: u64 = parameters.lines.iter().map(|lines| u64::from(*lines)).sum();
    in_range("the number of line chips of an edge switch", u64::from(uplinks), 0, all)?;
    in_range("the number of trunks between two chassis", u64::from(trunks), 0, 254 * 254)?;
    let plan = Plan::new(parameters);
    let hosts = all * u64::from(line_hosts) + u64::from(edges) * u64::from(edge_hosts);
    let switches = all + chassis * u64::from(spines) + u64::from(edges);
    let mut generator = Generator::new(options, switches, hosts)?;
    let mut lines = Vec::new();
    for (line, ports) in plan.line_ports(parameters).into_iter().enumerate() {
        let (chassis, place) = plan.lines[line];
        lines.push(Socket::new(generator.switch(format!("line-{chassis}-{place}"), ports)?, line_hosts));
    }
    let mut spine_chips = Vec::new();
    for (chassis, count) in parameters.lines.iter().enumerate() {
        for place in 0..spines {
            let ports = u64::from(*count) * u64::from(inside);
            spine_chips.push(Socket::new(generator.switch(format!("spine-{chassis}-{place}"), ports)?, 0));
        }
    }
    for (line, (chassis, _)) in plan.lines.iter().enumerate() {
        for spine in 0..spines as usize {
            for _ in 0..inside {
                let spine = &mut spine_chips[chassis * spines as usize + spine];
                generator.cable(lines[line].next(), spine.next())?;
            }
        }
    }
    for (one, other) in plan.trunks(trunks) {
        generator.cable(lines[one].next(), lines[other].next())?;
    }
    let mut with_hosts: Vec<NodeIndex> = lines.iter().map(|line| line.switch).collect();
    generator.hosts_on(&with_hosts, u64::from(line_hosts))?;
    with_hosts.clear();
    for edge in 0..edges {
        let ports = u64::from(edge_hosts) + u64::from(uplinks);
        let mut socket = Socket::new(generator.switch(format!("edge-{edge}"), ports)?, edge_hosts);
        with_hosts.push(socket.switch);
        for line in plan.above(edge, parameters) {
            generator.cable(socket.next(), lines[line].next())?;
        }
    }
    generator.hosts_on(&with_hosts, u64::from(edge_hosts))?;
    Ok(generator.finish())
}

/// A switch, and which of its ports is the next without a cable.
struct Socket {
    switch: NodeIndex,
    port: u64,
}

impl Socket {
    fn new(switch: NodeIndex, hosts: u32) -> Self {
        Self { switch, port: u64::from(hosts) }
    }

    fn next(&mut self) -> End {
        self.port += 1;
        end(self.switch, self.port - 1)
    }
}

/// All line chips in the order of the ring: the chassis, and the place in it.
struct Plan {
    lines: Vec<(usize, u32)>,
}

impl Plan {
    fn new(parameters: &Directors) -> Self {
        let chassis = (0..).zip(&parameters.lines);
        let mut lines: Vec<(usize, u32)> =
            chassis.flat_map(|(chassis, count)| (0..*count).map(move |place| (chassis, place))).collect();
        lines.sort_unstable_by_key(|(chassis, place)| (*place, *chassis));
        Self { lines }
    }

    /// The line chips that an edge switch is cabled to.
    fn above(&self, edge: u32, parameters: &Directors) -> impl Iterator<Item = usize> {
        let count = self.lines.len();
        let first = (u64::from(edge) * count as u64 / u64::from(parameters.edges.max(1))) as usize;
        (0..parameters.uplinks as usize).map(move |uplink| (first + uplink) % count)
    }

    /// The ends of all trunks.
    fn trunks(&self, count: u32) -> Vec<(usize, usize)> {
        let chassis = self.lines.iter().map(|(chassis, _)| chassis + 1).max().unwrap_or(0);
        let of = |wanted: usize| -> Vec<usize> {
            let lines = (0..self.lines.len()).filter(|line| self.lines[*line].0 == wanted);
            lines.collect()
        };
        let mut used = vec![0; chassis];
        let mut ends = Vec::new();
        for one in 0..chassis {
            for other in one + 1..chassis {
                for _ in 0..count {
                    let [a, b] = [one, other].map(|chassis| {
                        let lines = of(chassis);
                        used[chassis] += 1;
                        lines[(used[chassis] - 1) % lines.len()]
                    });
                    ends.push((a, b));
                }
            }
        }
        ends
    }

    /// How many ports each line chip needs.
    fn line_ports(&self, parameters: &Directors) -> Vec<u64> {
        let inside = u64::from(parameters.spines) * u64::from(parameters.inside);
        let mut ports = vec![u64::from(parameters.line_hosts) + inside; self.lines.len()];
        for (one, other) in self.trunks(parameters.trunks) {
            ports[one] += 1;
            ports[other] += 1;
        }
        for edge in 0..parameters.edges {
            for line in self.above(edge, parameters) {
                ports[line] += 1;
            }
        }
        ports
    }
}
