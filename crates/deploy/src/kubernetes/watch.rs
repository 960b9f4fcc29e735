//! Objects that watch a laboratory in Kubernetes: Prometheus with weft's rules and consoles and Grafana with its dashboards in the
//! laboratory's namespace, or rules and dashboards for the operators of both.

use serde_json::{Value, json};
use weft_bundle::folder::bundle::{AUTHORITY, Bundle, HTTP_TOKEN, SCRAPE};
use weft_bundle::input::text;
use weft_bundle::record::LabRecord;
use weft_link::PAGES;

use crate::kubernetes::{Cluster, JOB, METRICS, SECRET_MODE, labels, object, opaque, pod_context};
use crate::services::{BUNDLE, TEMPORARY};
use crate::watch::{
    BOARDS, GRAFANA, GRAFANA_DATA, GRAFANA_PORT, GRAFANA_SETTINGS, PAGES as CONSOLES, PROMETHEUS,
    PROMETHEUS_PORT, RULES, SERIES, SOURCES, WatchFile, prometheus_arguments,
};
use crate::yaml;

/// The component that all of these objects are labelled with, but for the pods.
const COMPONENT: &str = "metrics";
/// The Secret with what a scraper believes and shows. The operator reads it, or the pod of Prometheus.
const SCRAPER: &str = "scraper";
const TOKEN: &str = "token";
/// ConfigMaps.
const RULE_FILES: &str = "rules";
const CONSOLE_FILES: &str = "consoles";
const SOURCE_FILES: &str = "grafana-sources";
/// Grafana's sidecar in the usual charts takes ConfigMaps of this label for dashboards.
const DASHBOARD_LABEL: &str = "grafana_dashboard";
/// What Prometheus keeps: its bound, and room for the files that it is about to drop.
const SERIES_LIMIT: &str = "2Gi";
/// What Grafana keeps: a small database, and no logs.
const GRAFANA_LIMIT: &str = "256Mi";

/// What the first of these objects is for.
pub(super) fn about(cluster: &Cluster<'_>) -> &'static str {
    match cluster.prometheus {
        Some(_) => "Prometheus, with rules, consoles and dashboards.",
        None => "For the Prometheus operator, and dashboards for Grafana's sidecar.",
    }
}

/// All objects, as documents.
pub(super) fn documents(
    record: &LabRecord,
    bundle: &Bundle,
    cluster: &Cluster<'_>,
) -> anyhow::Result<Vec<String>> {
    let mut objects = vec![scrape_secret(bundle, cluster)?];
    objects.extend(BOARDS.iter().map(|board| dashboard(board, cluster)));
    if cluster.prometheus.is_none() {
        objects.push(monitor(record, cluster));
    }
    if let Some(image) = cluster.prometheus {
        objects.push(config_map(RULE_FILES, &RULES, Some(scrape_file(bundle)?), cluster));
        objects.push(config_map(CONSOLE_FILES, &CONSOLES, None, cluster));
        objects.push(service(PROMETHEUS, PROMETHEUS_PORT, cluster));
        objects.push(prometheus(image, record, cluster));
    }
    if let Some(image) = cluster.grafana {
        objects.push(sources(cluster));
        objects.push(service(GRAFANA, GRAFANA_PORT, cluster));
        objects.push(grafana(image, cluster));
    }
    let mut documents: Vec<String> = objects.iter().map(yaml::document).collect();
    if cluster.prometheus.is_none() {
        documents.extend(RULES.iter().map(|file| operators_rules(file, cluster)));
    }
    Ok(documents)
}

fn scrape_secret(bundle: &Bundle, cluster: &Cluster<'_>) -> anyhow::Result<Value> {
    let data = json!({ AUTHORITY: text(&bundle.authority())?, TOKEN: text(&bundle.http_token())? });
    Ok(opaque(&labels::metadata(SCRAPER, COMPONENT, cluster), &data))
}

fn scrape_file(bundle: &Bundle) -> anyhow::Result<String> {
    text(&bundle.path().join(SCRAPE))
}

/// Jobs and labels are those of the scrape file of `weft metrics`.
fn monitor(record: &LabRecord, cluster: &Cluster<'_>) -> Value {
    let spec = json!({
        "jobLabel": JOB,
        "selector": {
            "matchLabels": labels::own(cluster),
            "matchExpressions": [{ "key": JOB, "operator": "Exists" }],
        },
        "endpoints": [{
            "port": METRICS,
            "path": "/metrics",
            "scheme": "https",
            "tlsConfig": {
                "ca": { "secret": { "name": SCRAPER, "key": AUTHORITY } },
                "serverName": PAGES,
            },
            "authorization": { "credentials": { "name": SCRAPER, "key": TOKEN } },
            "interval": "2s",
            "scrapeTimeout": "2s",
            "relabelings": [
                { "targetLabel": "lab", "replacement": record.lab },
                { "targetLabel": "process", "sourceLabels": ["__meta_kubernetes_service_name"] },
            ],
        }],
    });
    object("monitoring.coreos.com/v1", "ServiceMonitor", &labels::metadata("weft", COMPONENT, cluster), &spec)
}

/// A file of rules as the Prometheus operator takes it: its text is the specification.
fn operators_rules(file: &WatchFile, cluster: &Cluster<'_>) -> String {
    let name = file.base().trim_end_matches(".yml").replace('.', "-");
    let head = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": labels::metadata(&name, COMPONENT, cluster),
    });
    let lines = file.text.lines().filter(|line| !line.is_empty());
    yaml::document(&head) + "spec:\n" + &lines.map(|line| format!("  {line}\n")).collect::<String>()
}

