//! Plain English in the sources: module heads that name the module, short test names, and words that comments do without.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Counts of words that are left, by crate: `sm told 12`. They may only fall.
const FILE: &str = "xtask/words.txt";

/// A head that begins so asks a question, and the reader wants the answer.
const QUESTIONS: &[&str] = &["What", "Who", "Which", "How", "Whether", "Where", "When"];

/// The longest name of a test, in characters.
const TEST_NAME_MAX: usize = 60;

/// Words for which plainer ones exist: *again*, *no one*, *the number of*, *remote*, *cable*.
const WORDS: &[&str] =
    &["anew", "nobody", "so many", "such a one", "afar", "elsewhere", "told", "cord", "cords"];

/// Breaches of all files, each a name and its text.
pub(crate) fn check(root: &Path, files: &[(String, String)]) -> Result<Vec<String>> {
    let list = fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    let mut breaches: Vec<String> = files.iter().flat_map(|(name, text)| breaches_of(name, text)).collect();
    breaches.extend(judge(&list, &counts(files)));
    Ok(breaches)
}

fn breaches_of(name: &str, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let head = text.lines().next().and_then(|line| line.strip_prefix("//! "));
    if let Some(question) = head.and_then(|head| QUESTIONS.iter().find(|word| begins(head, word))) {
        breaches.push(format!("{name}:1: a module's head says what the module is, not `{question} …`"));
    }
    let mut is_test = false;
    for (i, line) in text.lines().map(str::trim).enumerate() {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if is_test && !line.starts_with("#[") {
            is_test = false;
            let test =
                line.split_once("fn ").and_then(|(_, rest)| rest.split('(').next()).unwrap_or_default();
            if test.len() > TEST_NAME_MAX {
                let length = test.len();
                breaches.push(format!(
                    "{name}:{}: a test's name of {length} characters: at most {TEST_NAME_MAX}",
                    i + 1
                ));
            }
        }
    }
    breaches
}

fn begins(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// How often each crate's comments have each word.
fn counts(files: &[(String, String)]) -> BTreeMap<(String, &'static str), usize> {
    let mut counts = BTreeMap::new();
    for (name, text) in files.iter().filter(|(name, _)| !name.ends_with("xtask/src/voice.rs")) {
        let room = name.strip_prefix("crates/").unwrap_or(name);
        let room = room.split('/').next().unwrap_or(room);
        for comment in text.lines().filter_map(|line| line.split_once("//").map(|(_, comment)| comment)) {
            let lower = format!(" {} ", comment.to_lowercase().replace(|c: char| !c.is_alphanumeric(), " "));
            for word in WORDS {
                let found = lower.matches(&format!(" {word} ")).count();
                if found > 0 {
                    *counts.entry((room.to_owned(), *word)).or_default() += found;
                }
            }
        }
    }
    counts
}

/// The counts against the list.
fn judge(list: &str, counts: &BTreeMap<(String, &'static str), usize>) -> Vec<String> {
    let mut allowed: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in list.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let parts = line.split_once(' ').and_then(|(room, rest)| Some((room, rest.rsplit_once(' ')?)));
        match parts.and_then(|(room, (word, count))| Some((room, word, count.parse().ok()?))) {
            Some((room, word, count)) => drop(allowed.insert((room.to_owned(), word.to_owned()), count)),
            None => wrong.push(format!("{FILE}: `{line}` is no crate, word and count")),
        }
    }
    for ((room, word), count) in counts {
        match allowed.remove(&(room.clone(), (*word).to_owned())).unwrap_or(0) {
            most if *count > most => {
                wrong.push(format!(
                    "{room}: {count} comments with `{word}`, at most {most}: use a plainer word"
                ));
            }
            most if *count < most => {
                wrong.push(format!("{FILE}: {room} has `{word}` {count} times now: lower it"));
            }
            _ => {}
        }
    }
    wrong.extend(allowed.into_keys().map(|(room, word)| format!("{FILE}: {room} has no `{word}` any more")));
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Vec<(String, String)> {
        vec![("crates/sm/src/a.rs".to_owned(), text.to_owned())]
    }

    #[test]
    fn heads_that_ask_and_long_test_names_are_breaches() {
        let long = "a".repeat(61);
        let text =
            format!("//! What is asked.\n#[test]\n#[cfg(unix)]\nfn {long}() {{}}\nfn b{long}() {{}}\n");
        let found = breaches_of("a.rs", &text);
        assert!(
            matches!(&found[..], [head, name] if head.starts_with("a.rs:1:") && name.starts_with("a.rs:4:")),
            "{found:?}"
        );
        assert_eq!(breaches_of("a.rs", "//! Whatever is asked.\n// What is it?\n"), Vec::<String>::new());
    }

    #[test]
    fn words_in_comments_may_only_become_fewer() {
        let counts = counts(&file("// Nobody is told.\nlet told = 1; /// told, so many\n"));
        let list = "# head\nsm nobody 1\nsm told 2\nsm so many 1\n";
        assert_eq!(judge(list, &counts), Vec::<String>::new());
        let wrong = |list: &str| judge(list, &counts).join("\n");
        assert!(wrong("sm nobody 1\nsm told 1\nsm so many 1").contains("2 comments with `told`, at most 1"));
        assert!(wrong("sm nobody 2\nsm told 2\nsm so many 1").contains("`nobody` 1 times now"));
        assert!(wrong(&format!("{list}vm anew 1\n")).contains("vm has no `anew` any more"));
        assert!(wrong("sm nobody").contains("is no crate, word and count"));
    }
}
