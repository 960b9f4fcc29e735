//! `[[expect]]`, `[[gain]]` and `[[figure]]`.

use weft_machine::Time;

use super::error::{At, Wrong, choices};
use super::given::Inputs;
use super::reader::{Role, Table, as_signed, as_table, as_text, texts, wrong_kind};
use super::traffic::Everything;
use super::tree::{Kind, Value};
use super::variants::Axis;
use super::vms;
use crate::{
    Basis, BeffValue, Bound, Driver, Expect, Figure, FigureKind, Gain, MigrationValue, MigrationsOf, Paper,
    ReconfigurationOf, SignallingKind, Span, VmsSpec, What, When,
};

/// What `what` can be.
const WHATS: [&str; 21] = [
    "throughput",
    "per_host",
    "ratio",
    "wait",
    "moved",
    "moved_back",
    "moves",
    "pause",
    "latency",
    "recovery",
    "repeated",
    "broken",
    "signalling",
    "reconfiguration",
    "hot_spots",
    "predicted_deadlock",
    "downtime",
    "lft_smps",
    "switches",
    "hypervisor_smps",
    "beff",
];

/// The only driver whose runs a bound is for.
fn driver(table: &mut Table<'_>) -> Result<Option<Driver>, Wrong> {
    let word = table.word("run", &["virtual", "live"])?;
    Ok(word.map(|nth| [Driver::Virtual, Driver::Live][nth]))
}

/// What names may stand for.
pub(crate) struct Known<'a> {
    pub(crate) windows: &'a [Span],
    pub(crate) traffic: &'a Everything,
    pub(crate) axes: &'a [Axis],
    pub(crate) ports: &'a [String],
    pub(crate) vms: Option<&'a VmsSpec>,
    pub(crate) inputs: Inputs<'a>,
}

