//! Editing a partitions file: comments, order and layout stay, and only the words change that a change is about.

use std::ops::Range;

use weft_wire::Guid;

use super::{Membership, PartitionsFile, PortRule, Who};
use crate::partitions::Isolation;

/// A change of a partitions file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionEdit {
    /// A partition without members.
    Add {
        /// Its name.
        name: String,
        /// The lower 15 bits of its P_Key.
        pkey: u16,
        /// Whether it is to have a broadcast group for IP.
        ipoib: bool,
    },
    /// All rules of a partition go.
    Remove {
        /// The lower 15 bits of its P_Key.
        pkey: u16,
    },
    /// A port is a member, with this membership from now on.
    Join {
        /// The lower 15 bits of the partition's P_Key.
        pkey: u16,
        /// The port.
        port: Guid,
        /// Whom it talks to.
        membership: Membership,
    },
    /// A partition is to be isolated this well from now on (Zahid 2016, table 1).
    Isolate {
        /// The lower 15 bits of its P_Key.
        pkey: u16,
        /// How well.
        isolation: Isolation,
    },
    /// A port is no member, as far as it is named.
    Leave {
        /// The lower 15 bits of the partition's P_Key.
        pkey: u16,
        /// The port.
        port: Guid,
    },
}

/// The flag of an isolation.
const FLAG: &str = "isolation";

/// One rule in the text, from its first character to its `;`.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    colon: usize,
    end: usize,
}

/// A part of a text and what comes into its place.
type Patch = (Range<usize>, String);

impl PartitionsFile {
    /// The text of this file after a change. `text` is what this was read from.
    pub fn edited(&self, text: &str, edit: &PartitionEdit) -> String {
        let spans = spans(text);
        let pkeys = self.pkeys();
        let of = |wanted: u16| {
            let rules = spans.iter().zip(&pkeys).filter(move |(_, pkey)| **pkey == wanted);
            rules.map(|(span, _)| *span).collect::<Vec<Span>>()
        };
        let mut patches: Vec<Patch> = Vec::new();
        match edit {
            PartitionEdit::Add { name, pkey, ipoib } => {
                let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                let ipoib = if *ipoib { ", ipoib" } else { "" };
                return format!("{text}{line_end}{name}={pkey:#06x}{ipoib} : ;\n");
            }
            PartitionEdit::Remove { pkey } => {
                patches.extend(
                    of(*pkey).iter().map(|span| (line_of(text, span.start..span.end + 1), String::new())),
                );
            }
            PartitionEdit::Isolate { pkey, isolation } => {
                for (nth, span) in of(*pkey).into_iter().enumerate() {
                    let said = (nth == 0 && *isolation != Isolation::Def).then_some(*isolation);
                    patches.extend(isolated(text, span, said));
                }
            }
            PartitionEdit::Leave { pkey, port } => {
                of(*pkey).iter().for_each(|span| patches.extend(without(text, *span, *port)));
            }
            PartitionEdit::Join { pkey, port, membership } => {
                let left =
                    patched(text, of(*pkey).iter().flat_map(|span| without(text, *span, *port)).collect());
                let places = pkeys.iter().rposition(|other| other == pkey);
                // The last word on a port holds.
                let last = places.and_then(|place| self::spans(&left).get(place).copied());
                let entry = PortRule { who: Who::Port(*port), membership: Some(*membership) }.to_string();
                return last.map_or_else(|| left.clone(), |span| patched(&left, with(&left, span, &entry)));
            }
        }
        patched(text, patches)
    }

    /// The lowest P_Key that no rule has.
    pub fn free_pkey(&self) -> Option<u16> {
        let taken = self.pkeys();
        (1..crate::DEFAULT_PKEY).find(|pkey| !taken.contains(pkey))
    }
}

/// A rule's definition with this isolation, or with none.
fn isolated(text: &str, span: Span, isolation: Option<Isolation>) -> Option<Patch> {
    let range = span.start..span.colon;
    let definition = &text[range.clone()];
    let is_other = |word: &&str| word.split('=').next().map(str::trim) != Some(FLAG);
    let mut words: Vec<String> = definition.split(',').filter(is_other).map(ToOwned::to_owned).collect();
    if let Some(isolation) = isolation {
        let blank = definition.len() - definition.trim_end().len();
        if let Some(last) = words.last_mut() {
            last.truncate(last.trim_end().len());
        }
        words.push(format!(" {FLAG}={isolation}{}", " ".repeat(blank)));
    }
    let words = words.join(",");
    let blank = if definition.ends_with(' ') && !words.ends_with(' ') { " " } else { "" };
    Some((range, words + blank)).filter(|(_, words)| words != definition)
}

