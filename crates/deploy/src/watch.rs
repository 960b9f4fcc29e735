//! Rules, consoles and dashboards of `contrib/` in a bundle, for the Prometheus and the Grafana that watch its laboratory.

use anyhow::Context;
use weft_bundle::folder::bundle::{Bundle, SCRAPE};
use weft_bundle::folder::{private_folder, write as write_file};

use crate::services::BUNDLE;

/// Their folder in a bundle.
pub const WATCH: &str = "watch";
/// Where the consoles and their library are.
const CONSOLES: &str = "watch/consoles";
const LIBRARY: &str = "watch/console_libraries";
/// Where Grafana finds its dashboards, and what says so.
const DASHBOARDS: &str = "watch/dashboards";
const PROVISIONING: &str = "watch/provisioning";
/// All folders, those around others first.
const FOLDERS: [&str; 7] = [
    WATCH,
    CONSOLES,
    LIBRARY,
    DASHBOARDS,
    PROVISIONING,
    "watch/provisioning/datasources",
    "watch/provisioning/dashboards",
];

/// The names of the services, by which Grafana finds Prometheus, too.
pub(crate) const PROMETHEUS: &str = "prometheus";
pub(crate) const GRAFANA: &str = "grafana";
/// Where they answer.
pub(crate) const PROMETHEUS_PORT: u16 = 9090;
pub(crate) const GRAFANA_PORT: u16 = 3000;
/// What each can write to: what it has scraped, and what it knows of its own.
pub(crate) const SERIES: &str = "/prometheus";
pub(crate) const GRAFANA_DATA: &str = "/grafana";

/// Grafana shows dashboards to whoever reaches it, has no accounts, and asks no server but Prometheus.
pub(crate) const GRAFANA_SETTINGS: [(&str, &str); 14] = [
    ("GF_PATHS_DATA", GRAFANA_DATA),
    ("GF_PATHS_LOGS", "/grafana/logs"),
    ("GF_PATHS_PLUGINS", "/grafana/plugins"),
    ("GF_PATHS_PROVISIONING", "/bundle/watch/provisioning"),
    ("GF_LOG_MODE", "console"),
    ("GF_AUTH_ANONYMOUS_ENABLED", "true"),
    ("GF_AUTH_ANONYMOUS_ORG_ROLE", "Viewer"),
    ("GF_AUTH_BASIC_ENABLED", "false"),
    ("GF_AUTH_DISABLE_LOGIN_FORM", "true"),
    ("GF_ANALYTICS_REPORTING_ENABLED", "false"),
    ("GF_ANALYTICS_CHECK_FOR_UPDATES", "false"),
    ("GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES", "false"),
    ("GF_PLUGINS_PREINSTALL_DISABLED", "true"),
    ("GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH", "/bundle/watch/dashboards/weft-overview.json"),
];

/// A file of `contrib/`, with the name of its secret in a compose file.
pub(crate) struct WatchFile {
    pub(crate) name: &'static str,
    /// Its path in a bundle.
    pub(crate) path: &'static str,
    pub(crate) text: &'static str,
}

impl WatchFile {
    /// Its name without folders.
    pub(crate) fn base(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }
}

/// A file by its name below a folder of `contrib/`, and its place in the bundle.
macro_rules! watch_file {
    ($name:literal, $path:literal) => {
        watch_file!($name, concat!("prometheus/", $path), concat!("watch/", $path))
    };
    ($name:literal, $from:expr, $path:expr) => {
        WatchFile { name: $name, path: $path, text: include_str!(concat!("../../../contrib/", $from)) }
    };
}

/// A dashboard of Grafana.
macro_rules! dashboard {
    ($name:literal, $file:literal) => {
        watch_file!($name, concat!("grafana/", $file), concat!("watch/dashboards/", $file))
    };
}

/// Rules.
pub(crate) static RULES: [WatchFile; 2] =
    [watch_file!("watch-recording", "weft.recording.yml"), watch_file!("watch-alerts", "weft.alerts.yml")];

/// Consoles and their library.
pub(crate) static PAGES: [WatchFile; 9] = [
    watch_file!("watch-library", "console_libraries/weft.lib"),
    watch_file!("watch-index", "consoles/index.html"),
    watch_file!("watch-overview", "consoles/weft-overview.html"),
    watch_file!("watch-ports", "consoles/weft-ports.html"),
    watch_file!("watch-congestion", "consoles/weft-congestion.html"),
    watch_file!("watch-flows", "consoles/weft-flows.html"),
    watch_file!("watch-subnet-manager", "consoles/weft-subnet-manager.html"),
    watch_file!("watch-migrations", "consoles/weft-migrations.html"),
    watch_file!("watch-agents", "consoles/weft-agents.html"),
];

