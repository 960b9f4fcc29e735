//! `[[fault]]`.

use weft_chaos::Planned;
use weft_fault::{BadIdentity, Fault, Impaired, Impairment, Nodes, Presented, Way, Word};
use weft_machine::Time;

use super::error::{At, Wrong, choices};
use super::reader::{Role, Table, as_text, texts};
use super::tree::{Kind, Value};
use crate::FaultSpec;

/// A fault as a file has it, and what a report calls it.
pub(super) struct Listed {
    pub(super) planned: Planned<String, String>,
    /// Where it stands.
    pub(super) place: At,
    label: String,
}

/// The faults of a file, in its order.
pub(super) fn listed(top: &mut Table<'_>, until: Time) -> Result<Vec<Listed>, Wrong> {
    let mut all = Vec::new();
    for mut table in top.list("fault")? {
        let place = table.at;
        table.need("at", "when it happens, in seconds")?;
        let at = table.seconds("at")?.unwrap_or_default();
        if at > until {
            return Err(Wrong::new(place, "the fault is after the run's end"));
        }
        let number = u32::try_from(all.len()).unwrap_or(u32::MAX);
        let (fault, said) = fault(&mut table, number)?;
        let label = table.text("label")?.unwrap_or(said);
        let lasts = table.seconds("for")?;
        table.finish(())?;
        if lasts.is_some_and(|lasts| lasts == Time::ZERO || fault.end().is_none()) {
            return Err(Wrong::new(place, "`for` is a time, and for faults that last"));
        }
        all.push(Listed { planned: Planned { at, fault, lasts }, place, label });
    }
    Ok(all)
}

/// All that happens by the faults of an experiment, in order.
pub(super) fn faults(top: &mut Table<'_>, duration: Time) -> Result<Vec<FaultSpec>, Wrong> {
    let mut all = Vec::new();
    for Listed { planned: Planned { at, fault, lasts }, label, .. } in listed(top, duration)? {
        if let (Some(lasts), Some(ends)) = (lasts, fault.end()) {
            all.push(FaultSpec { at: at + lasts, fault: ends, label: format!("{label} until here") });
        }
        all.push(FaultSpec { at, fault, label });
    }
    // What would end after the run ends with it.
    all.retain(|spec: &FaultSpec| spec.at <= duration);
    all.sort_by_key(|spec| spec.at);
    Ok(all)
}

/// A text in quotes. What JSON escapes, TOML does too, and one character more.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// What a fault is in a file, line by line.
pub(super) fn written(planned: &Planned<String, String>) -> String {
    let Planned { at, fault, lasts } = planned;
    let list = |nodes: &Nodes<String>| nodes.0.iter().map(|node| quoted(node)).collect::<Vec<_>>().join(", ");
    let word = fault.word().name();
    let mut text = format!("[[fault]]\nat = {}\n", at.as_secs_f64());
    text += &match fault {
        Fault::Kill(process) | Fault::Restart(process) | Fault::Freeze(process) | Fault::Thaw(process) => {
            format!("{word} = {}\n", quoted(&process.to_string()))
        }
        Fault::LinkDown(name) | Fault::LinkUp(name) | Fault::GoodIdentity(name) => {
            format!("{word} = {}\n", quoted(name))
        }
        Fault::BadIdentity(Presented { node, identity }) => {
            format!("{word} = {}\nas = \"{identity}\"\n", quoted(node))
        }
        Fault::Partition(nodes) | Fault::Heal(nodes) => format!("{word} = [{}]\n", list(nodes)),
        Fault::Impair(impaired) | Fault::Clear(impaired) => {
            written_impairment(impaired, &quoted(&impaired.at))
        }
    };
    if let Some(lasts) = lasts {
        text += &format!("for = {}\n", lasts.as_secs_f64());
    }
    text
}

fn written_impairment(impaired: &Impaired<String>, at: &str) -> String {
    let Impaired { way, how, seed, .. } = impaired;
    let known = IMPAIRMENT_KEYS.iter().find(|(_, word, _)| *word == how.word());
    let (key, keys) = known.map_or(("", &[][..]), |(key, _, keys)| (*key, *keys));
    let said = how.to_string();
    // The word is in front of its amounts, in the order of their keys.
    let amounts =
        keys.iter().zip(said.split(' ').skip(1)).map(|(key, amount)| format!("{key} = \"{amount}\"\n"));
    let amounts: String = amounts.collect();
    format!("{key} = {at}\n{amounts}way = \"{}\"\nseed = {seed}\n", way.name())
}

/// The keys of a fault: the words of `weft fault`, and shorter ones that mean the same.
const FAULT_KEYS: [(&str, Word); 13] = [
    ("cut", Word::LinkDown),
    ("restore", Word::LinkUp),
    ("kill", Word::Kill),
    ("start", Word::Restart),
    ("link-down", Word::LinkDown),
    ("link-up", Word::LinkUp),
    ("restart", Word::Restart),
    ("freeze", Word::Freeze),
    ("thaw", Word::Thaw),
    ("partition", Word::Partition),
    ("heal", Word::Heal),
    ("bad-identity", Word::BadIdentity),
    ("good-identity", Word::GoodIdentity),
];

