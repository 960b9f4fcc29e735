//! The rows of every switch beside the subnet managers' log, replayed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use weft_mgmt::{DirectedPath, Request, SmpRoute};
use weft_routing::ForwardingTable;
use weft_umad::{Client, ServerMessage};
use weft_wire::{AttributeId, Guid, Lid, LinearForwardingTable, PortNum, SwitchInfo};

use super::Schedule;
use crate::common::Home;
use crate::replay::{Replay, entries};

/// Where the log is, beside the laboratories.
pub(super) const FILE: &str = "history.jsonl";

/// How long the subnet manager may take to come to rest.
const PATIENCE: Duration = Duration::from_secs(150);

/// How long an agent may take to answer.
const ANSWER: Duration = Duration::from_secs(30);

/// The log, as far as it is replayed.
pub(super) struct Log {
    path: PathBuf,
    read: usize,
    replay: Replay,
    /// Rows that were compared.
    pub(super) rows: u64,
}

/// A switch, and the agent that runs it.
struct Place {
    guid: Guid,
    socket: PathBuf,
}

impl Log {
    pub(super) fn of(home: &Home) -> Self {
        let told = read(&home.lab("default").join("managers/sm.json"));
        let chain = serde_json::from_value(told["options"]["engines"].clone()).unwrap();
        let path = home.base().with_file_name(FILE);
        Self { path, read: 0, replay: Replay::new(chain), rows: 0 }
    }

    /// Plans and repairs that were made again.
    pub(super) fn replayed(&self) -> u64 {
        self.replay.moves + self.replay.repairs
    }

    /// LIDs whose rows became fresh by a rebalance.
    pub(super) fn rebalanced(&self) -> u64 {
        self.replay.rebalanced
    }

    /// Goes on by what was written since. Whether that was nothing.
    fn go_on(&mut self, restarted: &BTreeSet<Guid>) -> Result<bool, String> {
        let text = std::fs::read_to_string(&self.path).unwrap();
        let news = &text[self.read..];
        // The last line may be half written.
        let whole = news.rfind('\n').map_or(0, |end| end + 1);
        self.replay.go_on(entries(&news[..whole])?, restarted)?;
        self.read += whole;
        Ok(news.is_empty())
    }

    fn compare(&mut self, tables: &[(Guid, ForwardingTable)]) -> Result<(), String> {
        for (switch, table) in tables {
            self.rows += self.replay.compare(*switch, |lid| table.port(lid), table.top())?;
        }
        Ok(())
    }
}

