//! Rules and consoles of `contrib/prometheus` in a bundle, for the Prometheus that watches its laboratory.

use anyhow::Context;
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::folder::{private_folder, write as write_file};

/// Their folder in a bundle.
pub const WATCH: &str = "watch";
/// Where the consoles and their library are.
pub(super) const CONSOLES: &str = "watch/consoles";
pub(super) const LIBRARY: &str = "watch/console_libraries";

/// A file of `contrib/prometheus`, with the name of its secret in a compose file.
pub(super) struct WatchFile {
    pub(super) name: &'static str,
    pub(super) path: &'static str,
    text: &'static str,
}

/// A file by its name below `contrib/prometheus`.
macro_rules! watch_file {
    ($name:literal, $path:literal) => {
        WatchFile {
            name: $name,
            path: concat!("watch/", $path),
            text: include_str!(concat!("../../../../contrib/prometheus/", $path)),
        }
    };
}

/// All of them.
pub(super) static FILES: [WatchFile; 10] = [
    watch_file!("watch-alerts", "weft.alerts.yml"),
    watch_file!("watch-recording", "weft.recording.yml"),
    watch_file!("watch-library", "console_libraries/weft.lib"),
    watch_file!("watch-index", "consoles/index.html"),
    watch_file!("watch-overview", "consoles/weft-overview.html"),
    watch_file!("watch-ports", "consoles/weft-ports.html"),
    watch_file!("watch-congestion", "consoles/weft-congestion.html"),
    watch_file!("watch-subnet-manager", "consoles/weft-subnet-manager.html"),
    watch_file!("watch-migrations", "consoles/weft-migrations.html"),
    watch_file!("watch-agents", "consoles/weft-agents.html"),
];

/// What a scrape file beside them says of the rules.
pub const RULE_FILES: &str = "rule_files: [watch/weft.recording.yml, watch/weft.alerts.yml]\n";

/// Writes them into a bundle.
///
/// # Errors
/// When the folder takes no files.
pub fn write(bundle: &Bundle) -> anyhow::Result<()> {
    for folder in [WATCH, CONSOLES, LIBRARY] {
        let path = bundle.path().join(folder);
        private_folder(&path).with_context(|| format!("cannot make {}", path.display()))?;
    }
    FILES.iter().try_for_each(|file| write_file(&bundle.path().join(file.path), file.text.as_bytes()))
}