/// The text with parts replaced, none of which overlap.
fn patched(text: &str, mut patches: Vec<Patch>) -> String {
    let mut text = text.to_owned();
    patches.sort_by_key(|(range, _)| std::cmp::Reverse((range.start, range.end)));
    patches.into_iter().for_each(|(range, new)| text.replace_range(range, &new));
    text
}

/// The characters that are in no comment, with their places.
fn code(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut is_comment = false;
    text.char_indices().filter(move |(_, c)| {
        is_comment = *c == '#' || is_comment && *c != '\n';
        !is_comment
    })
}

/// The rules in the order of the file.
fn spans(text: &str) -> Vec<Span> {
    let (mut spans, mut start, mut colon) = (Vec::new(), None, None);
    for (place, c) in code(text) {
        match c {
            ';' => {
                spans.extend(start.zip(colon).map(|(start, colon)| Span { start, colon, end: place }));
                (start, colon) = (None, None);
            }
            c if c.is_whitespace() => {}
            c => {
                start = start.or(Some(place));
                colon = colon.or((c == ':').then_some(place));
            }
        }
    }
    spans
}

/// An entry of a rule's list, without the spaces around it.
#[derive(Clone)]
struct Entry {
    range: Range<usize>,
    /// It is a group, to the end of its line.
    is_group: bool,
}

/// The entries of a rule.
fn entries(text: &str, span: Span) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut open: Option<Entry> = None;
    for (place, c) in code(text).filter(|(place, _)| (span.colon + 1..span.end).contains(place)) {
        let is_group = open.as_ref().is_some_and(|entry| entry.is_group);
        match c {
            '\n' => entries.extend(open.take()),
            ',' if !is_group => entries.extend(open.take()),
            c if c.is_whitespace() => {}
            c => {
                let end = place + c.len_utf8();
                let entry = open.get_or_insert(Entry { range: place..end, is_group: false });
                entry.range.end = end;
                entry.is_group |= text[entry.range.clone()].starts_with("mgid");
            }
        }
    }
    entries.extend(open);
    entries
}

/// Whether an entry names this port.
fn names(entry: &str, port: Guid) -> bool {
    let name = entry.split('=').next().unwrap_or_default().trim();
    let rule = format!("x=1 : {name} ;");
    let read = PartitionsFile::parse("", &rule).ok();
    read.is_some_and(|file| {
        file.rules.iter().flat_map(|rule| &rule.ports).any(|rule| rule.who == Who::Port(port))
    })
}

/// Takes a port's entries out of a rule.
fn without(text: &str, span: Span, port: Guid) -> Vec<Patch> {
    let all = entries(text, span);
    let goes: Vec<bool> =
        all.iter().map(|entry| !entry.is_group && names(&text[entry.range.clone()], port)).collect();
    let mut patches = Vec::new();
    for (at, entry) in all.iter().enumerate().filter(|(at, _)| goes[*at]) {
        let next = all.get(at + 1).map_or(span.end, |next| next.range.start);
        let comma = code(&text[..next]).find(|(place, c)| *place >= entry.range.end && *c == ',');
        let stays_before = (0..at).rev().find(|before| !goes[*before]);
        let is_last = all[at + 1..].iter().zip(&goes[at + 1..]).all(|(_, goes)| *goes);
        let range = match comma {
            Some((comma, _)) if text[entry.range.end..comma].trim().is_empty() => {
                entry.range.start..comma + 1
            }
            _ => entry.range.clone(),
        };
        patches.push((line_of(text, range), String::new()));
        // No comma is left behind the last one that stays.
        if let Some(before) = stays_before.filter(|before| is_last && !all[*before].is_group) {
            let from = all[before].range.end;
            let to = all[before + 1].range.start;
            let comma = code(&text[..to]).find(|(place, c)| *place >= from && *c == ',');
            patches.extend(
                comma.filter(|_| before + 1 == at).map(|(comma, _)| (comma..comma + 1, String::new())),
            );
        }
    }
    patches
}

