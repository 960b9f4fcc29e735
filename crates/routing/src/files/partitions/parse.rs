//! Reading a partitions file.

use core::net::Ipv6Addr;
use std::collections::BTreeMap;

use weft_wire::{Gid, Guid};

use super::{
    Group, GroupFlags, Membership, PartitionRule, PartitionsFile, PartitionsFileError,
    PartitionsFileProblem as Problem, PortRule, Who,
};
use crate::partitions::{DEFAULT_PKEY, Isolation, Strictness};

const PARTITION_FLAGS: &str =
    "indx0, ipoib, rate, mtu, sl, scope, Q_Key, TClass, FlowLabel, defmember and isolation";
const GROUP_FLAGS: &str = "rate, mtu, sl, scope, Q_Key, TClass and FlowLabel";
const MEMBERSHIPS: &str = "full, limited or both";
const ISOLATIONS: &str = "phy, vlane or def";
const PORTS: &str = "a PortGUID, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF or NONE";

pub(super) fn parse(file: &str, text: &str) -> Result<PartitionsFile, PartitionsFileError> {
    let mut reader = Reader::default();
    let error = |line: usize, (part, problem): Fault<'_>| {
        let column = part.line[..part.start].chars().count() + 1;
        PartitionsFileError { file: file.to_owned(), line, column, problem, text: part.text().to_owned() }
    };
    for (number, line) in (1..).zip(text.lines()) {
        reader.line(number, line).map_err(|fault| error(number, fault))?;
    }
    let line_of = |number: usize| text.lines().nth(number - 1).unwrap_or_default();
    if reader.open.is_some() {
        let line = line_of(reader.begun);
        let part = Part { line, start: 0, end: line.len() }.trimmed();
        return Err(error(reader.begun, (part, Problem::NotClosed)));
    }
    match reader.contradiction() {
        None => Ok(reader.done),
        Some((first, second)) => {
            let part = Part { line: line_of(second.line), start: second.start, end: second.end };
            let what = "the isolation of this partition";
            Err(error(second.line, (part, Problem::Contradiction { what, line: first.line })))
        }
    }
}

/// Part of a line.
#[derive(Clone, Copy)]
struct Part<'a> {
    line: &'a str,
    start: usize,
    end: usize,
}

type Fault<'a> = (Part<'a>, Problem);

impl<'a> Part<'a> {
    fn text(self) -> &'a str {
        &self.line[self.start..self.end]
    }

    fn is_empty(self) -> bool {
        self.start == self.end
    }

    fn trimmed(self) -> Self {
        let text = self.text();
        let start = self.start + (text.len() - text.trim_start().len());
        Self { start, end: start + text.trim().len(), ..self }
    }

    /// What comes before the first `separator` and what comes after it, both trimmed; the second is `None` without
    /// one.
    fn split(self, separator: char) -> (Self, Option<Self>) {
        match self.text().find(separator) {
            None => (self.trimmed(), None),
            Some(at) => {
                let before = Self { end: self.start + at, ..self };
                let after = Self { start: self.start + at + 1, ..self };
                (before.trimmed(), Some(after.trimmed()))
            }
        }
    }

    fn fails<T>(self, problem: Problem) -> Result<T, Fault<'a>> {
        Err((self, problem))
    }

    /// A number as C reads it: hexadecimal after 0x, octal after 0, decimal.
    fn number(self, what: &'static str, min: u64, max: u64) -> Result<u64, Fault<'a>> {
        let text = self.text();
        let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let (digits, radix) = match (hexadecimal, text.strip_prefix('0')) {
            (Some(digits), _) => (digits, 16),
            (None, Some(digits)) if !digits.is_empty() => (digits, 8),
            _ => (text, 10),
        };
        let unsigned = !digits.starts_with(['+', '-']);
        match u64::from_str_radix(digits, radix) {
            Ok(value) if unsigned && (min..=max).contains(&value) => Ok(value),
            _ => self.fails(Problem::Range { what, min, max }),
        }
    }
}

/// An isolation, of which rule, and where it is said.
#[derive(Clone, Copy)]
struct Said {
    isolation: Isolation,
    rule: usize,
    line: usize,
    start: usize,
    end: usize,
}

#[derive(Default)]
struct Reader {
    done: PartitionsFile,
    /// The rule whose list of ports is being read.
    open: Option<PartitionRule>,
    /// The line where that rule begins.
    begun: usize,
    /// What is said of isolation.
    isolations: Vec<Said>,
    /// Where it was said what happens when a policy cannot be kept.
    strictness_line: usize,
}

