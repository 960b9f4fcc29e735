//! The commands of README and of docs, run as a reader would run them: block after block of a page, in one folder and one shell.
//!
//! A block is a command block when its first line begins with a program that readers have. Comments in HTML, which readers do not see, stand
//! above a block and say what is different about it, each with its reason:
//!
//! | comment | |
//! |---|---|
//! | `not run: WHY` | the block is not run |
//! | `long tier: WHY` | the block is run in the long tier alone |
//! | ``not run `PREFIX`: WHY``, ``long tier `PREFIX`: WHY`` | the same for its lines that begin so |
//! | ``Ctrl-C `PREFIX`: WHY`` | such a line is interrupted after some seconds |
//! | ``fails `PREFIX`: WHY`` | such a line ends with an error, as the text says |
//! | `no block of this page is run: WHY` | |
//! | `before: COMMAND` | what the page takes for granted is made first |

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use weft_judges::weft_program;

/// What a command block begins with.
const PROGRAMS: [&str; 22] = [
    "weft",
    "cargo",
    "docker",
    "kubectl",
    "alias",
    "export",
    "sysctl",
    "ssh",
    "scp",
    "curl",
    "nc",
    "openssl",
    "rm",
    "srun",
    "sbatch",
    "nomad",
    "tests/run",
    "target/release/weft",
    "jq",
    "promtool",
    "prometheus",
    "python3",
];
/// How a line that is interrupted goes on before, in seconds.
const INTERRUPTED_AFTER: u32 = 3;

/// What a comment says of a block or of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    NotRun,
    LongTier,
    CtrlC,
    Fails,
}

const WORDS: [(&str, What); 4] = [
    ("not run", What::NotRun),
    ("long tier", What::LongTier),
    ("Ctrl-C", What::CtrlC),
    ("fails", What::Fails),
];

/// A comment: about lines that begin so, or about all of the block.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Note {
    what: What,
    prefix: Option<String>,
}

/// A command block.
#[derive(Debug, Default)]
struct Block {
    /// The line of the page where it begins, from 1.
    line: usize,
    notes: Vec<Note>,
    before: Vec<String>,
    commands: Vec<String>,
}

impl Block {
    fn is(&self, what: What, command: &str) -> bool {
        let fits = |note: &Note| note.prefix.as_ref().is_none_or(|prefix| command.starts_with(prefix));
        self.notes.iter().any(|note| note.what == what && fits(note))
    }

    /// The lines that are run, as a script says them.
    fn script(&self, is_long: bool) -> Vec<String> {
        let is_run = |command: &&String| {
            !self.is(What::NotRun, command) && (is_long || !self.is(What::LongTier, command))
        };
        let said = |command: &String| match (self.is(What::CtrlC, command), self.is(What::Fails, command)) {
            (true, _) => format!("interrupted {command}"),
            (_, true) => format!("! {command}"),
            _ => command.clone(),
        };
        let run: Vec<String> = self.commands.iter().filter(is_run).map(said).collect();
        if run.is_empty() { run } else { self.before.iter().cloned().chain(run).collect() }
    }
}

/// A comment's meaning; an error where it gives no reason, and `None` where it is another comment.
fn note(text: &str) -> Option<Result<Note, String>> {
    let (what, rest) = WORDS.iter().find_map(|(word, what)| Some((*what, text.strip_prefix(word)?)))?;
    Some(note_of(what, rest, text))
}

fn note_of(what: What, rest: &str, text: &str) -> Result<Note, String> {
    let (prefix, why) = match rest.trim_start().strip_prefix('`') {
        Some(rest) => rest.split_once("`:").map(|(prefix, why)| (Some(prefix.to_owned()), why)),
        None => rest.strip_prefix(':').map(|why| (None, why)),
    }
    .ok_or_else(|| format!("`{text}` has no colon"))?;
    if why.trim().is_empty() { Err(format!("`{text}` gives no reason")) } else { Ok(Note { what, prefix }) }
}