/// Puts an entry behind the last one of a rule.
fn with(text: &str, span: Span, entry: &str) -> Vec<Patch> {
    let all = entries(text, span);
    let Some(last) = all.last() else {
        let behind = span.colon + 1;
        return vec![match text[behind..span.end].contains('\n') {
            false => (behind..span.end, format!(" {entry} ")),
            true => (span.end..span.end, format!("{entry} ")),
        }];
    };
    let end = last.range.end;
    let between = &text[end..span.end];
    let has_comma = code(&text[..span.end]).any(|(place, c)| place >= end && c == ',');
    let comma = if has_comma || last.is_group { "" } else { "," };
    match between.find('\n') {
        None if last.is_group => vec![(span.end..span.end, format!("\n  {entry} "))],
        None if has_comma => vec![(span.end..span.end, format!(" {entry} "))],
        None => vec![(end..end, format!(", {entry}"))],
        Some(line_end) => {
            let line_start = text[..last.range.start].rfind('\n').map_or(0, |at| at + 1);
            let indent = if line_start > span.start { &text[line_start..last.range.start] } else { "  " };
            let indent = if indent.trim().is_empty() { indent } else { "  " };
            let at = end + line_end;
            vec![(end..end, comma.to_owned()), (at..at, format!("\n{indent}{entry}"))]
        }
    }
}

