//! Kubernetes manifests: for each process a StatefulSet of one replica, a headless Service of the name that its peers dial, and a
//! Secret with what it may read of the bundle.
//!
//! All of them are in a namespace of the laboratory's own, and its NetworkPolicy keeps them among themselves.

mod care;
mod labels;
mod watch;

use serde_json::{Value, json};
use weft_bundle::failure::Failure;
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::names::HUB;
use weft_bundle::ports::DOOR_PORT;
use weft_bundle::record::LabRecord;

use crate::services::{BUNDLE, Program, SCRATCH, Service, TEMPORARY, services};
use crate::yaml;

pub use labels::{is_namespace, is_object_name};

/// What a Secret may hold: more the API refuses.
const SECRET_BYTES_MAX: usize = 1 << 20;
/// The mode of a Secret's files. They are root's, and of the group that `fsGroup` names.
const SECRET_MODE: u32 = 0o440;
/// Sockets, locks and what the hub keeps: X5 takes a hundredth.
const SCRATCH_LIMIT: &str = "64Mi";

/// What manifests say beside the bundle.
#[derive(Clone, Copy, Debug)]
pub struct Cluster<'a> {
    /// The image.
    pub image: &'a str,
    /// The image of OpenSM, where it manages the subnet.
    pub tools: &'a str,
    /// The user and group of all processes.
    pub user: (u32, u32),
    /// The namespace, which holds nothing else.
    pub namespace: &'a str,
    /// The storage class of the volumes that are claimed; the cluster's default without one.
    pub storage_class: Option<&'a str>,
    /// Where every node of the cluster lets clients in to the hub.
    pub door: u16,
    /// The namespace whose Prometheus may scrape.
    pub scrape_from: &'a str,
    /// The image of Prometheus, where the laboratory has one of its own.
    pub prometheus: Option<&'a str>,
    /// The image of Grafana, which needs that Prometheus.
    pub grafana: Option<&'a str>,
}

/// The manifests.
pub fn render(record: &LabRecord, bundle: &Bundle, cluster: &Cluster<'_>) -> anyhow::Result<String> {
    let mut text = format!(
        "# The laboratory `{}` of weft on Kubernetes: {} agents for the devices of {}.\n\
         # Made by `weft k8s`; docs/operations.md tells how to use it. The Secrets in it are secret.\n",
        record.lab,
        record.agents.len(),
        weft_wire::Printable(&record.topology),
    );
    let mut add = |about: &str, value: &Value| {
        text += "---\n";
        if !about.is_empty() {
            text += &format!("# {}\n", weft_wire::Printable(about));
        }
        text += &yaml::document(value);
    };
    add("", &namespace(cluster));
    add("", &fabric_policy(record, cluster));
    add("", &door_policy(cluster));
    let services = services(record);
    for service in &services {
        add("", &secret(service, bundle, cluster)?);
        // OpenSM runs in the pod of its agent.
        let Some(port) = service.port else { continue };
        let job = record.kinds().find(|(name, _)| *name == service.name).and_then(|(_, kind)| kind.job());
        let ports = Ports { own: port, metrics: record.metrics_port().filter(|_| job.is_some()) };
        add("", &headless(service, job, ports, cluster));
        add(&service.about, &stateful_set(service, &beside(service, &services), ports, cluster));
    }
    for budget in care::budgets(&services, cluster) {
        add("", &budget);
    }
    add("Clients come in at each node of the cluster.", &door(cluster));
    if record.metrics_port().is_some() {
        text += &format!("---\n# {}\n", watch::about(cluster));
        text += &watch::documents(record, bundle, cluster)?.join("---\n");
    }
    Ok(text)
}

/// The OpenSMs that run in the pod of their agent.
fn beside<'a>(agent: &Service, services: &'a [Service]) -> Vec<&'a Service> {
    let shares = |opensm: &&Service| opensm.program == Program::Opensm && opensm.volume == agent.volume;
    services.iter().filter(|_| agent.volume.is_some()).filter(shares).collect()
}

fn object(api: &str, kind: &str, metadata: &Value, spec: &Value) -> Value {
    json!({ "apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec })
}

fn opaque(metadata: &Value, data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "stringData": data })
}

/// A namespace whose pods may do nothing but run.
fn namespace(cluster: &Cluster<'_>) -> Value {
    let mut labels = labels::all("laboratory", cluster);
    labels["pod-security.kubernetes.io/enforce"] = "restricted".into();
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": cluster.namespace, "labels": labels },
    })
}

