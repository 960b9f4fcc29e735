//! Help: options that most laboratories need, and with `--help-all` the rest.

use clap::{Arg, ArgAction, Command};

/// Verbs that take all options of the managers and devices.
const WITH_ALL: [&str; 6] = ["up", "plan", "compose", "k8s", "sim", "sm"];

/// Groups of options of which help shows few.
const GROUPS: [&str; 7] = [
    "Virtual functions",
    "Devices",
    "Subnet manager",
    "Congestion control",
    "Routing",
    "Performance manager",
    "Programs under ibsim's library",
];

/// The options of those groups that help shows, by their long names.
const SHOWN: [&str; 16] = [
    "vfs",
    "lids",
    "vmm-at",
    "no-vmm",
    "sm-at",
    "engine",
    "lmc",
    "partitions",
    "priority",
    "m-key",
    "sweep-interval-ms",
    "congestion-control",
    "pm",
    "pm-at",
    "pm-interval",
    "ibsim-socket",
];

/// Options beside those groups that help hides.
const RARE: [&str; 5] = ["tape-megabytes", "history", "record", "notices", "vm-guids"];

/// The option that shows the rest.
const HELP_ALL: &str = "help-all";

/// Hides what is rarely needed, unless the command line asks for all.
pub(super) fn shorten(command: Command) -> Command {
    let asked = format!("--{HELP_ALL}");
    let shows_all = std::env::args_os().any(|argument| argument == *asked);
    with_help_all(command, shows_all)
}

/// With the option that shows all; `shows_all`: nothing is hidden.
pub(super) fn with_help_all(command: Command, shows_all: bool) -> Command {
    WITH_ALL.into_iter().fold(command, |command, verb| {
        command.mut_subcommand(verb, |verb| {
            let all = Arg::new(HELP_ALL)
                .long(HELP_ALL)
                .action(ArgAction::HelpLong)
                .help("Print help with all options, also those that are rarely needed");
            let verb = if shows_all { verb } else { verb.mut_args(hide_if_rare) };
            verb.arg(all)
        })
    })
}

fn hide_if_rare(argument: Arg) -> Arg {
    let is_grouped = argument.get_help_heading().is_some_and(|heading| GROUPS.contains(&heading));
    let is_shown = argument.get_long().is_some_and(|long| SHOWN.contains(&long));
    let is_rare = argument.get_long().is_some_and(|long| RARE.contains(&long));
    if is_rare || is_grouped && !is_shown { argument.hide(true) } else { argument }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cli;

    fn help(verb: &str, shows_all: bool) -> String {
        let mut command = with_help_all(cli::parsed(), shows_all);
        command.find_subcommand_mut(verb).unwrap().render_long_help().to_string()
    }

    #[test]
    fn help_fits_and_all_of_it_is_there_when_asked_for() {
        for verb in WITH_ALL {
            let (short, all) = (help(verb, false), help(verb, true));
            // 586 lines were what no one read.
            assert!(short.lines().count() < 220, "{verb}: {} lines", short.lines().count());
            assert!(short.contains("--help-all") && !short.contains("--trap-limit"), "{verb}");
            assert!(all.lines().count() > short.lines().count(), "{verb}");
        }
        assert!(help("up", true).contains("--trap-limit"));
        let longs: BTreeSet<String> = {
            let command = cli::parsed();
            let verbs = WITH_ALL.map(|verb| command.find_subcommand(verb).unwrap().clone());
            let all = verbs.iter().flat_map(Command::get_arguments).filter_map(Arg::get_long);
            all.map(str::to_owned).collect()
        };
        let unknown: Vec<&str> = SHOWN.into_iter().filter(|shown| !longs.contains(*shown)).collect();
        assert!(unknown.is_empty(), "there are no such options: {unknown:?}");
    }

    /// What a verb has of its own stands under no heading of a group that comes before it.
    #[test]
    fn options_stand_under_their_own_headings() {
        const OWN: [&str; 22] = [
            "json",
            "report",
            "seed",
            "record",
            "foreground",
            "patience",
            "keep",
            "guid2lid",
            "history",
            "bundle",
            "pack",
            "sm",
            "standby",
            "udp-port",
            "attach-managers",
            "metrics",
            "image",
            "out",
            "namespace",
            "user",
            "door",
            "limit",
        ];
        let command = cli::parsed();
        for verb in command.get_subcommands().filter(|verb| verb.get_name() != "sm") {
            for argument in verb.get_arguments() {
                let heading = argument.get_help_heading();
                let is_own = argument.get_long().is_some_and(|long| OWN.contains(&long));
                assert!(!is_own || heading.is_none(), "{} {argument}: {heading:?}", verb.get_name());
            }
        }
        let up = command.find_subcommand("up").unwrap();
        let heading = |long: &str| {
            up.get_arguments().find(|argument| argument.get_long() == Some(long)).unwrap().get_help_heading()
        };
        assert_eq!((heading("hosts"), heading("restart")), (Some("Other hosts"), Some("Hub")));
    }
}