/// The command blocks of a page.
fn blocks(page: &str) -> Result<Vec<Block>, String> {
    let (mut blocks, mut next, mut is_left_out) = (Vec::new(), Block::default(), false);
    let mut lines = page.lines().enumerate().peekable();
    let (mut is_fenced, mut unknown) = (false, false);
    while let Some((at, line)) = lines.next() {
        let wrong = |what: &str| format!("line {}: {what}", at + 1);
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        } else if let Some(comment) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) {
            if let Some(command) = comment.strip_prefix("before: ") {
                next.before.push(command.to_owned());
            } else if let Some(why) = comment.strip_prefix("no block of this page is run: ") {
                is_left_out |= !why.trim().is_empty();
            } else {
                let note = note(comment).transpose().map_err(|what| wrong(&what))?;
                unknown |= note.is_none();
                next.notes.extend(note);
            }
        } else if !is_fenced && line.starts_with("    ") {
            let mut all = vec![&line[4..]];
            while let Some((_, more)) = lines.next_if(|(_, more)| more.starts_with("    ") || more.is_empty())
            {
                all.push(more.get(4..).unwrap_or_default());
            }
            let block = Block { line: at + 1, commands: commands_of(&all), ..std::mem::take(&mut next) };
            let is_command = !block.commands.is_empty();
            if is_command && std::mem::take(&mut unknown) {
                return Err(wrong("the comment above says nothing that is known here"));
            } else if !is_command && !block.notes.is_empty() {
                return Err(wrong("a comment stands above a block without commands"));
            } else if is_command && !is_left_out {
                blocks.push(block);
            }
        } else if !line.is_empty() {
            unknown = false;
        }
    }
    Ok(blocks)
}

/// The commands of a block; none where it is none of commands. Lines that a backslash joins are one; where some lines have a prompt the
/// others are what was printed.
fn commands_of(lines: &[&str]) -> Vec<String> {
    let has_prompt = lines.iter().any(|line| line.starts_with("$ "));
    let stripped =
        lines.iter().filter_map(|line| if has_prompt { line.strip_prefix("$ ") } else { Some(*line) });
    let mut commands: Vec<String> = Vec::new();
    for line in stripped.filter(|line| !line.trim().is_empty()) {
        match commands.last_mut().filter(|last| last.ends_with('\\')) {
            Some(last) => {
                last.pop();
                *last += line;
            }
            None => commands.push(line.trim().to_owned()),
        }
    }
    let is_command = |line: &String| {
        // Variables may be set for a command.
        let words = line.split_whitespace().find(|word| !word.contains('=') || word.starts_with('-'));
        words.is_some_and(|word| PROGRAMS.contains(&word))
    };
    if commands.first().is_some_and(is_command) { commands } else { Vec::new() }
}

/// What each page's script begins with. What a reader builds is built already.
const PRELUDE: &str = r#"
set -eu -o pipefail
shopt -s expand_aliases
weft() { if [ "$BASH_SUBSHELL" -gt 0 ]; then exec "$WEFT" "$@"; else "$WEFT" "$@"; fi; }
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
interrupted() { timeout --signal INT "$SECONDS_MAX" "$WEFT" "${@:2}" || [ $? = 124 ] || [ $? = 130 ]; }
cargo() {
    case "$*" in
        "run --release -- "*) shift 3; weft "$@" ;;
        "build --release"*) ;;
        *) echo "cargo $*: not here" >&2; return 1 ;;
    esac
}
alias() { :; }
"#;

