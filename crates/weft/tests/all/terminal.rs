//! Screens in terminals narrow and wide, with colours and without, and with keys that are pressed.

use std::path::Path;

use common::terminal::Terminal;
use common::{Home, Running, text, wait_until};
use rustix::process::Signal;
use vt100::{Color, Screen};

use crate::common;

/// Widths of the terminals that people have.
const WIDTHS: [u16; 5] = [40, 60, 80, 120, 200];

/// A laboratory that `top` has something to show of.
fn swept(home: &Home) {
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--pm", "--pm-interval", "100"]).succeeds();
}

fn lists_ports(screen: &Screen) -> bool {
    ["switch-1-0", "waiting %", "q: quit"].iter().all(|part| screen.contents().contains(part))
}

/// The rows below the table's heading.
fn rows(shown: &str) -> usize {
    let table = shown.lines().skip_while(|line| !line.contains("waiting %"));
    table.skip(1).take_while(|line| !line.is_empty()).count()
}

#[test]
fn top_fits_every_screen_and_q_ends_it() {
    let home = Home::new();
    swept(&home);
    for columns in WIDTHS {
        let mut terminal = Terminal::start(&home, columns, &[], &["top", "--every", "100"]);
        let shown = terminal.wait_for("ports", lists_ports);
        assert!(shown.starts_with("laboratory `default`"), "{columns}: {shown}");
        assert!(!shown.contains("u{1b}"), "escapes are obeyed, not shown: {shown}");
        assert!(terminal.look(|screen| screen.alternate_screen() && screen.hide_cursor()));
        assert_eq!(rows(&shown), 16, "{columns}: a port has one row: {shown}");
        assert!(shown.contains("waiting %  state") || shown.contains("lanes waiting %  state"), "{shown}");
        assert_eq!(shown.contains("lanes waiting %"), columns >= 120, "{columns}: {shown}");
        assert_eq!(shown.contains("sent Gb/s"), columns >= 60, "{columns}: {shown}");
        assert!(shown.lines().last().is_some_and(|keys| keys.starts_with("q: quit  s: sort")), "{shown}");
        // Pictures are drawn over each other.
        terminal.wait_for_more("\x1b[H", 3);
        assert_eq!(terminal.look(Screen::contents).matches("laboratory `default`").count(), 1);
        terminal.type_keys("xq");
        assert_eq!(terminal.exit_code(), 0);
        assert!(terminal.is_as_shells_want());
        assert_eq!(terminal.look(Screen::contents).trim(), "[exit 0]", "what was there before is back");
    }
}

#[test]
fn top_shows_flows_machines_and_other_orders_by_its_keys() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--pm", "--pm-interval", "100", "--vfs", "1"]).succeeds();
    home.weft(&["vm", "create", "web1", "--host", "host-0"]).succeeds();
    home.weft(&["flow", "start", "vm:web1", "host-3", "--name", "out"]).succeeds();
    for columns in WIDTHS.into_iter().filter(|columns| *columns >= 60) {
        let colors = [("NO_COLOR", "")];
        let mut terminal = Terminal::start(&home, columns, &colors, &["top", "--every", "100"]);
        terminal.wait_for("ports", lists_ports);
        terminal.type_keys("f");
        let has = |screen: &Screen, parts: &[&str]| parts.iter().all(|part| screen.contents().contains(part));
        let shown =
            terminal.wait_for("flows", |screen| has(screen, &["flow  ", "out", "vm:web1", "running"]));
        let (is_narrow, is_wide) = (columns <= 60, columns >= 120);
        assert!(!(is_narrow && shown.contains("repeated")), "{columns}: {shown}");
        assert!(!is_wide || shown.contains("repeated"), "{columns}: {shown}");
        terminal.type_keys("v");
        terminal.wait_for("machines", |screen| has(screen, &["machine  ", "web1", "running"]));
        terminal.type_keys("ps");
        terminal.wait_for("ports again", lists_ports);
        assert!(terminal.written().contains("\x1b[1mnode"), "the heading is bold");
        terminal.type_keys("q");
        assert_eq!(terminal.exit_code(), 0);
        assert!(terminal.is_as_shells_want());
    }
    let by_name = home.json(&["top", "--json", "--sort", "name"]);
    let nodes: Vec<String> = by_name["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| port["node"].as_str().unwrap().into())
        .collect();
    assert!(nodes.is_sorted(), "{nodes:?}");
    assert_eq!(
        (&by_name["flows"][0]["name"], &by_name["machines"][0]["name"]),
        (&"out".into(), &"web1".into())
    );
    let table = home.weft(&["top", "--once", "--view", "flows"]).succeeds().stdout.clone();
    assert!(table.contains("out") && table.contains("MB/s"), "{table}");
    home.weft(&["top", "--once", "--sort", "size"]).fails(2, "invalid value 'size'");
}