/// A ConfigMap of files by their names without folders, and of the scrape file.
fn config_map(name: &str, files: &[WatchFile], scrape: Option<String>, cluster: &Cluster<'_>) -> Value {
    let mut data = serde_json::Map::new();
    data.extend(files.iter().map(|file| (file.base().to_owned(), file.text.into())));
    data.extend(scrape.map(|text| (SCRAPE.to_owned(), text.into())));
    of_data(&labels::metadata(name, COMPONENT, cluster), &data)
}

fn of_data(metadata: &Value, data: &serde_json::Map<String, Value>) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data })
}

/// A dashboard. Each has a ConfigMap of its own: `kubectl apply` takes no more than 256 KiB of one object.
fn dashboard(board: &WatchFile, cluster: &Cluster<'_>) -> Value {
    let mut map = config_map(board.name, std::slice::from_ref(board), None, cluster);
    map["metadata"]["labels"][DASHBOARD_LABEL] = "1".into();
    map
}

/// Both files are called alike, so their keys are the names of their secrets in a compose file.
fn sources(cluster: &Cluster<'_>) -> Value {
    let data: serde_json::Map<String, Value> =
        SOURCES.iter().map(|file| (file.name.to_owned(), file.text.into())).collect();
    of_data(&labels::metadata(SOURCE_FILES, COMPONENT, cluster), &data)
}

/// Files of a ConfigMap at their places in the bundle.
fn source<'a>(map: &str, files: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let items: Vec<Value> = files.map(|(key, path)| json!({ "key": key, "path": path })).collect();
    json!({ "configMap": { "name": map, "items": items } })
}

fn by_base(file: &WatchFile) -> (&str, &str) {
    (file.base(), file.path)
}

/// `kubectl port-forward` leads here; no node of the cluster does.
fn service(name: &str, port: u16, cluster: &Cluster<'_>) -> Value {
    let spec = json!({
        "selector": labels::of_process(name, cluster),
        "ports": [{ "name": "http", "protocol": "TCP", "port": port, "targetPort": port }],
    });
    object("v1", "Service", &labels::metadata(name, COMPONENT, cluster), &spec)
}

