//! Builds of the pure crates for a machine without an operating system, `wasm32-unknown-unknown`.
//!
//! The toolchain's own target is used, if there is one. Otherwise Debian's compiler is unpacked
//! into `target/wasm-toolchain` with std's sources for cargo: no root or rustup, nothing installed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

const TARGET: &str = "wasm32-unknown-unknown";

/// What is unpacked, with the libraries that it depends on. Debian keeps it new enough for Firefox.
const PACKAGES: &[&str] = &["rustc-web", "libstd-rust-web-dev", "rust-web-src"];

/// What a machine with a C compiler has.
const INSTALLED: &[&str] =
    &["gcc", "binutils", "libc-dev", "libc6", "libc6-dev", "libgcc-s1", "libstdc++6", "libgcc1"];

/// Checks all pure crates for the target.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).args(["check", "--locked", "--target", TARGET, "--target-dir", "target/wasm"]);
    // Nothing of it runs but macros: unoptimised, they and std take two thirds of the time (57 s, 87 s).
    command.args(["--config", "profile.dev.package.\"*\".opt-level=0"]);
    for room in crate::layers::pure_rooms() {
        command.args(["-p", &format!("weft-{room}")]);
    }
    if !has_target()? {
        let place = root.join("target/wasm-toolchain");
        unpack(&place)?;
        let libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|lib| place.join(lib));
        command
            .arg("-Zbuild-std=std,panic_abort")
            .env("RUSTC", place.join("usr/bin/rustc"))
            .env("RUSTC_BOOTSTRAP", "1")
            .env("LD_LIBRARY_PATH", std::env::join_paths(libraries)?);
    }
    eprintln!("+ cargo check --target {TARGET} of the pure crates");
    let status = command.status().context("cannot start cargo")?;
    if status.success() { Ok(()) } else { bail!("the pure crates do not build for {TARGET}") }
}

fn has_target() -> Result<bool> {
    let sysroot = said(Command::new("rustc").args(["--print", "sysroot"]))?;
    Ok(Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).exists())
}

/// Unpacks the compiler, unless that was done before.
fn unpack(place: &Path) -> Result<()> {
    let done = place.join("complete");
    if done.exists() {
        return Ok(());
    }
    let packages = place.join("packages");
    fs::create_dir_all(&packages).with_context(|| format!("cannot make {}", packages.display()))?;
    let mut todo: Vec<String> = PACKAGES.iter().map(|&name| name.to_owned()).collect();
    let mut seen: BTreeSet<String> = todo.iter().cloned().collect();
    while let Some(name) = todo.pop() {
        let file = download(&packages, &name)?;
        said(Command::new("dpkg").arg("-x").args([&file, place]))?;
        let depends = said(Command::new("dpkg").arg("-f").arg(&file).arg("Depends"))?;
        for needed in depends.split(',').filter_map(first_word) {
            if !INSTALLED.contains(&needed) && seen.insert(needed.to_owned()) {
                todo.push(needed.to_owned());
            }
        }
        fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
    }
    fs::write(&done, "").with_context(|| format!("cannot write {}", done.display()))
}

/// The name of a dependency; of several that would do, the first.
fn first_word(dependency: &str) -> Option<&str> {
    dependency.split(['|', '(', ':']).next()?.split_whitespace().next()
}

fn download(folder: &Path, name: &str) -> Result<std::path::PathBuf> {
    let hint = "hint: this needs Debian 12 or later and `apt-get update`; or install rustup's target wasm32-unknown-unknown";
    said(Command::new("apt-get").args(["-qq", "download", name]).current_dir(folder))
        .with_context(|| format!("cannot download {name}\n{hint}"))?;
    let found = fs::read_dir(folder)?.filter_map(Result::ok).map(|entry| entry.path());
    let is_it = |path: &std::path::PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        file.starts_with(&format!("{name}_")) && file.ends_with(".deb")
    };
    found
        .into_iter()
        .find(is_it)
        .with_context(|| format!("apt-get has not left {name} in {}", folder.display()))
}

/// What a command prints.
fn said(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_dependency_has_one_name() {
        let of =
            |text: &str| text.split(',').filter_map(super::first_word).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            of("libc6 (>= 2.36), libz3-4 (>= 4.8), a | b, python3:any"),
            ["libc6", "libz3-4", "a", "python3"]
        );
        assert_eq!(of("\n"), [""; 0]);
    }
}
