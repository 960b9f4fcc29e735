//! The verbs in the help of the whole program, under headings.

use clap::Command;

use crate::terminal;

/// Columns of a help text at most, as of clap's own.
const COLUMNS: usize = 100;

/// Columns of what is said of a verb, at least.
const LEAST: usize = 20;

/// Headings, and the verbs under each, in order.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Run a laboratory", &["up", "down", "plan", "compose", "k8s", "identity", "hub"]),
    (
        "Look at it",
        &[
            "status", "ps", "links", "trace", "graph", "ui", "tape", "check", "events", "top", "metrics",
            "capture", "ask", "relay",
        ],
    ),
    ("Load it", &["flow", "traffic"]),
    ("Change and break it", &["topo", "vm", "partition", "fault", "chaos"]),
    ("Run programs on it", &["shell", "sysfs", "sm"]),
    ("Measure and reproduce", &["run", "bench", "study", "record", "replay"]),
    ("Without a laboratory", &["sim", "routes"]),
    ("This program", &["completions", "help"]),
];

/// With the verbs under headings.
pub(super) fn under_headings(mut command: Command) -> Command {
    command.build();
    let text = listed(&command);
    command.help_template(format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{text}\nOptions:\n{{options}}{{after-help}}"
    ))
}

fn listed(command: &Command) -> String {
    // As wide as clap makes the rest.
    let columns = terminal::columns(std::io::stdout()).map_or(COLUMNS, |columns| columns.min(COLUMNS));
    let indent = GROUPS.iter().flat_map(|(_, verbs)| *verbs).map(|verb| verb.len()).max().unwrap_or(0) + 4;
    let mut text = String::new();
    for (heading, verbs) in GROUPS {
        text += &format!("\n{heading}:\n");
        for verb in verbs {
            let about = command.find_subcommand(verb).and_then(Command::get_about);
            let about = terminal::wrap(
                &about.map(ToString::to_string).unwrap_or_default(),
                columns.saturating_sub(indent).max(LEAST),
            );
            let mut lines = about.lines();
            text += &format!("  {verb:<0$}{1}\n", indent - 2, lines.next().unwrap_or_default());
            lines.for_each(|line| text += &format!("{:indent$}{line}\n", ""));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_verb_stands_under_one_heading() {
        let mut command = crate::cli::command();
        command.build();
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
        let shown: BTreeSet<&str> = shown.collect();
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), shown);
        assert_eq!(listed.len(), shown.len(), "one stands under two headings");
    }

    #[test]
    fn help_lists_verbs_by_what_they_are_for() {
        for help in [crate::cli::command().render_help(), crate::cli::command().render_long_help()] {
            let help = help.to_string();
            let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("no {text:?} in {help}"));
            assert!(
                at("\nRun a laboratory:\n  up           Start a laboratory") < at("\nLook at it:\n  status"),
                "{help}"
            );
            assert!(
                at("\nThis program:\n") < at("\nOptions:\n") && at("--identity") > at("\nOptions:\n"),
                "{help}"
            );
            assert!(!help.contains("\nCommands:"), "{help}");
            assert!(help.lines().all(|line| line.len() <= COLUMNS), "{help}");
        }
    }
}
