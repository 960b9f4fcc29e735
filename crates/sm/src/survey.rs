//! Reads a running fabric without changing anything: who is there, who has which LID, which tables stand.

use std::collections::VecDeque;

use serde::Serialize;
use weft_machine::{Machine, Time, Timer};
use weft_mgmt::{DirectedPath, Limits, Stats};
use weft_routing::{ForwardingTable, LidError, Lids, Routes};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{AddressedMad, PortInfo, PortNum, SwitchInfo};

use crate::knowledge::{Subnet, graph_port};
use crate::requests::{Requests, Step};
use crate::sweep::{Cabling, Discover, ReadTables, Settings};
use crate::{Event, Input, SmTimer, SmpCounts};

/// Reads the fabric by the same discovery as the [`SubnetManager`](crate::SubnetManager), and every forwarding
/// table, with Gets alone. It begins when it is attached and ends with [`SurveyOutput::Done`].
#[derive(Debug)]
pub struct Survey {
    requests: Requests,
    doing: Doing,
    tables: bool,
    unanswered: u32,
    outputs: VecDeque<SurveyOutput>,
}

/// What a survey wants done.
#[derive(Clone, Debug)]
pub enum SurveyOutput {
    /// Send this from the port that the survey is behind.
    Send(AddressedMad),
    /// Something that people may want to know.
    Event(Event),
    /// It is over.
    Done(Box<Surveyed>),
}

/// A fabric as it was found.
#[derive(Clone, Debug, Serialize)]
pub struct Surveyed {
    /// Nodes in order of GUIDs, with the LIDs that their ports have.
    pub fabric: Fabric,
    /// Who answers to which LID, or why that is not clear.
    #[serde(skip)]
    pub lids: Result<Lids, LidError>,
    /// The tables in the switches.
    pub routes: Routes,
    /// By node: SwitchInfo of switches.
    #[serde(skip)]
    pub switches: Vec<Option<SwitchInfo>>,
    /// By node and port: PortInfo of every port that was reached.
    #[serde(skip)]
    pub ports: Vec<Vec<Option<PortInfo>>>,
    /// By node: a shortest directed route to it.
    pub paths: Vec<DirectedPath>,
    /// The port that the survey was behind; `None` when its own node did not answer.
    pub own: Option<PortRef>,
    /// Ports with a link behind which no one answers.
    pub silent: Vec<PortRef>,
    /// Requests that no one answered.
    pub unanswered: u32,
    /// SMPs by kind, retries not counted.
    pub smps: SmpCounts,
}

#[derive(Debug)]
enum Doing {
    Nothing,
    Discover(Box<Discover>),
    Tables(Box<ReadTables>),
}

impl Doing {
    /// The step under way and what it has to say.
    fn step(&mut self) -> Option<(&mut dyn Step, Vec<Event>)> {
        match self {
            Self::Nothing => None,
            Self::Discover(step) => {
                let events = std::mem::take(&mut step.events);
                Some((step.as_mut(), events))
            }
            Self::Tables(step) => {
                let events = std::mem::take(&mut step.events);
                Some((step.as_mut(), events))
            }
        }
    }
}

impl Survey {
    /// A survey that is not attached yet. Without `tables` the forwarding tables are left unread.
    pub fn new(limits: Limits, tables: bool) -> Self {
        let requests = Requests::new(limits);
        Self { requests, doing: Doing::Nothing, tables, unanswered: 0, outputs: VecDeque::new() }
    }

    /// What its transactions count.
    pub fn stats(&self) -> &Stats {
        self.requests.stats()
    }

    fn run(&mut self, now: Time) {
        loop {
            let Some((step, events)) = self.doing.step() else { return };
            self.outputs.extend(events.into_iter().map(SurveyOutput::Event));
            let finished = self.requests.pump(now, step);
            while let Some(mad) = self.requests.poll_output() {
                self.outputs.push_back(SurveyOutput::Send(mad));
            }
            if !finished {
                return;
            }
            self.advance();
        }
    }