/// The keys of an impairment, and of its amounts.
const IMPAIRMENT_KEYS: [(&str, Word, &[&str]); 10] = [
    ("loss", Word::Loss, &["percent"]),
    ("delay", Word::Delay, &["by"]),
    ("jitter", Word::Jitter, &["by"]),
    ("reorder", Word::Reorder, &["percent", "by"]),
    ("duplicate", Word::Duplicate, &["percent"]),
    ("bit-errors", Word::BitErrors, &["rate"]),
    ("flap", Word::Flap, &["every", "down"]),
    ("width", Word::Width, &["to"]),
    ("speed", Word::Speed, &["to"]),
    ("slow-drain", Word::SlowDrain, &["percent"]),
];

/// How much, as text.
fn amount(value: &Value, key: &str) -> Result<String, Wrong> {
    match value.kind {
        Kind::Integer(number) => Ok(number.to_string()),
        Kind::Float(number) => Ok(number.to_string()),
        _ => as_text(value, key),
    }
}

/// An impairment, if the table has one. `number` is its seed unless it says another one.
fn impairment(table: &mut Table<'_>, number: u32) -> Result<Option<Impaired<String>>, Wrong> {
    let mut found = None;
    for (key, word, amounts) in IMPAIRMENT_KEYS {
        let Some(value) = table.get(key) else { continue };
        let at = as_text(value, key)?;
        table.place(Role::Port, &at, value.at);
        if found.replace((at, word, amounts)).is_some() {
            return Err(Wrong::new(table.at, "a fault does one thing").allowed(fault_keys()));
        }
    }
    let Some((at, word, amounts)) = found else { return Ok(None) };
    let mut texts = Vec::new();
    for key in amounts {
        texts.push(amount(table.need(key, "how much")?, key)?);
    }
    let texts = texts.join(" ");
    let how = Impairment::of(word, &texts).ok_or_else(|| {
        let message = format!("`{texts}` is no amount of {}", word.name());
        Wrong::new(table.at, message)
            .allowed("as in `percent = 5`, `by = \"2ms\"`, `rate = \"1e-9\"`, `every = \"2s\"` with a shorter `down`, `to = \"1x\"`")
    })?;
    let way = table.choice("way", &Way::ALL, Way::name)?.unwrap_or(Way::Both);
    let seed = table.number("seed", 0..=u32::MAX.into())?.unwrap_or(number);
    Ok(Some(Impaired { at, way, how, seed }))
}

fn fault(table: &mut Table<'_>, number: u32) -> Result<(Fault<String, String>, String), Wrong> {
    let mut found = impairment(table, number)?.map(|impaired| {
        let said = format!("{} on {}", impaired.how, impaired.at);
        (Fault::Impair(impaired), said)
    });
    for (key, word) in FAULT_KEYS {
        let Some(value) = table.get(key) else { continue };
        let named = texts(value, key)?;
        let name = named.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        let names = || Nodes(named.iter().map(|(name, _)| name.clone()).collect());
        let fault: Fault<String, String> = match (word, named.as_slice()) {
            (Word::Partition, [_, ..]) => Fault::Partition(names()),
            (Word::Heal, [_, ..]) => Fault::Heal(names()),
            (Word::BadIdentity, [(node, _)]) => {
                let identity = table.choice("as", &BadIdentity::ALL, BadIdentity::name)?;
                let identity = identity.unwrap_or(BadIdentity::Expired);
                Fault::BadIdentity(Presented { node: node.clone(), identity })
            }
            (_, [(one, _)]) => {
                Fault::of(word, one).ok_or_else(|| Wrong::new(value.at, format!("`{key}` names nothing")))?
            }
            _ => return Err(Wrong::new(value.at, format!("`{key}` takes one name"))),
        };
        let said = match &fault {
            Fault::LinkDown(_) => format!("{name} is cut"),
            Fault::LinkUp(_) => format!("{name} is back"),
            Fault::Kill(_) => format!("{name} is killed"),
            Fault::Restart(_) => format!("{name} starts"),
            Fault::Freeze(_) => format!("{name} is frozen"),
            Fault::Thaw(_) => format!("{name} goes on"),
            Fault::Partition(_) => format!("{name} apart"),
            Fault::Heal(_) => format!("{name} with the others again"),
            Fault::BadIdentity(presented) => format!("{name} has a bad identity ({})", presented.identity),
            Fault::GoodIdentity(_) => format!("{name} has its own identity again"),
            Fault::Impair(_) | Fault::Clear(_) => fault.to_string(),
        };
        match word {
            Word::Partition | Word::Heal => {
                named.iter().for_each(|(name, at)| table.place(Role::Node, name, *at));
            }
            Word::LinkDown | Word::LinkUp => table.place(Role::Port, &name, value.at),
            // Managers are no nodes; no one looks for their places.
            _ => table.place(Role::Node, &name, value.at),
        }
        if found.replace((fault, said)).is_some() {
            return Err(Wrong::new(table.at, "a fault does one thing").allowed(fault_keys()));
        }
    }
    found.ok_or_else(|| Wrong::new(table.at, "a fault does nothing").allowed(fault_keys()))
}

fn fault_keys() -> String {
    let keys = FAULT_KEYS.iter().map(|(key, _)| *key).chain(IMPAIRMENT_KEYS.iter().map(|(key, ..)| *key));
    choices("", &keys.collect::<Vec<_>>())
}
