//! Paths of the libraries that programs load in place of InfiniBand's own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use weft_bundle::failure::Failure;

/// weft's stand-in for libibumad.
const UMAD: &str = "libweft_umad.so";

/// ibsim's library, in folders where distributions put it.
const UMAD2SIM: &str = "umad2sim/libumad2sim.so";

/// weft's stand-in for libibumad, as a program at this path finds it.
pub fn beside(program: &Path) -> anyhow::Result<PathBuf> {
    umad(std::env::var_os("WEFT_UMAD_PRELOAD").as_deref(), program)
}

/// weft's stand-in for libibumad: what `WEFT_UMAD_PRELOAD` names, else the first of
///
/// 1. beside the program, which is also where cargo builds it;
/// 2. `../lib/weft` from there, where an installation has it;
/// 3. cargo's folder of the other profile.
pub fn umad(named: Option<&OsStr>, program: &Path) -> anyhow::Result<PathBuf> {
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        let path = PathBuf::from(named);
        // The loader would take a path without a slash for a name, and say nothing when there is no such file.
        return std::path::absolute(&path).ok().filter(|path| path.is_file()).ok_or_else(|| {
            Failure::bad_input(format!("WEFT_UMAD_PRELOAD names {}, which is no file", path.display())).into()
        });
    }
    let folder = program.parent().unwrap_or(Path::new("/"));
    let above = folder.parent().unwrap_or(folder);
    let mut places = vec![folder.to_owned()];
    places.extend(["lib/weft", "release", "dist", "debug"].map(|place| above.join(place)));
    let mut paths = places.iter().map(|place| place.join(UMAD));
    paths.find(|path| path.is_file()).ok_or_else(|| {
        let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        Failure::new(format!("{UMAD} is in none of {}", places.join(", "))).hint(
            "build it with `cargo build --release -p weft-umad-preload`, or name it in WEFT_UMAD_PRELOAD",
        )
    })
}

/// ibsim's stock library.
pub fn umad2sim() -> anyhow::Result<PathBuf> {
    let mut folders =
        vec![PathBuf::from("/usr/local/lib"), PathBuf::from("/usr/lib64"), PathBuf::from("/usr/lib")];
    // Debian's are one level further down: /usr/lib/x86_64-linux-gnu.
    let below = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut below: Vec<PathBuf> = below.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    below.sort();
    folders.extend(below);
    let mut paths = folders.iter().map(|folder| folder.join(UMAD2SIM));
    paths.find(|path| path.is_file()).ok_or_else(|| {
        Failure::new("ibsim's libumad2sim.so is not installed")
            .hint("Debian has it in the package ibsim-utils")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_looked_for_in_the_stated_order() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("bin").join("weft");
        let error = umad(None, &program).unwrap_err();
        assert!(
            error.to_string().contains(&format!("{}/bin, {0}/lib/weft", folder.path().display())),
            "{error}"
        );
        // From the last place to the first.
        for place in ["debug", "dist", "release", "lib/weft", "bin"] {
            let library = folder.path().join(place).join(UMAD);
            std::fs::create_dir_all(library.parent().unwrap()).unwrap();
            std::fs::write(&library, "").unwrap();
            assert_eq!(umad(None, &program).unwrap(), library);
            assert_eq!(umad(Some(OsStr::new("")), &program).unwrap(), library);
        }
        let named = folder.path().join("mine.so");
        assert!(umad(Some(named.as_os_str()), &program).unwrap_err().to_string().contains("mine.so"));
        std::fs::write(&named, "").unwrap();
        assert_eq!(umad(Some(named.as_os_str()), &program).unwrap(), named);
    }
}
