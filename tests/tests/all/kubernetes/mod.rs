//! Output of `weft k8s`, judged by Kubernetes' own schemas, and held against the bundle that it was made of.
//!
//! No API server judges it: none is in Debian or PyPI.

mod care;
mod pods;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use weft_judges::{judge, output_of, weft_program};

use care::{
    claims_are_of_the_class, drains_leave_managers_and_most_agents,
    labels_are_those_that_kubernetes_recommends, pods_are_looked_after,
};

/// What a Secret may hold.
const SECRET_BYTES_MAX: usize = 1 << 20;
/// A process that is not well by then will not be.
const PATIENCE: Duration = Duration::from_secs(30);
/// The custom resources, which Kubernetes' own schemas do not have.
const MONITOR: &str = "ServiceMonitor";
const OPERATORS_RULES: &str = "PrometheusRule";

/// A manager of each kind in each of two planes.
const PLANES: [&str; 7] = ["--sm-at", "node01 mlx5_0:1", "--sm-at", "node01 mlx5_0:2", "--pm", "--vfs", "1"];

/// Manifests and their bundle.
struct Manifests {
    folder: TempDir,
    text: String,
    objects: Vec<Value>,
}

impl Manifests {
    fn of(topology: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topologies").join(topology);
        let mut command = Command::new(weft_program());
        command.arg("k8s").arg(file).args(["--lab", "lab"]).args(options).current_dir(folder.path());
        let text = output_of(command.env("WEFT_HOME", folder.path().join("w")));
        let objects = as_json(&text);
        Self { folder, text, objects }
    }

    fn of_kind<'a>(&'a self, kind: &str) -> BTreeMap<&'a str, &'a Value> {
        let found = self.objects.iter().filter(|object| object["kind"] == kind);
        found.map(|object| (object["metadata"]["name"].as_str().unwrap(), object)).collect()
    }

    /// A file of the bundle.
    fn bundled(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder.path().join("lab").join(path)).unwrap()
    }

    /// By name: where the bundle says that each process is dialled.
    fn addresses(&self) -> BTreeMap<String, String> {
        let record: Value = serde_json::from_str(&self.bundled("lab.json")).unwrap();
        let agents = record["agents"].as_array().unwrap().iter();
        let agents = agents.map(|agent| (&agent["name"], &agent["address"]));
        let doors = record["doors"].as_object().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let mut addresses: BTreeMap<_, _> = agents.map(|(name, at)| (text(name), text(at))).collect();
        addresses.extend(doors.iter().map(|(name, at)| (name.clone(), text(at))));
        addresses
    }
}