    fn advance(&mut self) {
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Nothing => {}
            Doing::Discover(mut discover) => {
                self.unanswered += discover.unanswered;
                let events = std::mem::take(&mut discover.events);
                self.outputs.extend(events.into_iter().map(SurveyOutput::Event));
                let read_tables = if self.tables { ReadTables::forwarding } else { ReadTables::nothing };
                self.doing = Doing::Tables(Box::new(read_tables(discover.finish())));
            }
            Doing::Tables(mut read_tables) => {
                let events = std::mem::take(&mut read_tables.events);
                self.outputs.extend(events.into_iter().map(SurveyOutput::Event));
                self.unanswered += read_tables.unanswered;
                let done = self.done(*read_tables);
                self.outputs.push_back(SurveyOutput::Done(Box::new(done)));
            }
        }
    }

    fn done(&self, read_tables: ReadTables) -> Surveyed {
        let ReadTables { subnet, held, .. } = read_tables;
        let Subnet { nodes, fabric, own, .. } = &subnet;
        let nothing = Routes { tables: vec![ForwardingTable::default(); nodes.len()] };
        let mut surveyed = Surveyed {
            fabric: fabric.clone(),
            lids: Lids::from_fabric(fabric),
            routes: nothing,
            switches: nodes.iter().map(|node| node.switch).collect(),
            ports: nodes.iter().map(|node| node.ports.iter().map(|port| port.info).collect()).collect(),
            paths: nodes.iter().map(|node| node.path).collect(),
            own: own.map(graph_port),
            silent: subnet.silent_ports().map(graph_port).collect(),
            unanswered: self.unanswered,
            smps: self.requests.counts,
        };
        for (node, held) in (0..).map(NodeIndex).zip(&held) {
            for (block, ports) in (0..).zip(&held.lft) {
                surveyed.set_lft_block(node, block, &ports.unwrap_or([PortNum::NONE; 64]));
            }
        }
        surveyed
    }
}

impl Surveyed {
    /// A port's PortInfo, if the port was reached.
    pub fn port_info(&self, port: PortRef) -> Option<&PortInfo> {
        self.ports.get(port.node.index())?.get(usize::from(port.port.0))?.as_ref()
    }

    /// How many blocks of a node's forwarding table LIDs are looked up in; none of a node that is no switch, or that has
    /// no table yet.
    pub fn lft_blocks(&self, node: NodeIndex) -> u16 {
        let top = self.linear_fdb_top(node);
        if top == 0 { 0 } else { top / 64 + 1 }
    }

    /// Takes a block of a switch's table as it was read. What lies beyond LinearFDBTop is not looked up.
    pub fn set_lft_block(&mut self, node: NodeIndex, block: u16, read: &[PortNum; 64]) {
        let top = usize::from(self.linear_fdb_top(node));
        let first = usize::from(block) * 64;
        let within = |at: usize| top != 0 && at <= top;
        let looked_up = std::array::from_fn(|i| if within(first + i) { read[i] } else { PortNum::NONE });
        if let Some(table) = self.routes.tables.get_mut(node.index()) {
            table.set_block(block, &looked_up);
        }
    }

    fn linear_fdb_top(&self, node: NodeIndex) -> u16 {
        self.switches.get(node.index()).copied().flatten().map_or(0, |info| info.linear_fdb_top)
    }

    /// A shortest directed route to a node.
    pub fn path(&self, node: NodeIndex) -> Option<&DirectedPath> {
        self.paths.get(node.index())
    }
}

impl Machine for Survey {
    type Input = Input;
    type Output = SurveyOutput;
    type Reason = SmTimer;

    fn handle_input(&mut self, now: Time, input: Input) {
        match input {
            Input::Attached { port_guid, port, .. } => {
                self.requests.renew(now);
                self.unanswered = 0;
                let settings = Settings { own_port: port, own_guid: port_guid, ..Settings::default() };
                self.doing = Doing::Discover(Box::new(Discover::new(settings, Cabling::default())));
            }
            Input::Detached => {
                self.requests.renew(now);
                self.doing = Doing::Nothing;
            }
            Input::Receive(mad) => {
                if let Some((step, events)) = self.doing.step() {
                    self.outputs.extend(events.into_iter().map(SurveyOutput::Event));
                    self.requests.receive(now, &mad, step);
                }
            }
            Input::PortChanged { .. }
            | Input::Resweep { .. }
            | Input::Partitions(_)
            | Input::Instruct { .. } => {}
        }
        self.run(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        if let Some((step, events)) = self.doing.step() {
            self.outputs.extend(events.into_iter().map(SurveyOutput::Event));
            self.requests.expire(now, step);
        }
        self.run(now);
    }

    fn poll_output(&mut self) -> Option<SurveyOutput> {
        self.outputs.pop_front()
    }

    fn next_timer(&self) -> Option<Timer<SmTimer>> {
        self.requests.next_timer()
    }
}
