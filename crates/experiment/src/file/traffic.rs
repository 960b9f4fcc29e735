//! `[traffic]`, `[flow.NAME]`, `[pattern.NAME]`, `[mix.NAME]`, `[beff.NAME]` and `[[fault]]`.

use weft_host::traffic::{MoveBy, Transport, Work};
use weft_machine::Time;
use weft_routing::quality::Traffic;

use super::error::Wrong;
use super::faults::faults;
use super::reader::{Role, Table};
use crate::{BeffSpec, FaultSpec, FlowEntry, FlowOptions, MixSpec, Paths, PatternSpec, Rates};

/// The smallest body of a packet that says its number and its time.
const BODY_MIN: i64 = 16;
/// The largest message.
const MESSAGE_MAX: i64 = 1 << 30;

/// All traffic of a file, and its faults.
pub(crate) struct Everything {
    pub(crate) flows: Vec<FlowEntry>,
    pub(crate) patterns: Vec<PatternSpec>,
    pub(crate) mixes: Vec<MixSpec>,
    pub(crate) beffs: Vec<BeffSpec>,
    pub(crate) faults: Vec<FaultSpec>,
}

impl Everything {
    /// The names that a line of the report can mean.
    pub(crate) fn names(&self) -> Vec<&str> {
        let flows = self.flows.iter().map(|flow| flow.name.as_str());
        let patterns = self.patterns.iter().map(|pattern| pattern.name.as_str());
        let mixes = self.mixes.iter().map(|mix| mix.name.as_str());
        flows.chain(patterns).chain(mixes).collect()
    }
}

/// `copies`: flows that the file implies.
pub(super) fn read(
    top: &mut Table<'_>,
    rates: &Rates,
    duration: Time,
    copies: Vec<FlowEntry>,
) -> Result<Everything, Wrong> {
    let mut table = top.table("traffic")?;
    let body = rates.mtu_bytes();
    let mut limits = Limits { body, duration, usual: FlowOptions::usual(body) };
    limits.usual = limits.options(&mut table)?;
    table.finish(())?;
    let mut all = Everything {
        flows: each(top, "flow", |name, table| flow(name, table, &limits))?,
        patterns: each(top, "pattern", |name, table| pattern(name, table, &limits))?,
        mixes: each(top, "mix", |name, table| mix(name, table, &limits))?,
        beffs: each(top, "beff", |name, table| beff(name, table, &limits))?,
        faults: faults(top, duration)?,
    };
    all.flows.extend(copies);
    let names = all.names();
    for (nth, name) in names.iter().enumerate() {
        if names[..nth].contains(name) {
            return Err(Wrong::new(top.at, format!("`{name}` is the name of two flows, patterns or mixes")));
        }
    }
    Ok(all)
}