impl Schedule {
    /// Waits until the subnet manager is at rest, and compares what switches hold then with its log: once, since a
    /// difference would stay.
    pub(crate) fn rows_are_the_logs(&mut self, after: &str) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        let restarted = self.restarted();
        let failed = |error| format!("after {after}: {error}");
        loop {
            let before = self.resting();
            self.rows.go_on(&restarted).map_err(failed)?;
            if before.is_some() && self.rows.replay.is_whole() {
                let tables: Vec<_> =
                    self.switches().iter().map(|place| (place.guid, place.table())).collect();
                if self.rows.go_on(&restarted).map_err(failed)? && self.resting() == before {
                    return self.rows.compare(&tables).map_err(failed);
                }
            }
            if Instant::now() > until {
                return Err(failed("the subnet manager does not come to rest".to_owned()));
            }
        }
    }

    /// Sets a row of a switch behind the subnet manager's back.
    pub(crate) fn spoil_a_row(&self) {
        let place = self.switches().remove(0);
        let mut client = Client::connect(&place.socket).unwrap();
        client.attach(place.guid, PortNum::ZERO, Vec::new(), ANSWER).unwrap();
        let data = ask(&mut client, AttributeId::LinearForwardingTable, 0);
        let mut block = LinearForwardingTable::decode(&data);
        block.ports[1] = PortNum(if block.ports[1] == PortNum(1) { 2 } else { 1 });
        let data = block.encode();
        let request = Request::set(AttributeId::LinearForwardingTable, 0, &data);
        let held: [u8; 64] = exchange(&mut client, request);
        assert_eq!(held, data, "the switch does not take it");
    }

    /// Waits until the subnet manager is at rest; how many sweeps it has made.
    pub(super) fn sweeps_at_rest(&self) -> Result<u64, String> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.resting() {
                Some(sweeps) => return Ok(sweeps),
                None if Instant::now() > until => {
                    return Err("the subnet manager does not come to rest".to_owned());
                }
                None => {}
            }
        }
    }

    /// How many sweeps the subnet manager has made, if it makes none and all is in service.
    pub(super) fn resting(&self) -> Option<u64> {
        let told = self.home.weft(&["ask", "sm", "sm-status"]);
        let status: Value = serde_json::from_str(&told.stdout).ok()?;
        let is_now = told.code == 0 && status["age_ms"] == 0 && status["subnet_up"] == true;
        (is_now && status["phase"].is_null()).then(|| status["heavy_sweeps"].as_u64().unwrap())
    }

    /// Switches whose agents have died at any time, those of hosts too: they may have lost their tables.
    fn restarted(&self) -> BTreeSet<Guid> {
        let of_dead = self.devices().into_iter().filter(|(_, device)| {
            let name = device["description"].as_str().unwrap();
            self.switches_killed.contains(name)
                || self.killed.iter().any(|host| name.strip_suffix(" vSwitch") == Some(host))
        });
        of_dead.map(|(_, device)| guid(&device)).collect()
    }

    fn switches(&self) -> Vec<Place> {
        let switches = self.devices().into_iter().filter(|(_, device)| device["switch"] == true);
        switches.map(|(socket, device)| Place { guid: guid(&device), socket }).collect()
    }

    /// All devices with the sockets of their agents.
    fn devices(&self) -> Vec<(PathBuf, Value)> {
        let lab = self.home.lab("default");
        let record = read(&lab.join("lab.json"));
        let agents = record["agents"].as_array().unwrap().iter();
        let of = |agent: &Value| {
            let socket = lab.join("sockets").join(agent["name"].as_str().unwrap());
            let devices = agent["devices"].as_array().unwrap().clone();
            devices.into_iter().map(move |device| (socket.clone(), device)).collect::<Vec<_>>()
        };
        agents.flat_map(of).collect()
    }
}

impl Place {
    /// What it holds, up to what it looks up.
    fn table(&self) -> ForwardingTable {
        let mut client = Client::connect(&self.socket).unwrap();
        client.attach(self.guid, PortNum::ZERO, Vec::new(), ANSWER).unwrap();
        let info = SwitchInfo::decode(&ask(&mut client, AttributeId::SwitchInfo, 0));
        let top = Lid(info.linear_fdb_top);
        let mut table = ForwardingTable::new(top);
        for block in 0..=top.block() {
            let data = ask(&mut client, AttributeId::LinearForwardingTable, u32::from(block));
            let ports = LinearForwardingTable::decode(&data).ports;
            let rows = (u32::from(block) * 64..).zip(ports);
            // Beyond what it looks up there may be anything.
            for (lid, port) in rows.filter(|(lid, _)| *lid <= u32::from(top.0)) {
                table.set(Lid(lid as u16), port);
            }
        }
        table
    }
}

/// The attribute of the device that `client` is attached to.
fn ask<const N: usize>(client: &mut Client, attribute: AttributeId, modifier: u32) -> [u8; N] {
    exchange(client, Request::get(attribute, modifier))
}

/// What it answers to a request.
fn exchange<const N: usize>(client: &mut Client, request: Request) -> [u8; N] {
    client.send(&request.by(&SmpRoute::Directed(DirectedPath::default()))).unwrap();
    client.flush().unwrap();
    loop {
        let message = client.recv(ANSWER).unwrap().expect("an agent answers");
        if let ServerMessage::Receive(answer) = message {
            return *answer.mad.smp_attribute();
        }
    }
}

fn guid(device: &Value) -> Guid {
    Guid(device["guid"].as_u64().unwrap())
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}
