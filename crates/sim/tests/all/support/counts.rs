//! Counts of what schedules did, by name.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::BTreeMap;

/// Counts of one schedule, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    /// Of these names, each zero so far.
    pub(crate) fn of(names: &[&'static str]) -> Self {
        Self(names.iter().map(|name| (*name, 0)).collect())
    }

    pub(crate) fn add(&mut self, name: &'static str, count: u64) {
        *self.0.entry(name).or_default() += count;
    }

    pub(crate) fn one(&mut self, name: &'static str) {
        self.add(name, 1);
    }

    pub(crate) fn set(&mut self, name: &'static str, count: u64) {
        self.0.insert(name, count);
    }

    /// Zero for what was never counted.
    pub(crate) fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// The least of all counts.
    pub(crate) fn least(&self) -> u64 {
        self.0.values().copied().min().unwrap_or(0)
    }

    pub(crate) fn sum(&mut self, other: Self) {
        other.0.into_iter().for_each(|(name, count)| self.add(name, count));
    }

    /// Fails when something that schedules have happened in none.
    pub(crate) fn all_happened(&self) {
        let never: Vec<_> = self.0.iter().filter(|(_, count)| **count == 0).map(|(name, _)| name).collect();
        assert!(never.is_empty(), "{never:?} never happened: {:?}", self.0);
    }
}

impl<const N: usize> From<[(&'static str, u64); N]> for Counts {
    fn from(counts: [(&'static str, u64); N]) -> Self {
        Self(counts.into())
    }
}
