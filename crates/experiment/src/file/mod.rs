//! Reading an experiment's file.

mod conditions;
mod error;
mod expects;
mod faults;
mod given;
mod network;
mod partitions;
mod reader;
mod schedule;
mod traffic;
mod tree;
mod variants;
mod vms;

use std::cell::RefCell;
use std::collections::BTreeMap;

pub(crate) use crate::spec::VM_PREFIX;
pub use conditions::Omitted;
pub(crate) use conditions::{condition, is_usual};
pub use error::FileError;
pub(crate) use error::{At, Wrong, choices, listed, nearest};
pub(crate) use network::{engine_reads, rates as read_rates};
pub(crate) use reader::{Role, Table};
pub use schedule::{Beside, ScheduleFile};
pub(crate) use tree::words;

use expects::Known;
use tree::{Entry, Kind, lay};
use variants::Axis;
use weft_device::{Crossbar, LaneShare, Profile};
use weft_machine::Time;

use crate::{Experiment, RunId, Span};

/// The most runs that a file may come to.
const RUNS_MAX: usize = 10_000;

/// An experiment's file with all of its variants.
#[derive(Clone, Debug)]
pub struct ExperimentFile {
    name: String,
    text: String,
    base: Vec<Entry>,
    axes: Vec<Axis>,
    seeds: Vec<u64>,
    /// The experiment without any choice made, for what all variants share.
    plain: Experiment,
    /// The crossbar of every variant, whatever the file says.
    crossbar: Option<Crossbar>,
    /// What becomes of lanes' shares in every variant, whatever the file says.
    lane_share: Option<LaneShare>,
    /// Conditions under which it cannot be run.
    omitted: Vec<Omitted>,
}

/// One choice of variants, as it was read.
pub(crate) struct Choice {
    pub(crate) experiment: Experiment,
    places: BTreeMap<(Role, String), At>,
}

impl Choice {
    /// Something wrong with a name, where it stands in the file.
    pub(crate) fn wrong(&self, role: Role, name: &str, message: String) -> Wrong {
        let at = self.places.get(&(role, name.to_owned())).copied().unwrap_or_default();
        Wrong::new(at, message)
    }
}

impl ExperimentFile {
    /// Reads a file: `name` is what errors call it, and topology files are named relative to its folder. Every variant is
    /// read, so that an error in any of them shows now. Names of hosts and ports are looked up by [`Self::plan`].
    pub fn parse(name: &str, text: &str) -> Result<Self, FileError> {
        Self::read(name, text).map_err(|wrong| wrong.into_error(name, text))
    }

    /// The same with the constants of a generation of hardware, where the file does not give a number of its own; instead of
    /// the profile that the file names.
    pub fn parse_with_profile(name: &str, text: &str, profile: &Profile) -> Result<Self, FileError> {
        let read = tree::parse(text).and_then(|mut base| {
            lay(&mut base, &tree::texts("rates", &[("profile", profile.name)]));
            Self::read_tree(name, text, base)
        });
        read.map_err(|wrong| wrong.into_error(name, text))
    }

    fn read(name: &str, text: &str) -> Result<Self, Wrong> {
        Self::read_tree(name, text, tree::parse(text)?)
    }

    fn read_tree(name: &str, text: &str, mut base: Vec<Entry>) -> Result<Self, Wrong> {
        let axes = variants::take(&mut base)?;
        let mut combinations = variants::combinations(&axes, RUNS_MAX)?;
        let plain = read_choice(&base, &axes)?.experiment;
        let seeds = plain.seeds.clone();
        if combinations.len() * seeds.len() > RUNS_MAX {
            let message = format!("the file comes to {} runs", combinations.len() * seeds.len());
            return Err(Wrong::new(At::default(), message).allowed(format!("{RUNS_MAX} are allowed")));
        }
        let (name, text) = (name.to_owned(), text.to_owned());
        let file = Self {
            name,
            text,
            base,
            axes,
            seeds,
            plain,
            crossbar: None,
            lane_share: None,
            omitted: Vec::new(),
        };
        for choices in combinations.drain(..) {
            let read = read_choice(&file.laid(&choices), &file.axes)?;
            if read.experiment.seeds != file.seeds {
                return Err(Wrong::new(
                    At::default(),
                    "`seeds` cannot be a variant: every variant runs with all seeds",
                ));
            }
        }
        Ok(file)
    }

    /// The same experiment on switches with another crossbar, in every variant.
    #[must_use]
    pub fn with_crossbar(mut self, crossbar: Crossbar) -> Self {
        self.crossbar = Some(crossbar);
        self.plain.rates.crossbar = crossbar;
        self
    }

    /// The same experiment on switches that do something else with the shares of lanes, in every variant.
    #[must_use]
    pub fn with_lane_share(mut self, lane_share: LaneShare) -> Self {
        self.lane_share = Some(lane_share);
        self.plain.rates.lane_share = lane_share;
        self
    }