fn each<T>(
    top: &mut Table<'_>,
    key: &'static str,
    read: impl Fn(String, &mut Table<'_>) -> Result<T, Wrong>,
) -> Result<Vec<T>, Wrong> {
    let mut all = Vec::new();
    for (name, mut table) in top.named(key)? {
        if name.is_empty() || name.contains('/') {
            return Err(Wrong::new(
                table.at,
                format!("a {key} cannot be called `{name}`: names are not empty and have no `/`"),
            ));
        }
        let one = read(name, &mut table)?;
        all.push(table.finish(one)?);
    }
    Ok(all)
}

/// What options may say, and what is meant where they say nothing.
struct Limits {
    body: u16,
    duration: Time,
    usual: FlowOptions,
}

impl Limits {
    fn options(&self, table: &mut Table<'_>) -> Result<FlowOptions, Wrong> {
        let defaults = &self.usual;
        let transports = [Transport::ReliableConnection, Transport::UnreliableDatagram];
        let transport =
            table.word("transport", &["rc", "ud"])?.map_or(defaults.transport, |nth| transports[nth]);
        let paths = table.choice("paths", &Paths::ALL, Paths::name)?.unwrap_or(defaults.paths);
        let move_by = move_by(table, defaults)?;
        let packet_bytes = self.packet(table)?.unwrap_or(defaults.packet_bytes);
        let start = self.time(table, "start")?.unwrap_or(defaults.start);
        let stop = self.time(table, "stop")?.or(defaults.stop);
        if stop.is_some_and(|stop| stop <= start) {
            return Err(Wrong::new(table.at, format!("{} stops before it starts", table.name)));
        }
        Ok(FlowOptions {
            transport,
            message_bytes: message(table, "message_bytes")?.unwrap_or(defaults.message_bytes),
            packet_bytes,
            rate_gbps: table.quantity("rate_gbps", "Gb/s", 4000.0)?.or(defaults.rate_gbps),
            start,
            stop,
            paths,
            move_by,
        })
    }

    fn packet(&self, table: &mut Table<'_>) -> Result<Option<u16>, Wrong> {
        let at = table.at;
        let size: Option<u16> = table.number("packet_bytes", BODY_MIN..=i64::from(self.body))?;
        match size {
            Some(size) if !size.is_multiple_of(4) => {
                Err(Wrong::new(at, format!("`packet_bytes` must be a multiple of 4, not {size}")))
            }
            _ => Ok(size),
        }
    }

    fn time(&self, table: &mut Table<'_>, key: &'static str) -> Result<Option<Time>, Wrong> {
        let at = table.at;
        match table.seconds(key)? {
            Some(time) if time > self.duration => {
                let message = format!("`{key}` of {} is after the run's end", table.name);
                Err(Wrong::new(at, message).allowed(format!("it takes {} s", self.duration.as_secs_f64())))
            }
            time => Ok(time),
        }
    }
}

fn message(table: &mut Table<'_>, key: &'static str) -> Result<Option<u32>, Wrong> {
    table.number(key, BODY_MIN..=MESSAGE_MAX)
}

fn flow(name: String, table: &mut Table<'_>, limits: &Limits) -> Result<FlowEntry, Wrong> {
    let work = match table.word("work", &["stream", "ping_pong"])? {
        Some(1) => Work::PingPong,
        _ => Work::Stream,
    };
    let from = table.need_name("from", Role::Host, "the sending host")?;
    let to = table.need_name("to", Role::Host, "the receiving host")?;
    if from == to {
        return Err(Wrong::new(table.at, format!("the flow `{name}` goes from {from} to itself")));
    }
    let bytes_max = table.number("bytes_max", 1..=i64::MAX)?;
    let sl = table.number("sl", 0..=15)?;
    let agree_as = table.text("agree_as")?;
    let options = limits.options(table)?;
    if sl.is_some() && options.paths == Paths::Unasked {
        let wrong =
            Wrong::new(table.at, format!("the flow `{name}` has `sl`, and `paths` that are never looked up"));
        return Err(wrong.allowed("what is unasked uses service level 0"));
    }
    Ok(FlowEntry { name, from, to, work, bytes_max, sl, agree_as, options })
}

fn pattern(name: String, table: &mut Table<'_>, limits: &Limits) -> Result<PatternSpec, Wrong> {
    table.need("pattern", "one of ORCS's names, `ring` for example")?;
    let pattern =
        table.parsed::<Traffic>("pattern")?.unwrap_or(Traffic::Alone(weft_routing::quality::Pattern::Null));
    let hosts = table.names_of("hosts", Role::Host)?;
    let against = table.names_of("against", Role::Host)?;
    if matches!(pattern, Traffic::Versus(..)) == against.is_empty() {
        let wrong = Wrong::new(table.at, format!("the pattern `{name}` and its groups do not fit"));
        return Err(wrong.allowed("`against` names the second group of ptrnvsptrn, and of nothing else"));
    }
    let processes = table.number("processes", 2..=4096)?;
    if processes.is_some() && !against.is_empty() {
        let wrong = Wrong::new(table.at, format!("`processes` of the pattern `{name}` are of one group"));
        return Err(wrong.allowed("leave out `processes`, or take a pattern without `against`"));
    }
    let shuffle = table.flag("shuffle", false)?;
    let options = limits.options(table)?;
    let left = options.stop.unwrap_or(limits.duration).saturating_sub(options.start);
    let level = table.seconds("level_seconds")?.unwrap_or(left);
    if level < Time::from_millis(1) {
        return Err(Wrong::new(table.at, "`level_seconds` must be 0.001 or more"));
    }
    Ok(PatternSpec { name, pattern, hosts, processes, against, level, shuffle, options })
}

fn mix(name: String, table: &mut Table<'_>, limits: &Limits) -> Result<MixSpec, Wrong> {
    let hosts = table.names_of("hosts", Role::Host)?;
    let except = table.names_of("except", Role::Host)?;
    let hot_spots = table.names_of("hot_spots", Role::Host)?;
    let percent = table.quantity("hot_percent", "percent", 100.0)?.unwrap_or(5.0);
    let transport = table.get("transport");
    let mut options = limits.options(table)?;
    if let (Some(value), Transport::ReliableConnection) = (transport, options.transport) {
        let wrong =
            Wrong::new(value.at, "a mix sends each packet to another host, which only datagrams can do");
        return Err(wrong.allowed("write `transport = \"ud\"`, or nothing"));
    }
    options.transport = Transport::UnreliableDatagram;
    options.message_bytes = u32::from(options.packet_bytes);
    Ok(MixSpec { name, hosts, except, hot_spots, hot_permille: (percent * 10.0).round() as u16, options })
}

fn beff(name: String, table: &mut Table<'_>, limits: &Limits) -> Result<BeffSpec, Wrong> {
    table.need("hosts", "the hosts that take part, in natural order")?;
    let start = limits.time(table, "start")?.unwrap_or(limits.usual.start);
    let step = table.seconds("step_seconds")?.unwrap_or(Time::from_secs(1));
    if step < Time::from_millis(10) {
        return Err(Wrong::new(table.at, "`step_seconds` must be 0.01 or more"));
    }
    Ok(BeffSpec {
        name,
        hosts: table.names_of("hosts", Role::Host)?,
        start,
        step,
        small_bytes: message(table, "small_bytes")?.unwrap_or(BODY_MIN as u32),
        large_bytes: message(table, "large_bytes")?.unwrap_or(65_536),
        random_rings: table.number("random_rings", 0..=100)?.unwrap_or(3),
        pairs: table.number("pairs", 0..=1000)?,
        move_by: move_by(table, &limits.usual)?,
    })
}

fn move_by(table: &mut Table<'_>, defaults: &FlowOptions) -> Result<MoveBy, Wrong> {
    let word = table.word("move_by", &["drain", "migrate"])?;
    Ok(word.map_or(defaults.move_by, |nth| [MoveBy::Drain, MoveBy::Migrate][nth]))
}
