//! The example of a laboratory in somebody's test: it leaves nothing behind, however it ends.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// The program, which cargo builds with the tests.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().with_file_name("examples").join("first_lab");
    assert!(program.exists(), "{} is not built: cargo build --examples", program.display());
    program
}

/// Starts the example in a folder of its own.
fn start(home: &TempDir, how: &str) -> Child {
    Command::new(program())
        .arg(how)
        .env("WEFT_HOME", home.path())
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn home() -> TempDir {
    tempfile::Builder::new().prefix("fl").tempdir_in("/tmp").unwrap()
}

/// Processes with a folder in their arguments or their environment.
fn processes_of(home: &Path) -> Vec<String> {
    let word = home.as_os_str().as_encoded_bytes();
    let tells = |path: &Path, file: &str| {
        let text = fs::read(path.join(file)).unwrap_or_default();
        text.windows(word.len()).any(|part| part == word).then(|| String::from_utf8_lossy(&text).into_owned())
    };
    let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    all.filter_map(|path| tells(&path, "cmdline").or_else(|| tells(&path, "environ"))).collect()
}

fn is_clean(home: &TempDir) -> bool {
    fs::read_dir(home.path()).unwrap().next().is_none() && processes_of(home.path()).is_empty()
}

fn output(child: Child) -> (Output, String) {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

#[test]
fn a_laboratory_of_a_test_leaves_nothing_behind() {
    let home = home();
    let (output, said) = output(start(&home, "ends"));
    assert!(output.status.success(), "{said}");
    assert!(is_clean(&home), "{said}");
}

#[test]
fn a_laboratory_whose_test_panics_leaves_nothing_behind() {
    let home = home();
    let (output, said) = output(start(&home, "panics"));
    assert!(!output.status.success() && said.contains("as it was told"), "{said}");
    assert!(is_clean(&home), "{said}");
}

#[test]
fn a_laboratory_whose_test_is_killed_leaves_nothing_behind() {
    let home = home();
    let mut child = start(&home, "waits");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    assert!(processes_of(home.path()).len() > 8, "eight agents, and more");
    child.kill().unwrap();
    // The guard ends last, and holds standard error until then.
    let (output, said) = output(child);
    assert_eq!(output.status.signal(), Some(9), "{said}");
    assert!(is_clean(&home), "{said}");
}