impl Known<'_> {
    pub(crate) fn expects(&self, top: &mut Table<'_>) -> Result<Vec<Expect>, Wrong> {
        let mut all = Vec::new();
        for mut table in top.list("expect")? {
            let what = self.what(&mut table)?;
            let (bound, basis) = model(&mut table)?;
            let paper = self.paper(&mut table)?;
            if matches!(bound, Some(Bound::Never))
                && !matches!(what, What::Moved { .. } | What::MovedBack { .. } | What::Migration { .. })
            {
                let wrong = Wrong::new(table.at, "`never` is about something that happens at a moment");
                return Err(
                    wrong.allowed("use it with `moved`, `moved_back` and `downtime`, or `at_most = 0`")
                );
            }
            let name = table.text("name")?.unwrap_or_else(|| named(&what));
            let when = self.when(&mut table, "when")?;
            let driver = driver(&mut table)?;
            all.push(table.finish(Expect { name, what, bound, basis, paper, driver, when })?);
        }
        Ok(all)
    }

    pub(crate) fn gains(&self, top: &mut Table<'_>) -> Result<Vec<Gain>, Wrong> {
        let mut all = Vec::new();
        for mut table in top.list("gain")? {
            let what = self.what(&mut table)?;
            let (bound, basis) = model(&mut table)?;
            let paper = self.paper(&mut table)?;
            let name = table.text("name")?.unwrap_or_else(|| format!("gain: {}", named(&what)));
            let (from, to) = self.compared(&mut table)?;
            let driver = driver(&mut table)?;
            all.push(table.finish(Gain { name, what, from, to, bound, basis, driver, paper })?);
        }
        Ok(all)
    }

    pub(crate) fn figures(&self, top: &mut Table<'_>) -> Result<Vec<Figure>, Wrong> {
        let mut all = Vec::new();
        for mut table in top.list("figure")? {
            let kind = table.choice("kind", &FigureKind::ALL, FigureKind::name)?.unwrap_or_default();
            let mut figure = Figure {
                title: table.text("title")?.unwrap_or_default(),
                flows: self.flows(&mut table, "flows")?,
                when: self.when(&mut table, "when")?,
                kind,
                ..Figure::default()
            };
            match kind {
                FigureKind::Throughput => {}
                FigureKind::Total => figure.lines = self.axis(&mut table, "lines")?,
                FigureKind::Bars => {
                    figure.window = self.window(&mut table)?;
                    figure.bars = self.axis(&mut table, "bars")?;
                    figure.groups = self.axis(&mut table, "groups")?;
                }
                FigureKind::Windows => {
                    figure.lines = self.axis(&mut table, "lines")?;
                    figure.compared = self.compared(&mut table)?;
                    figure.paper = table.quantity("paper", "percent", VALUE_MAX)?;
                }
            }
            all.push(table.finish(figure)?);
        }
        Ok(all)
    }

    /// What is printed, and which of it goes into the run.
    fn paper(&self, table: &mut Table<'_>) -> Result<Option<Paper>, Wrong> {
        let value = table.quantity("paper", "the unit of what is measured", VALUE_MAX)?;
        let is_limit = table.flag("paper_is_limit", false)?;
        let (source, why) = (table.text("source")?, table.text("why")?);
        match value {
            Some(value) => {
                let (source, why) = (source.unwrap_or_default(), why.unwrap_or_default());
                let given = self.inputs.given(table, value)?;
                Ok(Some(Paper { value, is_limit, source, why, given }))
            }
            None if source.is_some() || why.is_some() || is_limit || table.get("given").is_some() => {
                let wrong = Wrong::new(
                    table.at,
                    "`source`, `why`, `given` and `paper_is_limit` are about `paper`, which is not here",
                );
                Err(wrong.allowed("`paper` is the number that the paper prints"))
            }
            None => Ok(None),
        }
    }

    /// `base` and `with`: the variants that are compared.
    fn compared(&self, table: &mut Table<'_>) -> Result<(When, When), Wrong> {
        let compared = (self.when(table, "base")?, self.when(table, "with")?);
        if compared.0.is_empty() || compared.1.is_empty() {
            let wrong = Wrong::new(table.at, "a gain compares two variants: `with` against `base`");
            return Err(wrong.allowed("as in `base = { pm.mode = \"off\" }`, `with = { pm.mode = \"on\" }`"));
        }
        Ok(compared)
    }

    fn what(&self, table: &mut Table<'_>) -> Result<What, Wrong> {
        let word = table.word("what", &WHATS)?.map_or("throughput", |nth| WHATS[nth]);
        Ok(match word {
            "throughput" => {
                What::Throughput { flows: self.flows(table, "flows")?, window: self.window(table)? }
            }
            "per_host" => What::PerHost { flows: self.flows(table, "flows")?, window: self.window(table)? },
            "ratio" => What::Ratio {
                flow: self.flow(table, "flow")?,
                to: self.flow(table, "to")?,
                window: self.window(table)?,
            },
            "wait" => What::Wait { port: self.port(table)?, window: self.window(table)? },
            "moved" => What::Moved { flow: self.flow(table, "flow")?, after: after(table)? },
            "moved_back" => What::MovedBack { flow: self.flow(table, "flow")?, after: after(table)? },
            "moves" => What::Moves { flow: self.flow(table, "flow")? },
            "pause" => What::Pause { flow: self.flow(table, "flow")? },
            "latency" => What::Latency { flow: self.flow(table, "flow")? },
            "recovery" => What::Recovery {
                flow: self.flow(table, "flow")?,
                after: after(table)?,
                window: self.window(table)?,
                percent: table.quantity("percent", "percent", 100.0)?.unwrap_or(90.0),
            },
            "repeated" => What::Repeated { flows: self.flows(table, "flows")? },
            "broken" => What::Broken { flows: self.flows(table, "flows")? },
            "signalling" => {
                let kind = table.choice("kind", &SignallingKind::ALL, SignallingKind::name)?;
                let per_routing = table.flag("per_routing", false)?;
                What::Signalling { kind: kind.unwrap_or(SignallingKind::All), per_routing }
            }
            "reconfiguration" => {
                let of = table.choice("of", &ReconfigurationOf::ALL, ReconfigurationOf::name)?;
                What::Reconfiguration { after: after(table)?, of: of.unwrap_or(ReconfigurationOf::Host) }
            }
            "hot_spots" => What::HotSpots { except: table.names_of("except", Role::Host)? },
            "predicted_deadlock" => self.predicted(table)?,
            "beff" => self.beff(table)?,
            word => self.migration(table, word)?,
        })
    }

    fn predicted(&self, table: &mut Table<'_>) -> Result<What, Wrong> {
        if self.vms.is_some() {
            let wrong =
                Wrong::new(table.at, "the verifier predicts nothing where there are virtual machines");
            return Err(wrong.allowed("the subnet manager proves each move before it writes"));
        }
        Ok(What::PredictedDeadlock { after: after(table)? })
    }

    fn migration(&self, table: &mut Table<'_>, word: &str) -> Result<What, Wrong> {
        let vms = self.vms.map(|spec| spec.vms.as_slice()).unwrap_or_default();
        let names: Vec<&str> = vms.iter().map(|vm| vm.name.as_str()).collect();
        let (at, vm, after) = (table.at, vms::known(table, &names)?, after(table)?);
        let of = table.choice("of", &MigrationsOf::ALL, MigrationsOf::name)?.unwrap_or(MigrationsOf::First);
        let mut migrations = self.vms.iter().flat_map(|spec| &spec.migrations);
        // A line for some variants alone may be about migrations that the others do not have.
        let is_for_all = table.get("when").is_none();
        if is_for_all && !migrations.any(|one| one.vm == vm && one.at >= after) {
            let message = format!("`{vm}` has no migration at or after {} s", after.as_secs_f64());
            return Err(Wrong::new(at, message).allowed("add a [[migrate]], or change `after`"));
        }
        let value = MigrationValue::named(word).unwrap_or(MigrationValue::Downtime);
        Ok(What::Migration { vm, after, of, value })
    }

    fn beff(&self, table: &mut Table<'_>) -> Result<What, Wrong> {
        let tests: Vec<&str> = self.traffic.beffs.iter().map(|test| test.name.as_str()).collect();
        let unknown = |name: &str| format!("no [beff.{name}] is there");
        let name = table.known("test", "the name of a [beff.NAME]", &tests, unknown)?;
        table.need("quantity", "what of the test is meant")?;
        let value = table.choice("quantity", &BeffValue::ALL, BeffValue::name)?;
        let value = value.unwrap_or(BeffValue::PingPongLatencyMin);
        Ok(What::Beff { name, value })
    }

    /// `flow = "1-5"`, `flows = ["1-5", "3-5"]`, or nothing: all.
    fn flows(&self, table: &mut Table<'_>, key: &'static str) -> Result<Vec<String>, Wrong> {
        let several = table.get(key);
        let single = table.get("flow");
        let Some(value) = several.or(single) else { return Ok(Vec::new()) };
        if let (Some(_), Some(single)) = (several, single) {
            return Err(
                Wrong::new(single.at, "`flow` and `flows` both stand here").allowed("write one of them")
            );
        }
        let named = texts(value, key)?;
        named.into_iter().map(|(name, at)| self.known_flow(table, name, at)).collect()
    }

    fn flow(&self, table: &mut Table<'_>, key: &'static str) -> Result<String, Wrong> {
        let value = table.need(key, "the name of a flow")?;
        self.known_flow(table, as_text(value, key)?, value.at)
    }

    /// A flow's, pattern's or mix's name; or `pattern/SENDER-RECEIVER`, which the plan looks up.
    fn known_flow(&self, table: &Table<'_>, name: String, at: At) -> Result<String, Wrong> {
        let names = self.traffic.names();
        let first = name.split('/').next().unwrap_or_default();
        let is_pair = name.contains('/') && self.traffic.patterns.iter().any(|pattern| pattern.name == first);
        if names.contains(&name.as_str()) || is_pair {
            table.place(Role::Flow, &name, at);
            return Ok(name);
        }
        let wrong = Wrong::new(at, format!("no flow, pattern or mix is called `{name}`"));
        Err(wrong.allowed(choices(&name, &names)))
    }

    fn window(&self, table: &mut Table<'_>) -> Result<String, Wrong> {
        let names: Vec<&str> = self.windows.iter().map(|span| span.name.as_str()).collect();
        let unknown = |name: &str| format!("no window is called `{name}`");
        table.known("window", "the name of a span of [window]", &names, unknown)
    }

    fn port(&self, table: &mut Table<'_>) -> Result<String, Wrong> {
        let names: Vec<&str> = self.ports.iter().map(String::as_str).collect();
        let unknown = |name: &str| format!("the port `{name}` is not among the `ports` of [record]");
        table.known("port", "one of the `ports` of [record]", &names, unknown)
    }

    fn axis(&self, table: &mut Table<'_>, key: &'static str) -> Result<String, Wrong> {
        let Some(value) = table.get(key) else { return Ok(String::new()) };
        let name = as_text(value, key)?;
        self.axis_of(&name, value.at)?;
        Ok(name)
    }

    fn axis_of(&self, name: &str, at: At) -> Result<&Axis, Wrong> {
        let names: Vec<&str> = self.axes.iter().map(|axis| axis.name.as_str()).collect();
        let found = self.axes.iter().find(|axis| axis.name == name);
        found.ok_or_else(|| {
            Wrong::new(at, format!("no axis of variants is called `{name}`")).allowed(choices(name, &names))
        })
    }

    /// `when = { pm.mode = "on", lanes = [2, 4] }`.
    fn when(&self, table: &mut Table<'_>, key: &'static str) -> Result<When, Wrong> {
        let mut when = When::new();
        if let Some(value) = table.get(key) {
            self.walk(value, key, &mut Vec::new(), &mut when)?;
        }
        Ok(when)
    }

    fn walk(&self, value: &Value, key: &str, path: &mut Vec<String>, when: &mut When) -> Result<(), Wrong> {
        let name = path.join(".");
        if let Kind::Table(_) = &value.kind {
            for entry in as_table(value, key)? {
                path.push(entry.key.clone());
                self.walk(&entry.value, key, path, when)?;
                path.pop();
            }
            return Ok(());
        }
        if path.is_empty() {
            return Err(wrong_kind(value, key, "a table, as in `{ pm.mode = \"on\" }`"));
        }
        let axis = self.axis_of(&name, value.at)?;
        let known: Vec<&str> = axis.choices.iter().map(|choice| choice.label.as_str()).collect();
        let is_label = |label: &str| known.contains(&label);
        let whole = value.label().filter(|label| is_label(label));
        let labels = match (&value.kind, whole) {
            (_, Some(label)) => vec![label],
            (Kind::Array(items), None) => items.iter().filter_map(Value::label).collect(),
            _ => value.label().into_iter().collect(),
        };
        match labels.iter().find(|label| !is_label(label)) {
            Some(wrong) => {
                let message = format!("`{wrong}` is no choice of the axis `{name}`");
                Err(Wrong::new(value.at, message).allowed(choices(wrong, &known)))
            }
            None if labels.is_empty() => Err(wrong_kind(value, &name, "choices of the axis")),
            None => {
                when.push((name, labels));
                Ok(())
            }
        }
    }
}

