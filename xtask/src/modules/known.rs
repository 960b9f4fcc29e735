//! The list of knots that are still there, `xtask/knots.txt`. It may only shrink.
//!
//! A line is a crate and its rooms: `weft: cli lab verbs`. Empty lines and those that begin with `#` are left out.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};

use super::rooms::Knot;

/// The list's file.
pub(super) const FILE: &str = "xtask/knots.txt";

/// How many places are shown where one room names another.
const SITES_MAX: usize = 5;

/// The listed knots, by crates.
pub(super) struct Known(Vec<(String, BTreeSet<String>)>);

impl Known {
    /// Reads the list.
    pub(super) fn read(text: &str) -> Result<Self> {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let knot = |line: &str| {
            let (name, rooms) =
                line.split_once(':').with_context(|| format!("{FILE}: no crate in {line:?}"))?;
            Ok((name.to_owned(), rooms.split_whitespace().map(str::to_owned).collect()))
        };
        lines.map(knot).collect::<Result<_>>().map(Self)
    }

    /// The differences between the list and the knots that were found, by crates.
    pub(super) fn judge(&self, found: &BTreeMap<String, Vec<Knot>>) -> Vec<String> {
        let found: Vec<(&String, BTreeSet<String>, &Knot)> = found
            .iter()
            .flat_map(|(name, knots)| knots.iter().map(move |knot| (name, members(knot), knot)))
            .collect();
        let mut wrong: Vec<String> = found
            .iter()
            .filter(|(name, rooms, _)| {
                !self.0.iter().any(|(known, listed)| known == *name && rooms.is_subset(listed))
            })
            .map(|(name, rooms, knot)| format!("{}\n{}", line(name, rooms), edges(knot)))
            .collect();
        for (name, listed) in &self.0 {
            let left: Vec<_> = found
                .iter()
                .filter(|(known, rooms, _)| *known == name && rooms.is_subset(listed))
                .map(|(_, rooms, _)| rooms)
                .collect();
            match left.as_slice() {
                [] => {
                    wrong.push(format!("{FILE}: delete the line `{}`: the knot is gone", line(name, listed)));
                }
                [same] if *same == listed => {}
                less => {
                    let lines: Vec<String> =
                        less.iter().map(|rooms| format!("`{}`", line(name, rooms))).collect();
                    let lines = lines.join(" and ");
                    wrong.push(format!("{FILE}: the line `{}` is now {lines}", line(name, listed)));
                }
            }
        }
        wrong
    }
}

fn members(knot: &Knot) -> BTreeSet<String> {
    knot.members.iter().map(|room| room.join("::")).collect()
}

fn line(name: &str, rooms: &BTreeSet<String>) -> String {
    let rooms: Vec<&str> = rooms.iter().map(String::as_str).collect();
    format!("{name}: {}", rooms.join(" "))
}

fn edges(knot: &Knot) -> String {
    let edge = |(from, to, sites): &(Vec<String>, Vec<String>, Vec<String>)| {
        let more = if sites.len() > SITES_MAX { ", …" } else { "" };
        let sites = &sites[..sites.len().min(SITES_MAX)];
        format!("    {} -> {}: {}{more}", from.join("::"), to.join("::"), sites.join(", "))
    };
    knot.edges.iter().map(edge).collect::<Vec<_>>().join("\n")
}