/// Processes talk among themselves, and to the cluster's DNS; Prometheus reads metrics.
fn fabric_policy(record: &LabRecord, cluster: &Cluster<'_>) -> Value {
    let own = json!([{ "podSelector": { "matchLabels": labels::own(cluster) } }]);
    let mut ingress = vec![json!({ "from": own })];
    if let Some(port) = record.metrics_port().filter(|_| cluster.prometheus.is_none()) {
        let from = json!({ "matchLabels": { "kubernetes.io/metadata.name": cluster.scrape_from } });
        ingress.push(json!({
            "from": [{ "namespaceSelector": from }],
            "ports": [{ "protocol": "TCP", "port": port }],
        }));
    }
    let dns = ["UDP", "TCP"].map(|protocol| json!({ "protocol": protocol, "port": 53 }));
    let spec = json!({
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": ingress,
        "egress": [{ "to": own }, { "ports": dns }],
    });
    object("networking.k8s.io/v1", "NetworkPolicy", &labels::metadata("fabric", "network", cluster), &spec)
}

/// Clients reach the hub's door.
fn door_policy(cluster: &Cluster<'_>) -> Value {
    let spec = json!({
        "podSelector": { "matchLabels": labels::of_process(HUB, cluster) },
        "policyTypes": ["Ingress"],
        "ingress": [{ "ports": [{ "protocol": "UDP", "port": DOOR_PORT }] }],
    });
    object("networking.k8s.io/v1", "NetworkPolicy", &labels::metadata("door", "network", cluster), &spec)
}

/// What one process may read of the bundle. A Secret's keys have no slashes, so the volume gives the files their paths.
fn secret(service: &Service, bundle: &Bundle, cluster: &Cluster<'_>) -> anyhow::Result<Value> {
    let mut data = serde_json::Map::new();
    let mut bytes = 0;
    for file in &service.files {
        let path = bundle.path().join(&file.path);
        let text = weft_bundle::input::text(&path)?;
        bytes += text.len();
        data.insert(file.name.clone(), text.into());
    }
    if bytes > SECRET_BYTES_MAX {
        let message =
            format!("{bytes} bytes for `{}` are more than a Secret of Kubernetes takes", service.name);
        return Err(Failure::bad_input(message)
            .hint("run fewer devices per agent with --pack; the hub's grows with the fabric: `weft compose` has no such limit"));
    }
    Ok(opaque(&labels::metadata_of(service, cluster), &data.into()))
}

/// The Service that gives a process its name. It names processes that are not ready, too: agents are ready when their links are
/// up, and need each other's names for that.
fn headless(service: &Service, job: Option<&str>, at: Ports, cluster: &Cluster<'_>) -> Value {
    let mut ports = vec![json!({ "name": "weft", "protocol": "UDP", "port": at.own })];
    let mut metadata = labels::metadata_of(service, cluster);
    if let (Some(job), Some(port)) = (job, at.metrics) {
        ports.push(json!({ "name": METRICS, "protocol": "TCP", "port": port }));
        metadata["labels"][JOB] = job.into();
    }
    let spec = json!({
        "clusterIP": "None",
        "publishNotReadyAddresses": true,
        "selector": labels::of_process(&service.name, cluster),
        "ports": ports,
    });
    object("v1", "Service", &metadata, &spec)
}

/// Where a process answers.
#[derive(Clone, Copy)]
struct Ports {
    /// The UDP port that others dial.
    own: u16,
    /// The TCP port of metrics.
    metrics: Option<u16>,
}

/// The name of the port that serves metrics.
const METRICS: &str = "metrics";
/// The label of a Service that names its job.
const JOB: &str = "weft-job";

fn stateful_set(service: &Service, beside: &[&Service], at: Ports, cluster: &Cluster<'_>) -> Value {
    let mut spec = json!({
        "replicas": 1,
        "podManagementPolicy": "Parallel",
        "serviceName": service.name,
        "selector": { "matchLabels": labels::of_process(&service.name, cluster) },
        "template": {
            "metadata": { "labels": labels::all_of(service, cluster) },
            "spec": pod(service, beside, at, cluster),
        },
    });
    if outlives(service, beside) {
        let mut claim = json!({
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": SCRATCH_LIMIT } },
        });
        if let Some(class) = cluster.storage_class {
            claim["storageClassName"] = class.into();
        }
        // A StatefulSet's templates of claims cannot change, so no version is in them.
        spec["volumeClaimTemplates"] = json!([{ "metadata": { "name": "run", "labels": labels::of_process(&service.name, cluster) }, "spec": claim }]);
    }
    object("apps/v1", "StatefulSet", &labels::metadata_of(service, cluster), &spec)
}

