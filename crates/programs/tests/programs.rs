//! The small programs are processes of a laboratory: each reads its part of a bundle as the verb of `weft` does.

use std::process::Command;

/// A bundle that is not there is refused with its place by each.
#[test]
fn each_program_wants_a_bundle() {
    for program in [
        env!("CARGO_BIN_EXE_weft-agent"),
        env!("CARGO_BIN_EXE_weft-sm"),
        env!("CARGO_BIN_EXE_weft-pm"),
        env!("CARGO_BIN_EXE_weft-vmm"),
    ] {
        let help = Command::new(program).arg("--help").output().expect("the program starts");
        assert!(help.status.success(), "{program}: {help:?}");
        assert!(String::from_utf8_lossy(&help.stdout).contains("--bundle"), "{program}: {help:?}");
        let output = Command::new(program)
            .args(["--bundle", "nowhere", "--as", "a0000", "--run", "nowhere"])
            .output()
            .expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("nowhere"), "{program}: {said}");
        assert_eq!(said.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{program}: {said}");
    }
}