/// Runs the blocks of a page.
fn run(page: &Path, is_long: bool) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let name = page.display().to_string();
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    let blocks = blocks(&text).unwrap_or_else(|wrong| panic!("{name}, {wrong}"));
    let folder = tempfile::tempdir().unwrap();
    for linked in ["topologies", "experiments", "docs", "clients", "contrib"] {
        std::os::unix::fs::symlink(root.canonicalize().unwrap().join(linked), folder.path().join(linked))
            .unwrap();
    }
    let mut script = String::from(PRELUDE);
    for block in &blocks {
        for command in block.script(is_long) {
            let said = format!("{name}:{}: {command}", block.line).replace('\'', "'\\''");
            script += &format!("echo '{said}' >&2\n{command}\n");
        }
    }
    let began = Instant::now();
    let mut shell = Command::new("bash");
    shell.env("WEFT", weft_program()).env("WEFT_HOME", folder.path().join("w")).env("NO_COLOR", "1");
    shell.env("SECONDS_MAX", INTERRUPTED_AFTER.to_string()).current_dir(folder.path());
    shell.args(["-c", &script]).stdin(Stdio::null());
    let outcome = shell.status().unwrap();
    let down = Command::new(weft_program()).arg("down").env("WEFT_HOME", folder.path().join("w")).output();
    drop(down);
    eprintln!("{name}: {:.1} s", began.elapsed().as_secs_f64());
    assert!(outcome.success(), "{name}: the last line above has failed: {outcome}");
}

#[test]
fn the_commands_of_readme_run() {
    run(Path::new("README.md"), false);
}

/// Long tier.
#[test]
fn all_commands_of_readme_and_docs_run() {
    let mut pages: Vec<PathBuf> = pages();
    pages.sort();
    // `WEFT_PAGES=faults,hub` runs these alone.
    let wanted = std::env::var("WEFT_PAGES").ok();
    pages.retain(|page| {
        let stem = page.file_stem().and_then(|stem| stem.to_str());
        wanted.as_ref().is_none_or(|names| names.split(',').any(|name| Some(name) == stem))
    });
    assert!(!pages.is_empty(), "WEFT_PAGES names no page");
    for page in pages {
        run(&page, true);
    }
}

/// README and all pages of docs.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let entries = std::fs::read_dir(root.join("docs")).unwrap();
    let names = entries.map(|entry| PathBuf::from("docs").join(entry.unwrap().file_name()));
    let pages = names.filter(|name| name.extension().is_some_and(|extension| extension == "md"));
    pages.chain([PathBuf::from("README.md")]).collect()
}

/// Comments that nothing understands would leave blocks out unseen.
#[test]
fn every_page_can_be_read() {
    let mut commands = 0;
    for page in pages() {
        let text =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&page)).unwrap();
        let blocks = blocks(&text).unwrap_or_else(|wrong| panic!("{}, {wrong}", page.display()));
        commands += blocks.iter().map(|block| block.commands.len()).sum::<usize>();
        for block in blocks {
            for note in &block.notes {
                let fits =
                    |command: &String| note.prefix.as_ref().is_none_or(|prefix| command.starts_with(prefix));
                let has_any = block.commands.iter().any(fits);
                assert!(has_any, "{}:{}: {note:?} is about no line", page.display(), block.line);
            }
        }
    }
    assert!(commands > 200, "{commands} commands were found");
}

#[test]
fn blocks_and_their_comments_are_read() {
    let page = "Text\n\n<!-- not run `weft up`: WHY -->\n<!-- Ctrl-C `weft top`: it goes on -->\n<!-- before: weft plan -->\n    weft up x    # all\n    weft top\n\n    \
                weft down \\\n      --all\n\nText\n\n    A --> B\n\n<!-- long tier: slow -->\n    $ weft ls\n    two\n    $ weft ps\n";
    let read = blocks(page).unwrap();
    assert_eq!(read.len(), 2, "{read:?}");
    assert_eq!((read[0].line, read[1].line), (6, 17));
    assert_eq!(read[0].script(false), ["weft plan", "interrupted weft top", "weft down   --all"]);
    assert_eq!((read[1].script(false).len(), read[1].script(true).len()), (0, 2));
    for wrong in ["not run", "not run:", "not run: ", "not run `weft`: ", "skipped: it is slow"] {
        assert!(!matches!(note(wrong), Some(Ok(_))), "{wrong}");
    }
    assert!(blocks("<!-- nor run: typo -->\n    weft up x\n").is_err());
    assert_eq!(blocks("<!-- made by hand -->\n\ntext\n\n    weft up x\n").unwrap().len(), 1);
}