    /// What the file was called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the file says, letter by letter.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The file without any choice of variants: title, source, figures and whatever no variant changes.
    pub fn plain(&self) -> &Experiment {
        &self.plain
    }

    /// The axes of variants and the labels of their choices, in the order of the file.
    pub fn axes(&self) -> Vec<(String, Vec<String>)> {
        let labels = |axis: &Axis| axis.choices.iter().map(|choice| choice.label.clone()).collect();
        self.axes.iter().map(|axis| (axis.name.clone(), labels(axis))).collect()
    }

    /// All runs: every combination of choices, the last axis changing fastest, and in each all seeds.
    pub fn runs(&self) -> Vec<RunId> {
        let all = variants::combinations(&self.axes, RUNS_MAX).unwrap_or_default();
        let with_seeds = |choices: Vec<(String, String)>| {
            self.seeds.iter().map(move |seed| RunId { choices: choices.clone(), seed: *seed })
        };
        all.into_iter().flat_map(with_seeds).collect()
    }

    /// What the file says when these choices are made.
    pub fn experiment(&self, run: &RunId) -> Result<Experiment, FileError> {
        self.choice(run).map(|choice| choice.experiment).map_err(|wrong| self.error(wrong))
    }

    pub(crate) fn choice(&self, run: &RunId) -> Result<Choice, Wrong> {
        let mut choice = read_choice(&self.laid(&run.choices), &self.axes)?;
        let rates = &mut choice.experiment.rates;
        rates.crossbar = self.crossbar.unwrap_or(rates.crossbar);
        rates.lane_share = self.lane_share.unwrap_or(rates.lane_share);
        Ok(choice)
    }

    pub(crate) fn error(&self, wrong: Wrong) -> FileError {
        wrong.into_error(&self.name, &self.text)
    }

    /// The document with the choices laid upon it.
    fn laid(&self, choices: &[(String, String)]) -> Vec<Entry> {
        let mut document = self.base.clone();
        for (axis, label) in choices {
            let axis = self.axes.iter().find(|known| known.name == *axis);
            let choice = axis.and_then(|axis| axis.choices.iter().find(|choice| choice.label == *label));
            lay(&mut document, choice.map_or(&[], |choice| &choice.entries));
        }
        document
    }
}

fn read_choice(document: &[Entry], axes: &[Axis]) -> Result<Choice, Wrong> {
    let places = RefCell::default();
    let mut top = Table::new("", At::default(), document, &places);
    let experiment = read_top(&mut top, axes)?;
    top.finish(())?;
    Ok(Choice { experiment, places: places.into_inner() })
}

fn read_top(top: &mut Table<'_>, axes: &[Axis]) -> Result<Experiment, Wrong> {
    let (live, simulated) = drivers(top)?;
    let title = reader::as_text(top.need("title", "what the experiment is called, in one line")?, "title")?;
    let source = top.text("source")?.unwrap_or_default();
    let about = top.text("about")?.unwrap_or_default();
    let duration = top.need("duration", "how long it runs, in seconds")?;
    let (duration_at, duration) = (duration.at, reader::as_seconds(duration, "duration")?);
    if duration == Time::ZERO {
        return Err(Wrong::new(duration_at, "`duration` must be more than 0 seconds"));
    }
    let fabric = network::fabric(top)?;
    let rates = network::rates(top)?;
    let engine = network::engine(top)?;
    let (sm, sm_at) = network::sm(top, &rates)?;
    let (pm, pm_at) = network::pm(top, &rates, &engine)?;
    let congestion = network::congestion(top)?;
    let hosts = network::hosts(top)?;
    let windows = windows(top, duration)?;
    let warm_up = top.seconds("warm_up")?.unwrap_or(Time::from_secs(3));
    let seeds = seeds(top)?;
    let vms = vms::vms(top, &pm, duration)?;
    if rates.host_bus_mbps > 0 && vms.is_none() {
        let message = "`host_bus_gbps` of [rates] is shared by virtual functions, and [vms] is not there";
        let wrong = Wrong::new(top.at, message);
        return Err(wrong.allowed("write `[vms]`, or `host_limit_gbps` for hosts with one function"));
    }
    let copies = vms.as_ref().map(|vms| vms::copies(vms, &rates)).unwrap_or_default();
    let traffic = traffic::read(top, &rates, duration, copies)?;
    let (sample_interval, ports) = record(top)?;
    let inputs = given::Inputs::new(top, &rates)?;
    let known =
        Known { windows: &windows, traffic: &traffic, axes, ports: &ports, vms: vms.as_ref(), inputs };
    let expects = known.expects(top)?;
    let gains = known.gains(top)?;
    let figures = known.figures(top)?;
    let attach = crate::Attach { sm: sm_at, pm: pm_at };
    let links = links(top)?;
    let traffic::Everything { flows, patterns, mixes, beffs, faults } = traffic;
    Ok(Experiment {
        title,
        source,
        about,
        live,
        simulated,
        fabric,
        rates,
        engine,
        sm,
        pm,
        congestion,
        hosts,
        attach,
        duration,
        warm_up,
        windows,
        seeds,
        flows,
        patterns,
        mixes,
        beffs,
        vms,
        faults,
        sample_interval,
        ports,
        links,
        expects,
        gains,
        figures,
    })
}

