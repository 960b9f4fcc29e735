//! The state that the page shows, in tables by id. Fields that are not known, or say nothing, are left out of JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::merge::difference;

/// The version of the state. It rises when a reader of the version before would misread it.
pub const VERSION: u32 = 1;
/// Events that the state keeps.
pub const EVENTS_MAX: usize = 200;

/// A table: rows by id.
pub type Table<T> = BTreeMap<String, T>;

macro_rules! shown {
    ($($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub struct $name { $($(#[$what])* #[serde(skip_serializing_if = "Blank::is_blank")] pub $field: $kind,)* }
    )*};
}

shown! {
    /// Everything but the tables.
    Head {
        /// [`VERSION`].
        v: u32,
        /// The laboratory's name.
        lab: String,
        /// When, in milliseconds since 1970; of virtual time, since its beginning.
        at_ms: u64,
        /// `wall`; `virtual` where milliseconds are of virtual time, `virtual-us` where they stand for its microseconds.
        clock: String,
        /// Whether rates are those of a fabric, and not the machine's.
        shaped: bool,
        /// Whether whoever sees this may act on the laboratory.
        may_act: bool,
        /// The role in which the laboratory is asked.
        role: String,
        /// Whether counters are being gathered.
        watched: bool,
        /// The sums.
        summary: Summary,
        /// The arrangement of nodes.
        layout: Layout,
    }

    /// Numbers of things.
    Summary {
        /// Switches.
        switches: Number,
        /// Hosts.
        hosts: Number,
        /// Cables.
        cables: Number,
        /// Cables that are not active.
        links_down: Number,
        /// Flows.
        flows: Number,
        /// What flows deliver together, in megabytes per second.
        mbps: f64,
    }

    /// The arrangement of nodes.
    Layout {
        /// `tiers`, `grid`, `springs` or `ring`.
        kind: String,
        /// The width of the drawing, in a node's width.
        width: f64,
        /// Its height.
        height: f64,
        /// The names of its rows, from the top, where it has any.
        rows: Vec<String>,
    }

    /// A device.
    Node {
        /// What people call it.
        name: String,
        /// `switch`, `host` or `router`.
        kind: String,
        /// The NodeGUID.
        guid: String,
        /// From the left.
        x: f64,
        /// From the top.
        y: f64,
        /// The distance from the nearest host.
        rank: Number,
        /// The switch that a host folds into.
        leaf: Option<String>,
        /// `up`, `down`, `frozen` or `starting`.
        state: String,
        /// The process that runs it.
        process: String,
        /// That process's number.
        pid: Option<u32>,
        /// Its LIDs.
        lids: Vec<u16>,
        /// The managers that sit there.
        roles: Vec<String>,
        /// Whether it is a hot spot.
        hot: bool,
    }

    /// A cable.
    Cable {
        /// One end: a node.
        a: String,
        /// Its port.
        ap: u8,
        /// The other end.
        b: String,
        /// Its port.
        bp: u8,
        /// The rate, as `4x QDR`.
        rate: String,
        /// The same in gigabits per second.
        gbps: Option<f64>,
        /// `active`, `armed`, `init` or `down`.
        state: String,
        /// What flows from `a` to `b`.
        ab: Option<Load>,
        /// What flows from `b` to `a`.
        ba: Option<Load>,
        /// The faults of the cable.
        faults: Vec<String>,
        /// What differs from the plan: `missing`, `swapped` or `slow`.
        planned: Option<String>,
    }

    /// What flows over a cable in one direction.
    Load {
        /// Megabytes per second.
        mbps: f64,
        /// The share of the second in which data waited for credit.
        wait: f64,
        /// The same by lane.
        lanes: BTreeMap<String, LaneLoad>,
    }

    /// What flows on a lane.
    LaneLoad {
        /// Megabytes per second.
        mbps: f64,
        /// The share of the second in which data waited for credit.
        wait: f64,
    }

    /// A flow.
    Flow {
        /// Its name.
        name: String,
        /// The set that it belongs to.
        set: Option<String>,
        /// The sending end.
        from: String,
        /// The receiving end.
        to: String,
        /// `running`, `starting`, `done` or `failed`.
        state: String,
        /// What it delivers, in megabytes per second.
        mbps: f64,
        /// Bytes delivered.
        delivered: Number,
        /// Packets sent again.
        repeated: Number,
        /// The service level.
        sl: Option<u8>,
        /// The lane on its first cable.
        vl: Option<u8>,
        /// The mean latency, in microseconds.
        mean_us: Option<f64>,
        /// The longest latency, in microseconds.
        max_us: Option<f64>,
        /// Why it ended, or what it waits for.
        why: Option<String>,
        /// Its way: cable, direction (0 is from `a` to `b`) and lane.
        path: Vec<Hop>,
    }

    /// A virtual machine.
    Vm {
        /// Its name.
        name: String,
        /// Its host.
        host: String,
        /// Its LID.
        lid: Option<u16>,
        /// `running`, `moving`, `stopped` or as its manager says.
        state: String,
        /// Where it moves.
        moving_to: Option<String>,
    }

    /// A fault that lasts.
    Fault {
        /// Its kind.
        kind: String,
        /// Where: a port or a node.
        r#where: String,
        /// The cable.
        cable: Option<String>,
        /// The node.
        node: Option<String>,
        /// When it ends by itself.
        until_ms: Option<u64>,
        /// What it does, for people.
        text: String,
    }

    /// A manager.
    Manager {
        /// `sm`, `pm`, `vmm` or `opensm`.
        kind: String,
        /// Where it sits.
        node: Option<String>,
        /// `master`, `standby`, `ready`, `down` and so on.
        state: String,
        /// The phase of a sweep.
        phase: Option<String>,
        /// SMPs that it may have outstanding.
        window: Option<u32>,
        /// SMPs that are under way.
        in_flight: Option<u32>,
        /// More of it, for people.
        text: String,
    }

    /// A partition.
    Partition {
        /// Its name.
        name: String,
        /// Its members.
        members: Number,
        /// The full members among them.
        full: Vec<String>,
        /// The limited ones.
        limited: Vec<String>,
        /// What is to be said of it, for people.
        text: String,
    }

    /// An alarm.
    Alarm {
        /// `critical`, `warning` or `info`.
        severity: String,
        /// Since when.
        since_ms: u64,
        /// Where.
        r#where: String,
        /// What is wrong.
        text: String,
        /// Why, or what to do.
        cause: String,
        /// Whether somebody has seen it.
        acknowledged: bool,
    }

    /// A hot spot.
    Hot {
        /// Since when it is seen.
        since_ms: u64,
        /// Hosts that take the slow lane to it.
        slow_lane: Vec<String>,
    }

    /// An event.
    Event {
        /// When.
        at_ms: u64,
        /// Its kind.
        kind: String,
        /// The node that it is about.
        node: Option<String>,
        /// Its sentence.
        text: String,
    }
}

/// A number that is shown also where it is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Number(pub u64);

/// A step of a way: the cable, the direction over it, and the lane, where that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hop(pub String, pub u8, pub Option<u8>);

/// Whether a value says nothing, so that JSON goes without it.
trait Blank {
    fn is_blank(&self) -> bool;
}

macro_rules! blank {
    ($($kind:ty: $is_blank:expr;)*) => {$(impl Blank for $kind {
        fn is_blank(&self) -> bool {
            let is_blank: fn(&$kind) -> bool = $is_blank;
            is_blank(self)
        }
    })*};
}

blank! {
    String: String::is_empty;
    // The page tests these with `=== true` or `> 0`, or they are always there.
    bool: |value| !*value;
    u64: |value| *value == 0;
    u32: |value| *value == 0;
    u8: |value| *value == 0;
    f64: |_| false;
    Number: |_| false;
    Summary: |_| false;
    Layout: |_| false;
}

impl Summary {
    /// What these come to. `flows`: the megabytes per second of each.
    pub fn of<'a>(
        nodes: impl Iterator<Item = &'a Node>,
        cables: impl Iterator<Item = &'a Cable>,
        flows: impl Iterator<Item = f64>,
    ) -> Self {
        let mut sum = Self::default();
        for node in nodes {
            match node.kind.as_str() {
                "switch" => sum.switches.0 += 1,
                "host" => sum.hosts.0 += 1,
                _ => {}
            }
        }
        for cable in cables {
            sum.cables.0 += 1;
            sum.links_down.0 += u64::from(cable.state == "down");
        }
        for mbps in flows {
            sum.flows.0 += 1;
            sum.mbps += mbps;
        }
        Self { mbps: thousandths(sum.mbps), ..sum }
    }
}

/// A number as it is written: to the third place.
pub fn thousandths(number: f64) -> f64 {
    // A sum of nothing is -0, which is written so.
    (number * 1000.0).round() / 1000.0 + 0.0
}

impl<T> Blank for Option<T> {
    fn is_blank(&self) -> bool {
        self.is_none()
    }
}

impl<T> Blank for Vec<T> {
    fn is_blank(&self) -> bool {
        self.is_empty()
    }
}

impl<T> Blank for BTreeMap<String, T> {
    fn is_blank(&self) -> bool {
        self.is_empty()
    }
}

macro_rules! tables {
    ($($(#[$about:meta])* $name:ident: $row:ident,)*) => {
        /// The state of a laboratory.
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub struct State {
            /// Everything but the tables.
            #[serde(flatten)]
            pub head: Head,
            $($(#[$about])* pub $name: Table<$row>,)*
        }

        impl State {
            /// The merge patch that makes `new` of this; `None` where only the time differs. The time is always in it.
            pub fn patch(&self, new: &Self) -> Option<Value> {
                let mut changes = Map::new();
                let timeless = Head { at_ms: self.head.at_ms, ..new.head.clone() };
                if timeless != self.head
                    && let Some(Value::Object(head)) = difference(&value_of(&self.head), &value_of(&timeless))
                {
                    changes = head;
                }
                $(if let Some(change) = rows(&self.$name, &new.$name) {
                    changes.insert(stringify!($name).to_owned(), change);
                })*
                (!changes.is_empty()).then(|| {
                    changes.insert("at_ms".to_owned(), new.head.at_ms.into());
                    Value::Object(changes)
                })
            }
        }
    };
}

tables! {
    /// Devices.
    nodes: Node,
    /// Cables.
    cables: Cable,
    /// Flows, by name.
    flows: Flow,
    /// Virtual machines, by name.
    vms: Vm,
    /// Faults that last, by name.
    faults: Fault,
    /// Managers, by the name of their processes.
    managers: Manager,
    /// Partitions, by P_Key.
    partitions: Partition,
    /// Alarms.
    alarms: Alarm,
    /// Hot spots, by the host's name.
    hot: Hot,
    /// The newest events, by their number.
    events: Event,
}

fn value_of<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// The change of a table. Rows that stay the same are compared as they are, and never become JSON.
fn rows<T: PartialEq + Serialize>(old: &Table<T>, new: &Table<T>) -> Option<Value> {
    let mut changes = Map::new();
    for id in old.keys().filter(|id| !new.contains_key(*id)) {
        changes.insert(id.clone(), Value::Null);
    }
    for (id, row) in new {
        let change = match old.get(id) {
            Some(before) if before == row => None,
            Some(before) => difference(&value_of(before), &value_of(row)),
            None => Some(value_of(row)),
        };
        if let Some(change) = change {
            changes.insert(id.clone(), change);
        }
    }
    (!changes.is_empty()).then_some(Value::Object(changes))
}