impl Reader {
    fn line<'a>(&mut self, number: usize, line: &'a str) -> Result<(), Fault<'a>> {
        let end = line.find('#').unwrap_or(line.len());
        let mut rest = Some(Part { line, start: 0, end }.trimmed());
        while let Some(part) = rest.filter(|part| !part.is_empty()) {
            let (segment, after) = part.split(';');
            let body = match self.open {
                Some(_) => Some(segment),
                None => self.begin(number, segment, after.is_some())?,
            };
            if let (Some(rule), Some(body)) = (&mut self.open, body) {
                ports(rule, body)?;
            }
            if after.is_some() {
                self.close(segment)?;
            }
            rest = after;
        }
        Ok(())
    }

    /// Reads a definition and returns what follows its colon.
    fn begin<'a>(
        &mut self,
        number: usize,
        segment: Part<'a>,
        closed: bool,
    ) -> Result<Option<Part<'a>>, Fault<'a>> {
        let (definition, body) = segment.split(':');
        let Some(body) = body else {
            self.global(number, segment, closed)?;
            return Ok(None);
        };
        let mut rule = PartitionRule::default();
        let (head, mut rest) = definition.split(',');
        let (name, pkey) = head.split('=');
        let starts_with_digit = name.text().starts_with(|c: char| c.is_ascii_digit());
        let pkey = pkey.or(starts_with_digit.then_some(name));
        if !starts_with_digit || pkey.is_some_and(|pkey| pkey.start != name.start) {
            name.text().clone_into(&mut rule.name);
        }
        if let Some(pkey) = pkey {
            // The highest bit is that of the membership.
            let value = pkey.number("a P_Key", 0, 0xffff)? as u16 & DEFAULT_PKEY;
            rule.pkey = Some(value).filter(|value| *value != 0);
        }
        while let Some(part) = rest {
            let (flag, after) = part.split(',');
            self.partition_flag(number, &mut rule, flag)?;
            rest = after;
        }
        self.begun = number;
        self.open = Some(rule);
        Ok(Some(body))
    }

    /// `strict ;` or `best-effort ;`.
    fn global<'a>(&mut self, number: usize, segment: Part<'a>, closed: bool) -> Result<(), Fault<'a>> {
        let strictness = match segment.text() {
            "strict" => Strictness::Strict,
            "best-effort" => Strictness::BestEffort,
            "" => return segment.fails(Problem::Expected("a partition before `;`")),
            _ => return segment.fails(Problem::NoColon),
        };
        if !closed {
            return segment.fails(Problem::Expected("`;` after this word"));
        }
        let before = self.done.strictness.replace(strictness);
        if before.is_some_and(|before| before != strictness) {
            let line = self.strictness_line;
            return segment.fails(Problem::Contradiction { what: "strict or best-effort", line });
        }
        self.strictness_line = number;
        Ok(())
    }

    fn partition_flag<'a>(
        &mut self,
        number: usize,
        rule: &mut PartitionRule,
        part: Part<'a>,
    ) -> Result<(), Fault<'a>> {
        let (name, value) = part.split('=');
        match (name.text(), value) {
            ("indx0", None) => rule.index0 = true,
            ("ipoib", None) => rule.ipoib = true,
            ("indx0" | "ipoib", Some(value)) => return value.fails(Problem::Value),
            ("defmember", value) => rule.defmember = Some(membership(wanted(name, value, MEMBERSHIPS)?)?),
            ("isolation", value) => {
                let value = wanted(name, value, ISOLATIONS)?;
                let isolation = isolation(value)?;
                rule.isolation = Some(isolation);
                let (line, rule) = (number, self.done.rules.len());
                self.isolations.push(Said { isolation, rule, line, start: value.start, end: value.end });
            }
            _ if group_flag(&mut rule.flags, name, value)? => {}
            _ => return name.fails(Problem::UnknownFlag(PARTITION_FLAGS)),
        }
        Ok(())
    }

    /// The first two places that say different isolations of one partition.
    fn contradiction(&self) -> Option<(Said, Said)> {
        let pkeys = self.done.pkeys();
        let mut first_of: BTreeMap<u16, Said> = BTreeMap::new();
        self.isolations.iter().find_map(|said| {
            let first = *first_of.entry(pkeys[said.rule]).or_insert(*said);
            (first.isolation != said.isolation).then_some((first, *said))
        })
    }

    fn close<'a>(&mut self, part: Part<'a>) -> Result<(), Fault<'a>> {
        if let Some(rule) = self.open.take() {
            self.done.rules.push(rule);
            // Checked only where it could be: every rule may need a P_Key of its own.
            if self.done.rules.len() >= usize::from(DEFAULT_PKEY) && !self.done.has_pkeys() {
                return part.fails(Problem::NoPkeyLeft);
            }
        }
        Ok(())
    }
}