/// YAML as another program reads it.
pub(crate) fn as_json(yaml: &str) -> Vec<Value> {
    let script = "import json, sys, yaml; json.dump(list(yaml.safe_load_all(sys.stdin)), sys.stdout)";
    let mut python =
        judge("python").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = python.stdin.take().unwrap();
    let yaml = yaml.to_owned();
    let written = std::thread::spawn(move || input.write_all(yaml.as_bytes()));
    let output = python.wait_with_output().unwrap();
    written.join().unwrap().unwrap();
    assert!(output.status.success(), "no YAML");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn manifests_keep_to_the_schemas_and_to_the_bundle() {
    for (topology, options) in [
        ("psmn-x5.topo", &["--pack", "leaf", "--pm", "--standby", "1", "--metrics"][..]),
        ("ring-4.topo", &["--sm", "opensm"]),
        ("ring-4.topo", &["--pm", "--metrics", "--prometheus", "prom", "--grafana", "graf"]),
        ("ring-4.topo", &["--vfs", "2", "--lids", "dynamic", "--storage-class", "fast.example.com"]),
        ("two-planes.topo", &PLANES),
        ("ring-4.topo", &["--sm", "none", "--namespace", "ring", "--door", "31000", "--user", "1000:2000"]),
    ] {
        let manifests = Manifests::of(topology, options);
        schemas_accept(&manifests);
        services_are_the_peers(&manifests);
        secrets_are_kept_apart(&manifests);
        manifests.of_kind("StatefulSet").into_iter().for_each(|(name, set)| pod_is_closed(name, set));
        pods_are_looked_after(&manifests);
        labels_are_those_that_kubernetes_recommends(&manifests);
        let several = options.contains(&"--standby") || topology == "two-planes.topo";
        drains_leave_managers_and_most_agents(
            &manifests,
            if several { &["sm", "sm-2"][..] } else { &["sm"] },
        );
        claims_are_of_the_class(
            &manifests,
            options.contains(&"--storage-class").then_some("fast.example.com"),
        );
        let opensm = containers(&manifests).filter(|(_, container)| container["name"] == "opensm");
        assert_eq!(opensm.count(), usize::from(options.contains(&"opensm")));
        watch::what_watches_is_as_closed(&manifests, options);
    }
}

fn schemas_accept(manifests: &Manifests) {
    let documents = manifests.text.split("---\n").skip(1);
    let is_custom = |text: &str| {
        [MONITOR, OPERATORS_RULES].iter().any(|kind| text.contains(&format!("\nkind: \"{kind}\"\n")))
    };
    let known: String =
        documents.filter(|text| !is_custom(text)).map(|text| format!("---\n{text}")).collect();
    let file = manifests.folder.path().join("known.yaml");
    std::fs::write(&file, &known).unwrap();
    output_of(judge("kubernetes-validate").args(["--strict", "--quiet"]).arg(&file));
    // It tells right from wrong.
    std::fs::write(&file, known.replacen("podManagementPolicy", "podManagementPolity", 1)).unwrap();
    let judged = judge("kubernetes-validate").args(["--strict", "--quiet"]).arg(&file).output().unwrap();
    assert!(!judged.status.success(), "a misspelt field passes");
}

/// All containers, each with its pod's name.
fn containers(manifests: &Manifests) -> impl Iterator<Item = (&str, &Value)> {
    let sets = manifests.of_kind("StatefulSet").into_iter();
    sets.flat_map(|(name, set)| {
        let containers = set["spec"]["template"]["spec"]["containers"].as_array().unwrap();
        containers.iter().map(move |container| (name, container))
    })
}

/// Each name that a process dials is a headless Service's, which leads to that process before it is ready, at its port.
fn services_are_the_peers(manifests: &Manifests) {
    let addresses = manifests.addresses();
    let services = manifests.of_kind("Service");
    let sets = manifests.of_kind("StatefulSet");
    let (headless, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
        services.clone().into_iter().partition(|(_, service)| service["spec"]["clusterIP"] == "None");
    assert!(headless.keys().copied().eq(addresses.keys().map(String::as_str)), "{addresses:?}");
    assert!(headless.keys().eq(sets.keys()));
    for (name, service) in headless {
        let (spec, set) = (&service["spec"], sets[name]);
        assert_eq!(spec["publishNotReadyAddresses"], true, "{name}");
        assert!(selects(&spec["selector"], &set["spec"]["template"]), "{name}");
        assert_eq!(
            sets.values().filter(|set| selects(&spec["selector"], &set["spec"]["template"])).count(),
            1
        );
        assert_eq!(spec["selector"], set["spec"]["selector"]["matchLabels"], "{name}");
        assert_eq!(set["spec"]["serviceName"], name);
        assert_eq!(set["spec"]["replicas"], 1, "{name}");
        let port = &spec["ports"][0];
        assert_eq!(format!("{name}:{}", port["port"]), addresses[name]);
        assert_eq!(port["protocol"], "UDP", "{name}");
        let container = &set["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["ports"][0]["containerPort"], port["port"], "{name}");
    }
    // The door alone is open to clients; what watches is reached inside the cluster.
    let watching = manifests.of_kind("Deployment").into_keys();
    assert_eq!(others.into_keys().collect::<BTreeSet<_>>(), watching.chain(["door"]).collect());
    assert_eq!(services["door"]["spec"]["selector"], services["hub"]["spec"]["selector"]);
    // Configurations of processes name no other peer.
    let dialled: BTreeSet<String> = sets
        .keys()
        .filter_map(|name| {
            std::fs::read_to_string(manifests.folder.path().join(format!("lab/agents/{name}.json"))).ok()
        })
        .flat_map(|part| peers(&serde_json::from_str(&part).unwrap()))
        .collect();
    assert!(!dialled.is_empty());
    assert!(dialled.iter().all(|peer| addresses.values().any(|address| address == peer)), "{dialled:?}");
}

#[test]
fn each_plane_has_pods_of_its_own_managers() {
    let manifests = Manifests::of("two-planes.topo", &PLANES);
    let sets = manifests.of_kind("StatefulSet");
    let managers: Vec<&str> = sets
        .keys()
        .copied()
        .filter(|name| ["sm", "pm", "vmm"].iter().any(|kind| name.starts_with(kind)))
        .collect();
    assert_eq!(managers, ["pm", "pm-2", "sm", "sm-2", "vmm", "vmm-2"]);
    for kind in ["sm", "pm", "vmm"] {
        let seats = [kind.to_owned(), format!("{kind}-2")].map(|name| {
            let part: Value =
                serde_json::from_str(&manifests.bundled(&format!("managers/{name}.json"))).unwrap();
            (part["seat"]["node"].clone(), part["seat"]["port"].clone())
        });
        assert_ne!(seats[0], seats[1], "{kind}");
    }
}

/// Whether a selector chooses an object.
fn selects(selector: &Value, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    selector.as_object().unwrap().iter().all(|(name, value)| labels[name] == *value)
}

#[test]
fn names_that_no_object_can_have_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topologies/ring-4.topo");
    for (option, wrong, hint) in [
        ("--storage-class", "Fast", "kubectl get storageclass"),
        ("--storage-class", "a..b", "kubectl get storageclass"),
        ("--namespace", "X5", "lower-case"),
    ] {
        let mut command = Command::new(weft_program());
        command.arg("k8s").arg(&file).args(["--lab", "lab", option, wrong]).current_dir(folder.path());
        let output = command.env("WEFT_HOME", folder.path().join("w")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(wrong) && said.contains(hint), "{said}");
        assert!(!folder.path().join("lab").exists(), "a bundle was written first");
    }
    // Volumes that were made by hand have no class.
    let manifests = Manifests::of("ring-4.topo", &["--storage-class", ""]);
    claims_are_of_the_class(&manifests, Some(""));
}

/// The peers in an agent's configuration.
fn peers(part: &Value) -> Vec<String> {
    let cables = part["cables"].as_array().unwrap().iter();
    cables.filter_map(|cable| Some(cable["remote_addr"].as_str()?.to_owned())).collect()
}

/// Each process has a Secret of its own, mounts no other, and finds there what the bundle has at that path.
fn secrets_are_kept_apart(manifests: &Manifests) {
    let secrets = manifests.of_kind("Secret");
    let sets = manifests.of_kind("StatefulSet");
    let processes =
        containers(manifests).map(|(pod, container)| (process_of(pod, container), pod, container));
    let processes: Vec<(&str, &str, &Value)> = processes.collect();
    let mut with_secrets: BTreeSet<&str> = processes.iter().map(|(name, ..)| *name).collect();
    // The Prometheus operator reads it, or the pod of Prometheus, and no other.
    let ports = |service: &&Value| service["spec"]["ports"].as_array().unwrap().clone();
    let services = manifests.of_kind("Service");
    let is_scraped = services.values().flat_map(ports).any(|port| port["name"] == "metrics");
    with_secrets.extend(is_scraped.then_some("scraper"));
    assert_eq!(with_secrets, secrets.keys().copied().collect());
    for (name, pod, container) in processes {
        let set = sets[pod];
        let data = secrets[name]["stringData"].as_object().unwrap();
        let bytes: usize = data.values().map(|file| file.as_str().unwrap().len()).sum();
        assert!(bytes < SECRET_BYTES_MAX, "{name} has {bytes} bytes");
        let volumes = set["spec"]["template"]["spec"]["volumes"].as_array().unwrap();
        let mounts = container["volumeMounts"].as_array().unwrap();
        let mounts = |volume: &&Value| mounts.iter().any(|mount| mount["name"] == volume["name"]);
        let of_files = volumes.iter().filter(|volume| volume.get("emptyDir").is_none());
        let mounted: Vec<&Value> = of_files.filter(mounts).collect();
        let [volume] = mounted[..] else { panic!("{name} mounts {mounted:?}") };
        assert_eq!(volume["secret"]["secretName"], name);
        assert_eq!(volume["secret"]["defaultMode"], 0o440, "{name}");
        for item in volume["secret"]["items"].as_array().unwrap() {
            let path = item["path"].as_str().unwrap();
            assert_eq!(data[item["key"].as_str().unwrap()], manifests.bundled(path), "{name}: {path}");
        }
        let keys = |text: &str| text.matches("BEGIN PRIVATE KEY").count();
        let private: usize = data.values().map(|file| keys(file.as_str().unwrap())).sum();
        assert_eq!(private, usize::from(name != "opensm"), "{name}");
        let is_manager = ["sm", "pm", "vmm"].contains(&name.trim_end_matches("-2"));
        assert_eq!(data.contains_key("keys"), is_manager, "{name}: keys of management");
    }
    let authority = manifests.bundled("ca.key");
    let key = authority.lines().nth(1).unwrap();
    assert!(!manifests.text.contains(key), "the authority's key is in no manifest");
    // Processes know the token's hash.
    let token = manifests.bundled("identities/http.token");
    let shown = usize::from(secrets.contains_key("scraper"));
    assert_eq!(manifests.text.matches(&token).count(), shown, "the token is the scraper's alone");
}

/// The process that a container of a pod runs.
fn process_of<'a>(pod: &'a str, container: &'a Value) -> &'a str {
    if container["name"] == "weft" { pod } else { container["name"].as_str().unwrap() }
}

/// A pod may do nothing but run its process, and can read its Secret by its group alone.
fn pod_is_closed(name: &str, set: &Value) {
    let pod = &set["spec"]["template"]["spec"];
    let context = &pod["securityContext"];
    assert_eq!(context["runAsNonRoot"], true, "{name}");
    assert_eq!(context["fsGroup"], context["runAsGroup"], "{name}");
    assert_eq!(pod["automountServiceAccountToken"], false, "{name}");
    pod["containers"]
        .as_array()
        .unwrap()
        .iter()
        .for_each(|container| container_is_closed(name, set, container));
}

fn container_is_closed(name: &str, set: &Value, container: &Value) {
    let pod = &set["spec"]["template"]["spec"];
    let expected = json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": { "drop": ["ALL"] },
    });
    assert_eq!(container["securityContext"], expected, "{name}");
    let check = &container["readinessProbe"]["exec"]["command"][0];
    assert_eq!(*check, if container["name"] == "weft" { "/weft" } else { "saquery" }, "{name}");
    for mount in container["volumeMounts"].as_array().unwrap() {
        let volume = pod["volumes"].as_array().unwrap().iter().find(|volume| volume["name"] == mount["name"]);
        let claim = &set["spec"]["volumeClaimTemplates"][0]["metadata"]["name"];
        let is_scratch = volume.map_or(mount["name"] == *claim, |volume| volume.get("emptyDir").is_some());
        assert_eq!(mount["readOnly"] != true, is_scratch, "{name}");
    }
}