fn after(table: &mut Table<'_>) -> Result<Time, Wrong> {
    Ok(table.seconds("after")?.unwrap_or_default())
}

/// The greatest value of a bound.
const VALUE_MAX: f64 = 1e12;

/// What the model says, and where it has that from.
fn model(table: &mut Table<'_>) -> Result<(Option<Bound>, Option<Basis>), Wrong> {
    const FORM: &str = "closed form:";
    const PAPER: &str = "paper:";
    const SHOWN: &str = "shown:";
    const ALLOWED: &str = "`model = \"closed form: 16 - 12.9 / 4\"`, `model = \"paper: half of the printed 32 %\"`, or `model = \"regression\"` where it is an earlier result";
    let (at, bound) = (table.at, bound(table)?);
    let basis = match table.get("model") {
        None => None,
        Some(value) => {
            let text = as_text(value, "model")?;
            let after = |word| text.strip_prefix(word).map(str::trim).filter(|form| !form.is_empty());
            Some(match (after(FORM), after(PAPER), after(SHOWN)) {
                (Some(form), ..) => Basis::ClosedForm(form.to_owned()),
                (_, Some(part), _) => Basis::Paper(part.to_owned()),
                (.., Some(reason)) => Basis::Shown(reason.to_owned()),
                _ if text == "regression" => Basis::Regression,
                _ => {
                    let message = format!("`model` cannot be `{text}`");
                    return Err(Wrong::new(value.at, message).allowed(format!("write {ALLOWED}")));
                }
            })
        }
    };
    let is_shown = matches!(basis, Some(Basis::Shown(_)));
    match (bound.is_some(), basis.is_some() && !is_shown) {
        (true, _) if is_shown => {
            Err(Wrong::new(at, "`model` says why nothing bounds this, and there is a bound"))
        }
        (true, false) => {
            Err(Wrong::new(at, "the bound does not say where it comes from")
                .allowed(format!("add {ALLOWED}")))
        }
        (false, true) => Err(Wrong::new(at, "`model` says where a bound comes from, and there is none")),
        _ => Ok((bound, basis)),
    }
}

