//! Lengths of crates: one that grows too long becomes two.

use std::collections::BTreeMap;

use crate::files::{body, is_test, source_of};

/// The longest crate, in lines without tests.
const LINES_MAX: usize = 15_000;

/// The crates that are longer: engines with their proofs, the subnet manager, and a device of one machine.
const LONG: &[&str] = &["routing", "sm", "device"];

/// A breach for each crate that is too long; of each file its name and text.
pub(crate) fn breaches(files: &[(String, String)]) -> Vec<String> {
    let of_tests: Vec<String> = files.iter().flat_map(|(name, text)| test_modules(name, text)).collect();
    let is_source = |name: &str| !is_test(name) && !of_tests.iter().any(|module| name.starts_with(module));
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, text) in files.iter().filter(|(name, _)| is_source(name)) {
        if let Some(room) = source_of(name).filter(|room| !LONG.contains(room)) {
            *lines.entry(room).or_default() += body(text).lines().count();
        }
    }
    let long = lines.into_iter().filter(|(_, lines)| *lines > LINES_MAX);
    long.map(|(room, lines)| format!("crates/{room}: {lines} lines, more than {LINES_MAX}")).collect()
}

/// How the paths of modules begin that a file declares for its tests alone.
fn test_modules(name: &str, text: &str) -> Vec<String> {
    let own = name.trim_end_matches(".rs");
    let folder = match own.rsplit_once('/') {
        Some((folder, "mod" | "lib" | "main")) => folder,
        _ => own,
    };
    let declared = text.split("#[cfg(test)]\nmod ").skip(1).filter_map(|rest| rest.split_once(';'));
    let modules = declared.filter(|(module, _)| module.chars().all(|c| c.is_alphanumeric() || c == '_'));
    modules.flat_map(|(module, _)| [format!("{folder}/{module}.rs"), format!("{folder}/{module}/")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_crates_are_found_and_tests_do_not_count() {
        let long = "//\n".repeat(LINES_MAX);
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let mut files = vec![
            file("crates/x/src/lib.rs", "#[cfg(test)]\nmod by_chance;\n"),
            file("crates/x/src/by_chance.rs", &long),
            file("crates/x/src/by_chance/model.rs", &long),
            file("crates/x/tests/all/main.rs", &long),
            file("crates/x/src/a.rs", &format!("//\n\n#[cfg(test)]\nmod tests {{\n{long}}}\n")),
            file("crates/sm/src/lib.rs", &format!("{long}{long}")),
        ];
        assert_eq!(breaches(&files), Vec::<String>::new());
        files.push(file("crates/x/src/b.rs", &long));
        assert_eq!(breaches(&files), ["crates/x: 15003 lines, more than 15000"]);
    }
}