#[test]
fn every_endpoint_of_the_monitor_exists() {
    let manifests = Manifests::of("ring-4.topo", &["--pm", "--metrics=9464"]);
    let (monitors, services) = (manifests.of_kind(MONITOR), manifests.of_kind("Service"));
    let spec = &monitors["weft"]["spec"];
    assert_eq!(monitors["weft"]["apiVersion"], "monitoring.coreos.com/v1");
    let wanted = spec["selector"]["matchLabels"].as_object().unwrap();
    let job = spec["jobLabel"].as_str().unwrap();
    assert_eq!(spec["selector"]["matchExpressions"], json!([{ "key": job, "operator": "Exists" }]));
    let chosen = services.into_iter().filter(|(_, service)| {
        let labels = &service["metadata"]["labels"];
        labels.get(job).is_some() && wanted.iter().all(|(name, value)| labels[name] == *value)
    });
    let chosen: BTreeMap<&str, &Value> = chosen.collect();
    assert_eq!(chosen.len(), 8 + 2, "agents, subnet manager, performance manager");
    for (name, service) in chosen {
        let ports = service["spec"]["ports"].as_array().unwrap();
        let port = ports.iter().find(|port| port["name"] == spec["endpoints"][0]["port"]).unwrap();
        assert_eq!((&port["port"], &port["protocol"]), (&json!(9464), &json!("TCP")), "{name}");
        let kind = if name.starts_with('a') { "agents" } else { "managers" };
        let part: Value = serde_json::from_str(&manifests.bundled(&format!("{kind}/{name}.json"))).unwrap();
        let seat = if kind == "agents" { &part } else { &part["seat"] };
        assert_eq!(seat["metrics"], "0.0.0.0:9464", "{name}");
    }
    let endpoint = &spec["endpoints"][0];
    assert_eq!(endpoint["scheme"], "https");
    let of_secret = |selector: &Value| {
        let secret = manifests.of_kind("Secret")[selector["name"].as_str().unwrap()];
        secret["stringData"][selector["key"].as_str().unwrap()].as_str().unwrap().to_owned()
    };
    assert_eq!(of_secret(&endpoint["tlsConfig"]["ca"]["secret"]), manifests.bundled("ca.pem"));
    let token = of_secret(&endpoint["authorization"]["credentials"]);
    assert_eq!(token, manifests.bundled("identities/http.token"));
}