fn drivers(top: &mut Table<'_>) -> Result<(bool, bool), Wrong> {
    const WORDS: [&str; 2] = ["live", "virtual"];
    let Some(value) = top.get("run") else { return Ok((true, true)) };
    let mut chosen = [false, false];
    for (text, at) in reader::texts(value, "run")? {
        match WORDS.iter().position(|word| *word == text) {
            Some(which) => chosen[which] = true,
            None => {
                let message = format!("`run` cannot be `{text}`");
                return Err(Wrong::new(at, message).allowed(choices(&text, &WORDS)));
            }
        }
    }
    if chosen == [false, false] {
        return Err(Wrong::new(value.at, "`run` names nothing").allowed(choices("", &WORDS)));
    }
    Ok((chosen[0], chosen[1]))
}

fn windows(top: &mut Table<'_>, duration: Time) -> Result<Vec<Span>, Wrong> {
    let mut table = top.table("window")?;
    let mut windows = Vec::new();
    for entry in table.all() {
        let Kind::Array(items) = &entry.value.kind else {
            return Err(reader::wrong_kind(
                &entry.value,
                &entry.key,
                "two times in seconds, as in `[18, 40]`",
            ));
        };
        let [from, to] = items.as_slice() else {
            let message = format!("the window `{}` takes two times in seconds, as in `[18, 40]`", entry.key);
            return Err(Wrong::new(entry.value.at, message));
        };
        let (from, to) = (reader::as_seconds(from, &entry.key)?, reader::as_seconds(to, &entry.key)?);
        if from >= to || to > duration {
            let message = format!("the window `{}` must end after it begins, and before the run", entry.key);
            let allowed = format!("the run takes {} s", duration.as_secs_f64());
            return Err(Wrong::new(entry.value.at, message).allowed(allowed));
        }
        windows.push(Span { name: entry.key.clone(), from, to });
    }
    Ok(windows)
}

/// Names of cables: `link-1 = "A/3"`.
fn links(top: &mut Table<'_>) -> Result<BTreeMap<String, String>, Wrong> {
    let mut table = top.table("link")?;
    let mut links = BTreeMap::new();
    for entry in table.all() {
        let port = reader::as_text(&entry.value, &entry.key)?;
        table.place(Role::Port, &port, entry.value.at);
        links.insert(entry.key.clone(), port);
    }
    Ok(links)
}

/// `seeds = 8` is 1 to 8; `seeds = [3, 5]` is those.
fn seeds(top: &mut Table<'_>) -> Result<Vec<u64>, Wrong> {
    const COUNT_MAX: i64 = 1000;
    let Some(value) = top.get("seeds") else { return Ok(vec![1]) };
    let wanted = format!("how many seeds, 1 to {COUNT_MAX}, or a list of them");
    match &value.kind {
        Kind::Integer(count) if (1..=COUNT_MAX).contains(count) => Ok((1..=*count as u64).collect()),
        Kind::Array(items) if !items.is_empty() && items.len() as i64 <= COUNT_MAX => {
            let seed = |item: &tree::Value| match item.kind {
                Kind::Integer(seed) if seed >= 0 => Ok(seed as u64),
                _ => Err(reader::wrong_kind(item, "seeds", "whole numbers from 0")),
            };
            let seeds: Vec<u64> = items.iter().map(seed).collect::<Result<_, _>>()?;
            let distinct: std::collections::BTreeSet<&u64> = seeds.iter().collect();
            if distinct.len() < seeds.len() {
                return Err(Wrong::new(value.at, "`seeds` names a seed twice"));
            }
            Ok(seeds)
        }
        _ => Err(reader::wrong_kind(value, "seeds", &wanted)),
    }
}

fn record(top: &mut Table<'_>) -> Result<(Time, Vec<String>), Wrong> {
    let mut table = top.table("record")?;
    let at = table.at;
    let interval = table.seconds("interval")?.unwrap_or(Time::from_millis(250));
    if interval < Time::from_millis(1) {
        return Err(Wrong::new(at, "`interval` of [record] must be 0.001 seconds or more"));
    }
    let ports = table.names_of("ports", Role::Port)?;
    table.finish((interval, ports))
}