impl PartitionsFile {
    /// Whether there is a P_Key for every rule that wants one of its own.
    fn has_pkeys(&self) -> bool {
        let pkeys = self.pkeys();
        let unnamed = self.rules.iter().zip(&pkeys).filter(|(rule, _)| rule.pkey.is_none());
        // Those for whom none was left are put into the default partition.
        !unnamed.into_iter().any(|(rule, pkey)| *pkey == DEFAULT_PKEY && rule.name != super::DEFAULT_NAME)
    }
}

/// Reads part of a rule's list of ports and groups.
fn ports<'a>(rule: &mut PartitionRule, body: Part<'a>) -> Result<(), Fault<'a>> {
    let mut rest = Some(body);
    while let Some(part) = rest {
        let (entry, after) = part.split(',');
        let (name, value) = entry.split('=');
        if name.text() == "mgid" {
            rule.groups.push(group(name, value, after)?);
            return Ok(());
        }
        let membership = value.map(membership).transpose()?;
        if let Some(who) = who(name)? {
            rule.ports.push(PortRule { who, membership });
        }
        rest = after;
    }
    Ok(())
}

fn who(name: Part<'_>) -> Result<Option<Who>, Fault<'_>> {
    Ok(Some(match name.text() {
        // As after a comma at the end of a line.
        "" | "NONE" => return Ok(None),
        "ALL" => Who::All,
        "ALL_CAS" => Who::AllCas,
        "ALL_SWITCHES" => Who::AllSwitches,
        "ALL_ROUTERS" => Who::AllRouters,
        "SELF" => Who::SubnetManager,
        text if text.starts_with(|c: char| c.is_ascii_digit()) => {
            Who::Port(Guid(name.number("a PortGUID", 1, u64::MAX)?))
        }
        _ => return name.fails(Problem::Expected(PORTS)),
    }))
}

fn membership(part: Part<'_>) -> Result<Membership, Fault<'_>> {
    match part.text() {
        "" => part.fails(Problem::Expected(MEMBERSHIPS)),
        text if "full".starts_with(text) => Ok(Membership::Full),
        text if "limited".starts_with(text) => Ok(Membership::Limited),
        text if "both".starts_with(text) => Ok(Membership::Both),
        _ => part.fails(Problem::Expected(MEMBERSHIPS)),
    }
}

fn isolation(part: Part<'_>) -> Result<Isolation, Fault<'_>> {
    Isolation::named(part.text()).map_or_else(|| part.fails(Problem::Expected(ISOLATIONS)), Ok)
}

/// The address of a group; `rest` has its flags.
fn group<'a>(name: Part<'a>, value: Option<Part<'a>>, rest: Option<Part<'a>>) -> Result<Group, Fault<'a>> {
    const MGID: &str = "a multicast GID such as ff12:401b::1";
    let value = wanted(name, value, MGID)?;
    let mgid = match value.text().parse::<Ipv6Addr>() {
        Ok(address) if address.octets()[0] == 0xff => {
            let bits = u128::from(address);
            Gid { prefix: weft_wire::GidPrefix((bits >> 64) as u64), guid: Guid(bits as u64) }
        }
        _ => return value.fails(Problem::Expected(MGID)),
    };
    let (mut flags, mut rest) = (GroupFlags::default(), rest);
    while let Some(part) = rest {
        let (flag, after) = part.split(',');
        let (name, value) = flag.split('=');
        if !group_flag(&mut flags, name, value)? {
            return name.fails(Problem::UnknownFlag(GROUP_FLAGS));
        }
        rest = after;
    }
    Ok(Group { mgid, flags })
}

/// Reads a flag of a group; false where it is none.
fn group_flag<'a>(
    flags: &mut GroupFlags,
    name: Part<'a>,
    value: Option<Part<'a>>,
) -> Result<bool, Fault<'a>> {
    let number = |what, min, max| wanted(name, value, "a number")?.number(what, min, max);
    match name.text() {
        "rate" => flags.rate = Some(number("a rate's code", 1, 63)? as u8),
        "mtu" => flags.mtu = Some(number("an MTU's code", 1, 5)? as u8),
        "sl" => flags.sl = Some(number("a service level", 0, 15)? as u8),
        "scope" => drop(flags.scopes.insert(number("a scope's code", 1, 15)? as u8)),
        "Q_Key" => flags.q_key = Some(number("a Q_Key", 0, u64::from(u32::MAX))? as u32),
        "TClass" => flags.traffic_class = Some(number("a traffic class", 0, 255)? as u8),
        "FlowLabel" => flags.flow_label = Some(number("a flow label", 0, 0xf_ffff)? as u32),
        _ => return Ok(false),
    }
    Ok(true)
}

fn wanted<'a>(name: Part<'a>, value: Option<Part<'a>>, what: &'static str) -> Result<Part<'a>, Fault<'a>> {
    match value {
        Some(value) => Ok(value),
        None => name.fails(Problem::NoValue(what)),
    }
}