/// The hub's Secret as the kubelet mounts it: links to files of root's, which only the pod's group can read.
#[test]
fn a_process_runs_from_a_secret_that_its_group_may_read() {
    let manifests = Manifests::of("ring-4.topo", &[]);
    let pod = &manifests.of_kind("StatefulSet")["hub"]["spec"]["template"]["spec"];
    let secret = &pod["volumes"][0]["secret"];
    let (mode, group) =
        (secret["defaultMode"].as_u64().unwrap(), pod["securityContext"]["fsGroup"].as_u64().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let (mount, data) = (folder.path().join("bundle"), folder.path().join("bundle/..data"));
    std::fs::create_dir_all(mount.join("..1")).unwrap();
    std::os::unix::fs::symlink("..1", &data).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    for item in secret["items"].as_array().unwrap() {
        let path = item["path"].as_str().unwrap();
        let (file, top) = (data.join(path), path.split('/').next().unwrap());
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, manifests.bundled(path)).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(u32::try_from(mode).unwrap())).unwrap();
        if is_root {
            std::os::unix::fs::chown(&file, Some(0), Some(u32::try_from(group).unwrap())).unwrap();
        }
        if !mount.join(top).exists() {
            std::os::unix::fs::symlink(format!("..data/{top}"), mount.join(top)).unwrap();
        }
    }
    let user = pod["securityContext"]["runAsUser"].as_u64().unwrap();
    let hub = Hub::start(folder, is_root.then_some((user, group)));
    hub.becomes_healthy();
}