fn bound(table: &mut Table<'_>) -> Result<Option<Bound>, Wrong> {
    let at = table.at;
    let value = table.quantity("value", "the unit of what is measured", VALUE_MAX)?;
    let percent = table.quantity("within_percent", "percent", 1000.0)?;
    let at_least = table.quantity("at_least", "the unit of what is measured", VALUE_MAX)?;
    let at_most = table.quantity("at_most", "the unit of what is measured", VALUE_MAX)?;
    let between = match table.get("between") {
        None => None,
        Some(Value { kind: Kind::Array(items), .. }) if items.len() == 2 => {
            let end = |item| as_signed(item, "between", "the unit of what is measured", VALUE_MAX);
            Some((end(&items[0])?, end(&items[1])?))
        }
        Some(value) => return Err(wrong_kind(value, "between", "two numbers, as in `[2.9, 3.5]`")),
    };
    let never = table.flag("never", false)?;
    if percent.is_some() && value.is_none() {
        return Err(Wrong::new(at, "`within_percent` says how near to `value`, which is not here"));
    }
    let within = value.map(|value| Bound::Within { value, percent: percent.unwrap_or(10.0) });
    let range = between.map(|(least, most)| Bound::Between(least, most));
    let all = [
        within,
        at_least.map(Bound::AtLeast),
        at_most.map(Bound::AtMost),
        range,
        never.then_some(Bound::Never),
    ];
    let mut given = all.into_iter().flatten();
    match (given.next(), given.next()) {
        (first, None) => Ok(first),
        _ => Err(Wrong::new(at, "an expectation has one bound")
            .allowed("`value` (with `within_percent`), `at_least`, `at_most`, `between` or `never`")),
    }
}