fn prometheus(image: &str, record: &LabRecord, cluster: &Cluster<'_>) -> Value {
    let devices: usize = record.agents.iter().map(|agent| agent.devices.len()).sum();
    let scraper = json!({ "secret": { "name": SCRAPER, "items": [
        { "key": AUTHORITY, "path": AUTHORITY },
        { "key": TOKEN, "path": HTTP_TOKEN },
    ] } });
    let rules = RULES.iter().map(by_base).chain([(SCRAPE, SCRAPE)]);
    let files = [scraper, source(RULE_FILES, rules), source(CONSOLE_FILES, CONSOLES.iter().map(by_base))];
    let container = json!({
        "command": [PROMETHEUS],
        "args": prometheus_arguments(),
        "resources": {
            "requests": { "cpu": "100m", "memory": format!("{}Mi", 128 + devices / 2) },
            "limits": { "memory": format!("{}Mi", 512 + 2 * devices) },
        },
    });
    let folders = [Folder { name: "series", path: SERIES, limit: SERIES_LIMIT }];
    let pod = Pod { name: PROMETHEUS, image, port: PROMETHEUS_PORT, ready: "/-/ready", folders: &folders };
    pod.deployment(container, &files, cluster)
}

fn grafana(image: &str, cluster: &Cluster<'_>) -> Value {
    let sources = source(SOURCE_FILES, SOURCES.iter().map(|file| (file.name, file.path)));
    let boards = BOARDS.iter().map(|board| source(board.name, std::iter::once(by_base(board))));
    let files: Vec<Value> = std::iter::once(sources).chain(boards).collect();
    let settings: Vec<Value> =
        GRAFANA_SETTINGS.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let container = json!({
        "env": settings,
        "resources": {
            "requests": { "cpu": "50m", "memory": "128Mi" },
            "limits": { "memory": "512Mi" },
        },
    });
    let folders = [
        Folder { name: "data", path: GRAFANA_DATA, limit: GRAFANA_LIMIT },
        Folder { name: "tmp", path: TEMPORARY, limit: GRAFANA_LIMIT },
    ];
    let pod = Pod { name: GRAFANA, image, port: GRAFANA_PORT, ready: "/api/health", folders: &folders };
    pod.deployment(container, &files, cluster)
}

/// A folder that a pod can write to. It goes with the pod.
struct Folder {
    name: &'static str,
    path: &'static str,
    limit: &'static str,
}

/// A pod that watches.
struct Pod<'a> {
    name: &'static str,
    image: &'a str,
    port: u16,
    /// The page that answers when it is ready.
    ready: &'static str,
    folders: &'a [Folder],
}

impl Pod<'_> {
    /// Its Deployment. Two of them would not share what is in their folders.
    fn deployment(&self, mut container: Value, files: &[Value], cluster: &Cluster<'_>) -> Value {
        let mounts =
            self.folders.iter().map(|folder| json!({ "name": folder.name, "mountPath": folder.path }));
        let bundle = json!({ "name": "bundle", "mountPath": BUNDLE, "readOnly": true });
        let more = json!({
            "name": self.name,
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "ports": [{ "name": "http", "protocol": "TCP", "containerPort": self.port }],
            "readinessProbe": { "httpGet": { "path": self.ready, "port": "http" }, "periodSeconds": 5 },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
            "volumeMounts": std::iter::once(bundle).chain(mounts).collect::<Vec<_>>(),
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            container[field] = value.clone();
        }
        let mut volumes =
            vec![json!({ "name": "bundle", "projected": { "defaultMode": SECRET_MODE, "sources": files } })];
        volumes.extend(
            self.folders
                .iter()
                .map(|folder| json!({ "name": folder.name, "emptyDir": { "sizeLimit": folder.limit } })),
        );
        let selected = labels::of_process(self.name, cluster);
        let mut labels = labels::all(self.name, cluster);
        for (label, value) in selected.as_object().into_iter().flatten() {
            labels[label] = value.clone();
        }
        let spec = json!({
            "replicas": 1,
            "strategy": { "type": "Recreate" },
            "selector": { "matchLabels": selected },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "automountServiceAccountToken": false,
                    "enableServiceLinks": false,
                    "terminationGracePeriodSeconds": 5,
                    "securityContext": pod_context(cluster),
                    "containers": [container],
                    "volumes": volumes,
                },
            },
        });
        object("apps/v1", "Deployment", &labels::metadata(self.name, COMPONENT, cluster), &spec)
    }
}
