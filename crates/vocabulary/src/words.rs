//! Words of sentences: names, values and routes as people read them.

use weft_wire::{Lid, PortNum, Printable, VirtualLane, count_of};

/// A directed route as tools write it, with the manager's own node as 0.
pub fn route(ports: &[PortNum]) -> String {
    std::iter::once(&PortNum(0)).chain(ports).map(PortNum::to_string).collect::<Vec<_>>().join(",")
}

/// A name in quotes.
pub fn name(text: &str) -> String {
    format!("`{}`", Printable(text))
}

/// A value's name as JSON has it, with its fields behind it.
pub fn lower(value: &impl serde::Serialize) -> String {
    fn shown(value: &serde_json::Value) -> String {
        match value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Object(fields) => {
                let field = |(name, value): (&String, &serde_json::Value)| format!("{name} {}", shown(value));
                fields.iter().map(field).collect::<Vec<_>>().join(" ")
            }
            other => other.to_string(),
        }
    }
    serde_json::to_value(value).map(|value| shown(&value)).unwrap_or_default()
}

/// A number of things.
pub fn count(count: u32, noun: &str) -> String {
    count_of(count as usize, noun)
}

/// A LID, or `any` for 0.
pub fn or_any(lid: Lid) -> String {
    if lid.0 == 0 { "any".to_owned() } else { lid.to_string() }
}

/// The LID that a port had before, if it had one.
pub fn instead_of(before: Lid) -> String {
    if before.0 == 0 { String::new() } else { format!(" instead of {before}") }
}

/// Which lane is management's.
pub fn lane_of_management(lane: Option<VirtualLane>) -> String {
    lane.map_or_else(
        || "management shares the data's lanes".to_owned(),
        |lane| format!("lane {lane} is management's alone"),
    )
}

/// What the busiest link carries by the tables in force and by others, in billionths of what hosts received.
pub fn busiest(before: u32, after: Option<u32>, is_taken: bool) -> String {
    let percent = |share: u32| f64::from(share) / 1e7;
    let what = if is_taken { "taken" } else { "not taken" };
    let after = after.map_or_else(
        || "no engine serves with other tables".to_owned(),
        |after| format!("{:.2} % by other tables, which are {what}", percent(after)),
    );
    format!("the busiest link carries {:.2} % of it, {after}", percent(before))
}

/// The balance of tables in force beside fresh ones, in thousandths, before and after.
pub fn balance(before: u32, after: Option<u32>) -> String {
    let percent = |balance: u32| f64::from(balance) / 10.0;
    let after = after.map_or_else(
        || ", until a move or a sweep came between".to_owned(),
        |after| format!(" to {:.1} %", percent(after)),
    );
    format!("from {:.1} % of a fresh routing's balance{after}", percent(before))
}

/// LIDs that keep their rows, if any do.
pub fn kept_rows(kept: u32) -> String {
    if kept == 0 { String::new() } else { format!("; {kept} LIDs keep their rows") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lid_of_0_stands_for_any() {
        assert_eq!([or_any(Lid(0)), or_any(Lid(7))], ["any", "7"]);
    }
}