/// Whether what a process keeps in the folder that it runs in is to outlive its pod.
fn outlives(service: &Service, beside: &[&Service]) -> bool {
    service.volume.is_some() && beside.is_empty()
}

/// No pod runs as root. Its group may read what is mounted.
fn pod_context(cluster: &Cluster<'_>) -> Value {
    let (user, group) = cluster.user;
    json!({
        "runAsNonRoot": true,
        "runAsUser": user,
        "runAsGroup": group,
        "fsGroup": group,
        "seccompProfile": { "type": "RuntimeDefault" },
    })
}

fn pod(service: &Service, beside: &[&Service], at: Ports, cluster: &Cluster<'_>) -> Value {
    let mut ports = vec![json!({ "name": "weft", "protocol": "UDP", "containerPort": at.own })];
    ports.extend(at.metrics.map(|port| json!({ "name": METRICS, "protocol": "TCP", "containerPort": port })));
    let mut own = container(service, cluster);
    own["ports"] = ports.into();
    let services = || std::iter::once(service).chain(beside.iter().copied());
    let mut volumes: Vec<Value> = services().map(bundle_volume).collect();
    if !outlives(service, beside) {
        volumes
            .push(json!({ "name": "run", "emptyDir": { "medium": "Memory", "sizeLimit": SCRATCH_LIMIT } }));
    }
    let tmp = beside.first().map(|_| json!({ "name": "tmp", "emptyDir": { "sizeLimit": SCRATCH_LIMIT } }));
    volumes.extend(tmp);
    let mut pod = json!({
        "automountServiceAccountToken": false,
        // Each Service would give every process seven variables more.
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": 5,
        "securityContext": pod_context(cluster),
        "containers": std::iter::once(own)
            .chain(beside.iter().map(|beside| container(beside, cluster)))
            .collect::<Vec<_>>(),
        "volumes": volumes,
    });
    if let Some(affinity) = care::affinity(service, cluster) {
        pod["affinity"] = affinity;
    }
    pod
}

/// The volume of what a process may read of the bundle.
fn bundle_volume(service: &Service) -> Value {
    let items: Vec<Value> =
        service.files.iter().map(|file| json!({ "key": file.name, "path": file.path })).collect();
    json!({
        "name": format!("bundle-{}", service.name),
        "secret": { "secretName": service.name, "defaultMode": SECRET_MODE, "items": items },
    })
}

/// A process. What runs weft is called so, whatever it is.
fn container(service: &Service, cluster: &Cluster<'_>) -> Value {
    let (name, image) = match service.program {
        Program::Weft => ("weft", cluster.image),
        Program::Opensm => (service.name.as_str(), cluster.tools),
    };
    let bundle = format!("bundle-{}", service.name);
    let mut mounts = vec![
        json!({ "name": bundle, "mountPath": BUNDLE, "readOnly": true }),
        json!({ "name": "run", "mountPath": SCRATCH }),
    ];
    let mut container = json!({
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": service.command,
        "resources": care::resources(service),
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        },
    });
    for (probe, value) in care::probes(service) {
        container[probe] = value;
    }
    if service.program == Program::Opensm {
        container["command"] = json!(["opensm"]);
        mounts.push(json!({ "name": "tmp", "mountPath": TEMPORARY }));
        let variables = service.environment.iter();
        container["env"] =
            variables.map(|(name, value)| json!({ "name": name, "value": value })).collect::<Vec<_>>().into();
    }
    container["volumeMounts"] = mounts.into();
    container
}

/// It leads to the hub before the subnet is up, too.
fn door(cluster: &Cluster<'_>) -> Value {
    let spec = json!({
        "type": "NodePort",
        "publishNotReadyAddresses": true,
        "selector": labels::of_process(HUB, cluster),
        "ports": [{ "name": "door", "protocol": "UDP", "port": DOOR_PORT, "nodePort": cluster.door }],
    });
    object("v1", "Service", &labels::metadata("door", "door", cluster), &spec)
}