#[test]
fn top_gives_the_terminal_back_whatever_ends_it() {
    let home = Home::new();
    swept(&home);
    let shown = || {
        let terminal = Terminal::start(&home, 100, &[], &["top", "--every", "100"]);
        terminal.wait_for("ports", lists_ports);
        terminal
    };
    let mut interrupted = shown();
    interrupted.type_keys("\x03");
    assert_eq!(interrupted.exit_code(), 0, "it is how one leaves it");
    assert!(interrupted.is_as_shells_want());

    let mut resumed = shown();
    resumed.type_keys("\x1a");
    wait_until("the terminal is the shell's", || resumed.is_as_shells_want());
    resumed.signal(Signal::CONT);
    resumed.wait_for("ports again", |screen| screen.alternate_screen() && lists_ports(screen));
    resumed.resize(60);
    resumed.wait_for("what fits", |screen| lists_ports(screen) && !screen.contents().contains("rate Gb/s"));
    resumed.type_keys("Q");
    assert_eq!(resumed.exit_code(), 0);
    assert!(resumed.is_as_shells_want());

    let orphaned = shown();
    home.weft(&["down"]).succeeds();
    assert_eq!(orphaned.exit_code(), 1, "there is nothing to show any more");
    assert!(orphaned.is_as_shells_want());
    assert!(orphaned.look(Screen::contents).contains("error: the laboratory `default` was taken down"));
}

#[test]
fn a_terminal_that_cannot_be_drawn_on_gets_one_table() {
    let home = Home::new();
    swept(&home);
    for term in ["dumb", ""] {
        let terminal = Terminal::start(&home, 200, &[("TERM", term)], &["top"]);
        assert_eq!(terminal.exit_code(), 0);
        let shown = terminal.look(Screen::contents);
        assert!(shown.contains("(TERM)") && shown.contains("switch-1-0"), "{shown}");
        assert!(!terminal.written().contains('\x1b'));
    }
}

#[test]
fn bars_fit_every_screen_in_its_characters() {
    let home = Home::new();
    let file = home.small_tree();
    for (columns, locale) in WIDTHS.into_iter().zip(["C.UTF-8", "C", "C.UTF-8", "POSIX", "en_GB.utf8"]) {
        let terminal =
            Terminal::start(&home, columns, &[("LC_ALL", locale), ("NO_COLOR", "")], &["up", text(&file)]);
        assert_eq!(terminal.exit_code(), 0);
        let (shown, written) = (terminal.look(Screen::contents), terminal.written());
        for phase in ["agents started", "links up", "LIDs assigned", "tables written", "ports active"] {
            // Once as a bar, with its time in the same row, and once in the table.
            let rows: Vec<&str> = shown.lines().filter(|line| line.contains(phase)).collect();
            assert_eq!(rows.len(), 2, "{columns}: {phase}: {shown}");
            assert!(rows[0].trim_end().ends_with(" s") && rows[0].contains('/'), "{columns}: {shown}");
        }
        let (bar, is_ascii) =
            if locale.starts_with("C.") || locale.starts_with("en") { ("━", false) } else { ("=", true) };
        assert!(shown.contains(bar), "{locale}: {shown}");
        assert_eq!(written.is_ascii(), is_ascii, "{locale}: {shown}");
        assert!(written.contains("\x1b[36m"), "the bars have a colour");
        home.weft(&["down"]).succeeds();
    }
}

#[test]
fn help_fits_every_screen() {
    let home = Home::new();
    for columns in WIDTHS {
        let terminal = Terminal::start(&home, columns, &[], &["--help"]);
        assert_eq!(terminal.exit_code(), 0);
        let written = terminal.written();
        let verbs = written.lines().skip_while(|line| !line.starts_with("Run a laboratory"));
        let verbs: Vec<&str> =
            verbs.take_while(|line| !line.starts_with("Options")).map(str::trim_end).collect();
        assert!(verbs.len() > 30, "{columns}: {written}");
        let widest = verbs.iter().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= usize::from(columns), "{columns}: {widest}: {written}");
        // A narrow screen is used as far as it goes.
        assert!(widest >= usize::from(columns.min(80)) - 15, "{columns}: {widest}");
    }
}

#[test]
fn without_colours_there_are_bars_and_dumb_ones_have_none() {
    let home = Home::new();
    let file = home.small_tree();
    for (variables, bars) in
        [([("NO_COLOR", "1"), ("TERM", "xterm")], true), ([("NO_COLOR", ""), ("TERM", "dumb")], false)]
    {
        let terminal = Terminal::start(&home, 80, &variables, &["up", text(&file)]);
        assert_eq!(terminal.exit_code(), 0);
        let (shown, written) = (terminal.look(Screen::contents), terminal.written());
        assert_eq!(shown.contains('━'), bars, "{shown}");
        assert_eq!(written.contains('\x1b'), bars, "{written}");
        assert!(!written.contains("\x1b[36m"), "{written}");
        assert!(shown.contains("SUBNET UP"), "{shown}");
        home.weft(&["down"]).succeeds();
    }
}

