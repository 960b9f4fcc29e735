//! The live page in a real browser, by its own tests: on laboratories that are made up, and on those that run.

use std::path::{Path, PathBuf};
use std::process::Command;

use weft_judges::{judge, output_of, weft_program};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// pytest in a browser; what is seen lies in `target/page`.
pub(crate) fn pytest(file: &str, marked: &str) -> Command {
    let folder = root().join("tests/page");
    let mut pytest = judge("pytest");
    pytest.args(["-q", "-s", "--color=no", "--durations=5", "-p", "no:cacheprovider", "-m", marked]);
    // The checkout stays as it is.
    pytest.arg(folder.join(file)).env("PYTHONDONTWRITEBYTECODE", "1").current_dir(folder);
    pytest.env("WEFT_PROGRAM", weft_program()).env("NO_COLOR", "1");
    pytest
}

#[test]
fn the_page_passes_its_tests_in_a_browser() {
    println!("{}", output_of(&mut pytest("test_page.py", "not long")));
}

/// Devices, a kill, a flow, faults, a hub that goes and comes back, the time bar; and the hot spot of dFtree's first experiment.
#[test]
fn the_page_shows_laboratories_that_run() {
    println!("{}", output_of(&mut pytest("test_live.py", "not long")));
}

/// The same on 702 devices, and how long frames take with 13 284.
#[test]
fn the_page_shows_large_laboratories() {
    println!("{}", output_of(&mut pytest("test_page.py", "long")));
    println!("{}", output_of(&mut pytest("test_live.py", "long")));
}
