//! Rules, consoles and dashboards as containers mount them: a real Prometheus reads them there, and Grafana is held to its files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::boards::{contrib, files};
use crate::kubernetes::as_json;
use crate::prometheus::{Prometheus, get, json, wait_until};

/// A folder with files at their paths, as a container sees it at `/bundle`.
pub(crate) fn laid_out(files: impl Iterator<Item = (String, String)>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let file = folder.path().join(&path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        assert!(!file.exists(), "{path} is mounted twice");
        std::fs::write(file, text).unwrap();
    }
    folder
}

/// Prometheus starts with a container's arguments on its files, knows every alert of `contrib/`, and serves every console.
pub(crate) fn serves_rules_and_consoles(bundle: &Path, arguments: &[String]) {
    let prometheus = Prometheus::start_as_in_container(bundle, arguments);
    let rules = json(&get(prometheus.address(), "/api/v1/rules").unwrap());
    let groups = rules["data"]["groups"].as_array().unwrap();
    let of_groups = groups.iter().flat_map(|group| group["rules"].as_array().unwrap());
    let known: BTreeSet<&str> = of_groups.map(|rule| rule["name"].as_str().unwrap()).collect();
    let written = ["weft.alerts.yml", "weft.recording.yml"].map(|file| {
        let text = std::fs::read_to_string(contrib("prometheus").join(file)).unwrap();
        let names = text.lines().filter_map(|line| {
            let line = line.trim();
            line.strip_prefix("- alert: ").or_else(|| line.strip_prefix("- record: ")).map(str::to_owned)
        });
        names.collect::<Vec<_>>()
    });
    assert_eq!(known, written.iter().flatten().map(String::as_str).collect());
    for console in files("prometheus/consoles", "html") {
        let name = console.file_name().unwrap().to_str().unwrap();
        let page = get(prometheus.address(), &format!("/consoles/{name}")).expect(name);
        assert!(page.contains("<html lang=\"en\">"), "{name}: {page}");
    }
    // Alerts whose `for` is seconds are of no use where rules are evaluated once a minute.
    wait_until("the configuration is shown", || {
        let status = get(prometheus.address(), "/api/v1/status/config").unwrap();
        status.contains("evaluation_interval: 2s")
    });
}

/// What its settings name is there: where dashboards are, which are those of `contrib/`, and the Prometheus that it asks.
pub(crate) fn finds_its_dashboards(bundle: &Path, settings: &BTreeMap<String, String>, prometheus: &str) {
    let here = |path: &str| {
        let inside = path.strip_prefix("/bundle/").unwrap_or_else(|| panic!("{path} is not mounted"));
        bundle.join(inside)
    };
    let provisioning = here(&settings["GF_PATHS_PROVISIONING"]);
    let read = |folder: &str| -> Vec<Value> {
        let files = std::fs::read_dir(provisioning.join(folder)).unwrap();
        let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
        texts.flat_map(|text| as_json(&text)).collect()
    };
    let sources = read("datasources");
    let source = &sources[0]["datasources"][0];
    assert_eq!(source["type"], "prometheus");
    assert_eq!(source["isDefault"], true, "the dashboards' data source is the default one");
    assert_eq!(source["url"], format!("http://{prometheus}"));
    let providers = read("dashboards");
    let folder = here(providers[0]["providers"][0]["options"]["path"].as_str().unwrap());
    for board in files("grafana", "json") {
        let mounted = folder.join(board.file_name().unwrap());
        assert_eq!(std::fs::read(mounted).unwrap(), std::fs::read(&board).unwrap(), "{}", board.display());
    }
    assert!(here(&settings["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]).exists());
    // No one has to log in to look, and there is no account that anyone could guess.
    for (name, value) in [
        ("GF_AUTH_ANONYMOUS_ORG_ROLE", "Viewer"),
        ("GF_AUTH_BASIC_ENABLED", "false"),
        ("GF_AUTH_DISABLE_LOGIN_FORM", "true"),
    ] {
        assert_eq!(settings[name], value, "{name}");
    }
}