#[test]
fn errors_are_coloured_where_that_is_wanted() {
    let home = Home::new();
    for (variables, color) in [
        ([("NO_COLOR", ""), ("TERM", "xterm")], Color::Idx(1)),
        ([("NO_COLOR", "1"), ("TERM", "xterm")], Color::Default),
        ([("NO_COLOR", ""), ("TERM", "dumb")], Color::Default),
    ] {
        let terminal = Terminal::start(&home, 80, &variables, &["up", "no\x1b[2Jsuch.topo"]);
        assert_eq!(terminal.exit_code(), 2);
        let shown = terminal.look(Screen::contents);
        assert!(shown.starts_with("error: cannot read no\\u{1b}[2Jsuch.topo"), "{shown}");
        let found = terminal
            .look(|screen| screen.cell(0, 0).map(|cell| (cell.contents().to_owned(), cell.fgcolor())));
        assert_eq!(found, Some(("e".to_owned(), color)));
    }
}

#[test]
fn events_are_plain_lines_until_ctrl_c() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file)]).succeeds();
    for columns in WIDTHS {
        let mut terminal = Terminal::start(&home, columns, &[], &["events", "--follow", "--since", "start"]);
        terminal.wait_for_written("press Ctrl-C to end");
        terminal.wait_for_written("SUBNET UP");
        terminal.type_keys("\x03");
        assert_eq!(terminal.exit_code(), 0, "to stop listening is its end");
        // A line that shows how far it is with asking may come before them, and is wiped out.
        let written = terminal.written();
        let events: Vec<&str> = written.lines().filter(|line| line.get(2..3) == Some(":")).collect();
        assert!(events.len() > 5, "{columns}: {written}");
        assert!(!events.iter().any(|line| line.contains('\x1b')), "{columns}: {written}");
    }
}

/// In virtual time nothing is left, and a start that is broken off leaves nothing running: exit code 130 says that there is no
/// result, as shells have it.
#[test]
fn ctrl_c_breaks_a_start_off() {
    let home = Home::new();
    let file = home.small_tree();
    // Devices that take a second for each SMP: it cannot be up before the key is pressed.
    let slow = ["up", text(&file), "--smp-processing-us", "1000000", "--timeout-ms", "60000"];
    let mut terminal = Terminal::start(&home, 80, &[], &slow);
    terminal.wait_for("a bar", |screen| screen.contents().contains("links up"));
    terminal.type_keys("\x03");
    assert_eq!(terminal.exit_code(), 130);
    let shown = terminal.look(Screen::contents);
    assert!(shown.contains("interrupted: nothing is left running"), "{shown}");
    assert!(!shown.contains("error:"), "{shown}");
    assert!(terminal.is_as_shells_want() && home.is_empty());
}

/// Whether a process has something to do when Ctrl-C is pressed.
fn catches_ctrl_c(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << (Signal::INT.as_raw() - 1) != 0
}

#[test]
fn ctrl_c_breaks_computing_off_and_says_what_is_left() {
    let home = Home::new();
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topologies/fattree-324.topo");
    let (small, large) = (home.small_tree(), home.folder().join("large.topo"));
    let shape = ["--children", "18,18,6", "--parents", "1,18,18", "-o", text(&large)];
    home.weft(&[&["topo", "gen", "xgft"], &shape[..]].concat()).succeeds();
    let compare = ["routes", "compare", text(&tree), "--engines", "minhop,updn", "--runs", "100000000"];
    let cases: [(&[&str], &str); 4] = [
        (&["sim", text(&large)], "the fabric was not up, and there is no result"),
        (&compare, "no file was written"),
        (&["study", "migrations", "--table4"], "nothing is kept of what was computed"),
        (
            &["chaos", text(&small), "--virtual", "--schedules", "1000000"],
            "interrupted, no violation until then",
        ),
    ];
    for (arguments, says) in cases {
        let mut running = Running::start(&home, arguments);
        wait_until("it looks out for Ctrl-C", || {
            assert!(running.is_running(), "{arguments:?} has ended");
            catches_ctrl_c(running.pid())
        });
        running.signal(Signal::INT);
        let done = running.done();
        assert_eq!(done.code, 130, "{arguments:?}: {}{}", done.stdout, done.stderr);
        let said = done.stdout + &done.stderr;
        assert!(said.contains(says) && said.contains("interrupted"), "{arguments:?}: {said}");
        assert!(!said.contains("error:"), "{said}");
    }
}
