//! Lists the page's files, which go into the program: those of `assets` and of `assets/app`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let var = |name: &str| std::env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let folder = var("CARGO_MANIFEST_DIR").join("assets");
    let mut paths = Vec::new();
    for place in ["", "app/"] {
        for entry in std::fs::read_dir(folder.join(place))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let is_shown = [".html", ".js", ".css", ".svg", ".png"].iter().any(|end| name.ends_with(end));
            paths.extend(is_shown.then(|| format!("{place}{name}")));
        }
    }
    paths.sort();
    let row = |path: &String| {
        let file = folder.join(Path::new(path));
        format!("Asset {{ path: {path:?}, bytes: include_bytes!({file:?}) }},\n")
    };
    let table = format!("&[\n{}]\n", paths.iter().map(row).collect::<String>());
    std::fs::write(var("OUT_DIR").join("assets.rs"), table)?;
    writeln!(std::io::stdout(), "cargo::rerun-if-changed=assets\ncargo::rerun-if-changed=assets/app")
}