/// What a line is called where the file does not say.
fn named(what: &What) -> String {
    let listed = |flows: &[String]| if flows.is_empty() { "all flows".to_owned() } else { flows.join(" + ") };
    match what {
        What::Throughput { flows, window } => format!("{}, {window}", listed(flows)),
        What::PerHost { flows, window } => format!("{} per host, {window}", listed(flows)),
        What::Ratio { flow, to, window } => format!("{flow} over {to}, {window}"),
        What::Wait { port, window } => format!("{port} waits, {window}"),
        What::Moved { flow, .. } => format!("{flow} moves to the slow lane"),
        What::MovedBack { flow, .. } => format!("{flow} moves back"),
        What::Moves { flow } => format!("{flow} changes its lane so often"),
        What::Pause { flow } => format!("{flow} pauses to change its lane"),
        What::Latency { flow } => format!("{flow} latency"),
        What::Recovery { flow, after, percent, .. } => {
            format!("{flow} is back at {percent} % after {} s", after.as_secs_f64())
        }
        What::Repeated { flows } if flows.is_empty() => "packets sent again".to_owned(),
        What::Repeated { flows } => format!("{}: packets sent again", listed(flows)),
        What::Broken { flows } if flows.is_empty() => "flows that ended in error".to_owned(),
        What::Broken { flows } => format!("{}: flows that ended in error", listed(flows)),
        What::Signalling { kind, per_routing } => {
            let counted = if *kind == SignallingKind::All { "all datagrams" } else { kind.name() };
            format!("signalling, {counted}{}", if *per_routing { " a routing" } else { "" })
        }
        What::Reconfiguration { of: ReconfigurationOf::Host, .. } => "reconfiguration of a host".to_owned(),
        What::Reconfiguration { after, of: ReconfigurationOf::Last } => {
            format!("the last host is reconfigured after {} s", after.as_secs_f64())
        }
        What::HotSpots { except } if except.is_empty() => "hosts found to be hot spots".to_owned(),
        What::HotSpots { except } => format!("hosts found to be hot spots beside {}", except.join(" and ")),
        What::PredictedDeadlock { after } => {
            format!("the circle that the verifier predicts at {} s", after.as_secs_f64())
        }
        What::Migration { vm, after, of, value } => {
            let when =
                if *after > Time::ZERO { format!(" after {} s", after.as_secs_f64()) } else { String::new() };
            let which = match of {
                MigrationsOf::First => "",
                MigrationsOf::Least => ", the least of all migrations",
                MigrationsOf::Most => ", the most of all migrations",
            };
            format!(
                "{vm}: {}{which}{when}",
                value.name().replace('_', " ").replace("lft smps", "LFT SMPs").replace("smps", "SMPs")
            )
        }
        What::Beff { name, value } => format!("{name}: {}", value.name().replace('_', " ")),
    }
}