/// A part of the text: with its whole line, where nothing else is in it.
fn line_of(text: &str, range: Range<usize>) -> Range<usize> {
    let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[range.end..].find('\n').map_or(text.len(), |at| range.end + at + 1);
    let is_alone = text[start..range.start].trim().is_empty() && text[range.end..end].trim().is_empty();
    if is_alone { start..end } else { range }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_pcg::Pcg64;

    const FILE: &str = "\
# who is where
Default=0x7fff, ipoib : ALL=limited, SELF=full ;
web=0x0008 : 0x1=full,   # the front
  0x2=full  # the back
  ;
db=0x9, defmember=full : 0x3 ;   # one line
groups : mgid=ff12:401b::707, sl=1
  0x4=full ;
";

    fn edit(text: &str, edit: &PartitionEdit) -> String {
        let file = PartitionsFile::parse("f", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let edited = file.edited(text, edit);
        PartitionsFile::parse("f", &edited).unwrap_or_else(|error| panic!("{error}\n{edited}"));
        edited
    }

    fn join(text: &str, pkey: u16, port: u64) -> String {
        edit(text, &PartitionEdit::Join { pkey, port: Guid(port), membership: Membership::Full })
    }

    fn leave(text: &str, pkey: u16, port: u64) -> String {
        edit(text, &PartitionEdit::Leave { pkey, port: Guid(port) })
    }

    #[test]
    fn a_member_comes_behind_the_last_one() {
        let five = "0x0000000000000005=full";
        let web = join(FILE, 8, 5);
        assert!(web.contains(&format!("  0x2=full,  # the back\n  {five}\n  ;\n")), "{web}");
        let db = join(FILE, 9, 5);
        assert!(db.contains(&format!("db=0x9, defmember=full : 0x3, {five} ;   # one line\n")), "{db}");
        let groups = join(FILE, 1, 5);
        assert!(groups.contains(&format!("  0x4=full, {five} ;\n")), "{groups}");
        let empty = edit(FILE, &PartitionEdit::Add { name: "new".into(), pkey: 2, ipoib: true });
        assert!(empty.ends_with("new=0x0002, ipoib : ;\n"), "{empty}");
        let first = join(&empty, 2, 5);
        assert!(first.ends_with(&format!("new=0x0002, ipoib : {five} ;\n")), "{first}");
    }

    #[test]
    fn a_member_goes_with_its_comma() {
        let web = leave(FILE, 8, 2);
        assert!(web.contains("web=0x0008 : 0x1=full   # the front\n    # the back\n  ;\n"), "{web}");
        let web = leave(&web, 8, 1);
        assert!(web.contains("web=0x0008 :    # the front\n"), "{web}");
        assert!(leave(FILE, 9, 3).contains("db=0x9, defmember=full :  ;   # one line\n"));
        assert_eq!(leave(FILE, 9, 77), FILE, "it was not there");
        let back = join(&leave("a=1 : 0x1=full, 0x2=full ;\n", 1, 2), 1, 2);
        assert_eq!(back, "a=1 : 0x1=full, 0x0000000000000002=full  ;\n");
    }

    #[test]
    fn a_policy_comes_changes_and_goes_in_the_definition() {
        let isolate = |text: &str, pkey, isolation| edit(text, &PartitionEdit::Isolate { pkey, isolation });
        let phy = isolate(FILE, 8, Isolation::Phy);
        assert_eq!(phy, FILE.replace("web=0x0008 :", "web=0x0008, isolation=phy :"));
        let vlane = isolate(&phy, 8, Isolation::Vlane);
        assert_eq!(vlane, FILE.replace("web=0x0008 :", "web=0x0008, isolation=vlane :"));
        assert_eq!(isolate(&vlane, 8, Isolation::Def), FILE, "nothing is left of it");
        let db = isolate(FILE, 9, Isolation::Phy);
        assert_eq!(db, FILE.replace("defmember=full :", "defmember=full, isolation=phy :"));
        assert_eq!(isolate(&isolate(FILE, 1, Isolation::Vlane), 1, Isolation::Def), FILE, "without a P_Key");
        // Two rules of one partition say it once.
        let two = "a=1, isolation=phy : 0x1 ;\na=1, isolation=phy, ipoib : 0x2 ;\n";
        assert_eq!(isolate(two, 1, Isolation::Vlane), "a=1, isolation=vlane : 0x1 ;\na=1, ipoib : 0x2 ;\n");
        assert_eq!(isolate("a=1:0x1;\n", 1, Isolation::Phy), "a=1, isolation=phy:0x1;\n");
    }

    #[test]
    fn a_partition_goes_with_its_lines() {
        let gone = edit(FILE, &PartitionEdit::Remove { pkey: 8 });
        assert!(
            !gone.contains("web") && gone.contains("# who is where") && gone.contains("db=0x9"),
            "{gone}"
        );
        let gone = edit(FILE, &PartitionEdit::Remove { pkey: 9 });
        assert!(gone.contains("# one line"), "{gone}");
    }

    /// Any changes, one after the other: who is in which partition is what they say, and all comments stay.
    #[test]
    fn any_changes_do_what_they_say_and_keep_comments() {
        for seed in 0..300 {
            let mut random = Pcg64::seed_from_u64(seed);
            let mut text = FILE.to_owned();
            for _ in 0..12 {
                let pkey = [8, 9, 1][random.random_range(0..3)];
                let port = Guid(random.random_range(1..=6));
                let full = random.random_range(0..2) == 0;
                let membership = if full { Membership::Full } else { Membership::Limited };
                let comes = random.random_range(0..3) > 0;
                let change = match comes {
                    true => PartitionEdit::Join { pkey, port, membership },
                    false => PartitionEdit::Leave { pkey, port },
                };
                let before = members(&text);
                let after = edit(&text, &change);
                let mut wanted = before;
                wanted.retain(|(key, guid, _)| (*key, *guid) != (pkey, port));
                wanted.extend(comes.then_some((pkey, port, full)));
                wanted.sort_unstable();
                assert_eq!(members(&after), wanted, "seed {seed}: {change:?}\n{text}\n{after}");
                let comments = [
                    "# who is where",
                    "# the front",
                    "# the back",
                    "# one line",
                    "mgid=ff12:401b::707, sl=1",
                ];
                assert!(comments.iter().all(|comment| after.contains(comment)), "seed {seed}\n{after}");
                text = after;
            }
        }
    }

    /// The members that are named, with their memberships.
    fn members(text: &str) -> Vec<(u16, Guid, bool)> {
        let file = PartitionsFile::parse("f", text).unwrap();
        let fabric = weft_topology::Fabric::default();
        let mut members: Vec<_> = file
            .resolve(&fabric, None)
            .list
            .into_iter()
            .filter(|partition| partition.pkey != crate::DEFAULT_PKEY)
            .flat_map(|partition| {
                let pkey = partition.pkey;
                partition.members.into_iter().map(move |member| (pkey, member.guid, member.full))
            })
            .collect();
        members.sort_unstable();
        members
    }
}