/// A hub that is started as in a pod; as another user where this one may do that.
struct Hub {
    folder: TempDir,
    process: Child,
}

impl Hub {
    fn start(folder: TempDir, user: Option<(u64, u64)>) -> Self {
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        // Its own folder may be closed to others.
        let program = folder.path().join("weft");
        std::fs::copy(weft_program(), &program).unwrap();
        let scratch = folder.path().join("run");
        std::fs::create_dir(&scratch).unwrap();
        std::fs::set_permissions(&scratch, Permissions::from_mode(0o1777)).unwrap();
        let mut command = match user {
            Some((user, group)) => {
                let mut command = Command::new("setpriv");
                command.args([
                    format!("--reuid={user}"),
                    format!("--regid={group}"),
                    "--clear-groups".into(),
                ]);
                command.arg(&program);
                command
            }
            None => Command::new(&program),
        };
        command.args(["hub", "--bundle"]).arg(folder.path().join("bundle"));
        command.arg("--run").arg(scratch.join("run")).stdin(Stdio::null());
        Self { process: command.spawn().unwrap(), folder }
    }

    fn becomes_healthy(mut self) {
        let began = Instant::now();
        let health = || {
            let mut command = Command::new(weft_program());
            command.args(["health", "--as", "hub", "--run"]).arg(self.folder.path().join("run/run"));
            command.output().unwrap()
        };
        loop {
            let said = health();
            if said.status.success() {
                return;
            }
            assert_eq!(self.process.try_wait().unwrap(), None, "the hub has ended");
            let said = String::from_utf8_lossy(&said.stderr).into_owned();
            assert!(began.elapsed() < PATIENCE, "the hub is not well: {said}");
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
