//! `[[fault]]`.

use weft_fault::{Fault, Impaired, Impairment, Nodes, Process, Way, Word};
use weft_machine::Time;

use super::error::{Wrong, choices};
use super::reader::{Role, Table, as_text, texts};
use super::tree::{Kind, Value};
use crate::FaultSpec;

pub(super) fn faults(top: &mut Table<'_>, duration: Time) -> Result<Vec<FaultSpec>, Wrong> {
    let mut all = Vec::new();
    for mut table in top.list("fault")? {
        let place = table.at;
        table.need("at", "when it happens, in seconds")?;
        let at = table.seconds("at")?.unwrap_or_default();
        if at > duration {
            return Err(Wrong::new(place, "the fault is after the run's end"));
        }
        let number = u32::try_from(all.len()).unwrap_or(u32::MAX);
        let (fault, said) = fault(&mut table, number)?;
        let label = table.text("label")?.unwrap_or(said);
        let lasts = table.seconds("for")?;
        table.finish()?;
        if let Some(lasts) = lasts {
            let ends = fault.end().filter(|_| lasts > Time::ZERO);
            let ends = ends.ok_or_else(|| Wrong::new(place, "`for` is a time, and for faults that last"))?;
            let label = format!("{label} until here");
            all.push(FaultSpec { at: at + lasts, fault: ends, label });
        }
        all.push(FaultSpec { at, fault, label });
    }
    // What would end after the run ends with it.
    all.retain(|spec: &FaultSpec| spec.at <= duration);
    all.sort_by_key(|spec| spec.at);
    Ok(all)
}

/// The keys of a fault: the words of `weft fault`, and shorter ones that mean the same.
const FAULT_KEYS: [(&str, Word); 11] = [
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
    let ways = Way::ALL.map(Way::name);
    let way = table.word("way", &ways)?.map_or(Way::Both, |place| Way::ALL[place]);
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
            Fault::Impair(_) | Fault::Clear(_) => fault.to_string(),
        };
        match &fault {
            Fault::Kill(Process::Sm | Process::Pm) | Fault::Restart(Process::Sm | Process::Pm) => {}
            Fault::Kill(_) | Fault::Restart(_) | Fault::Freeze(_) | Fault::Thaw(_) => {
                table.place(Role::Node, &name, value.at);
            }
            Fault::Partition(_) | Fault::Heal(_) => {
                named.iter().for_each(|(name, at)| table.place(Role::Node, name, *at));
            }
            Fault::LinkDown(_) | Fault::LinkUp(_) | Fault::Impair(_) | Fault::Clear(_) => {
                table.place(Role::Port, &name, value.at);
            }
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