/// Dashboards of Grafana.
pub(crate) static BOARDS: [WatchFile; 7] = [
    dashboard!("dashboard-overview", "weft-overview.json"),
    dashboard!("dashboard-ports", "weft-ports.json"),
    dashboard!("dashboard-congestion", "weft-congestion.json"),
    dashboard!("dashboard-flows", "weft-flows.json"),
    dashboard!("dashboard-subnet-manager", "weft-subnet-manager.json"),
    dashboard!("dashboard-migrations", "weft-migrations.json"),
    dashboard!("dashboard-agents", "weft-agents.json"),
];

/// Where Grafana finds Prometheus, and its dashboards.
pub(crate) static SOURCES: [WatchFile; 2] = [
    watch_file!(
        "grafana-datasources",
        "grafana/provisioning/datasources/weft.yml",
        "watch/provisioning/datasources/weft.yml"
    ),
    watch_file!(
        "grafana-dashboards",
        "grafana/provisioning/dashboards/weft.yml",
        "watch/provisioning/dashboards/weft.yml"
    ),
];

/// What Prometheus reads beside its scrape file.
pub(crate) fn of_prometheus() -> impl Iterator<Item = &'static WatchFile> {
    RULES.iter().chain(&PAGES)
}

/// What Grafana reads.
pub(crate) fn of_grafana() -> impl Iterator<Item = &'static WatchFile> {
    SOURCES.iter().chain(&BOARDS)
}

/// The arguments of Prometheus in a container.
pub(crate) fn prometheus_arguments() -> Vec<String> {
    vec![
        format!("--config.file={BUNDLE}/{SCRAPE}"),
        format!("--storage.tsdb.path={SERIES}"),
        "--storage.tsdb.retention.size=1GB".to_owned(),
        format!("--web.listen-address=0.0.0.0:{PROMETHEUS_PORT}"),
        format!("--web.console.templates={BUNDLE}/{CONSOLES}"),
        format!("--web.console.libraries={BUNDLE}/{LIBRARY}"),
    ]
}

/// What a scrape file beside them says of the rules.
pub const RULE_FILES: &str = "rule_files: [watch/weft.recording.yml, watch/weft.alerts.yml]\n";

/// Whether a bundle has rules and consoles, which those of earlier versions have not.
pub fn is_in(bundle: &Bundle) -> bool {
    bundle.path().join(WATCH).is_dir()
}

/// Whether it has dashboards of Grafana, too.
pub fn has_dashboards(bundle: &Bundle) -> bool {
    bundle.path().join(DASHBOARDS).is_dir()
}

/// Writes them into a bundle.
///
/// # Errors
/// When the folder takes no files.
pub fn write(bundle: &Bundle) -> anyhow::Result<()> {
    for folder in FOLDERS {
        let path = bundle.path().join(folder);
        private_folder(&path).with_context(|| format!("cannot make {}", path.display()))?;
    }
    let mut files = of_prometheus().chain(of_grafana());
    files.try_for_each(|file| write_file(&bundle.path().join(file.path), file.text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_board_or_console_of_contrib_is_forgotten() {
        let contrib = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib");
        let inside = |folder: &str| {
            let entries = std::fs::read_dir(contrib.join(folder)).unwrap().map(|entry| entry.unwrap());
            let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
            files.map(|entry| entry.file_name().into_string().unwrap()).collect::<BTreeSet<_>>()
        };
        let named = |files: &[WatchFile]| -> BTreeSet<String> {
            files.iter().map(|file| file.base().to_owned()).collect()
        };
        assert_eq!(named(&BOARDS), inside("grafana"));
        let consoles =
            inside("prometheus/consoles").into_iter().chain(inside("prometheus/console_libraries"));
        assert_eq!(named(&PAGES), consoles.collect());
        let folders = FOLDERS.map(|folder| format!("{folder}/"));
        for file in of_prometheus().chain(of_grafana()) {
            assert!(folders.contains(&file.path.replace(file.base(), "")), "{}", file.path);
        }
    }
}
