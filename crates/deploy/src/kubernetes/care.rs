//! Care for pods in Kubernetes: probes, resources, places of managers, and the number that may be evicted at once.

use serde_json::{Value, json};

use crate::kubernetes::{Cluster, labels, object};
use crate::services::{Role, Service};

/// How long a check may take, in seconds.
const CHECK_TAKES: usize = 10;
/// A process that has not answered by then will not; in seconds.
const START_TAKES: usize = 300;
/// Seconds between two looks whether a process lives, at least. Readiness is looked at more often.
const LIFE_EVERY_MIN: usize = 30;
/// Looks in a row without an answer after which a pod is started again. Minutes of a busy node are no reason.
const LIFE_FAILS: usize = 6;

/// The probes of a container.
pub(crate) fn probes(service: &Service) -> Vec<(&'static str, Value)> {
    let exec = |command: Vec<String>, every: usize, fails: usize| {
        json!({
            "exec": { "command": command },
            "periodSeconds": every,
            "timeoutSeconds": CHECK_TAKES,
            "failureThreshold": fails,
        })
    };
    let every = service.check_every;
    let mut probes = vec![("readinessProbe", exec(service.health_check(), every, 3))];
    // Before its subnet is up OpenSM answers nothing, however well it is: only its end counts.
    if let Some(check) = service.life_check() {
        probes.push(("startupProbe", exec(check.clone(), every, START_TAKES.div_ceil(every))));
        probes.push(("livenessProbe", exec(check, LIFE_EVERY_MIN.max(3 * every), LIFE_FAILS)));
    }
    probes
}

/// What a container asks for, and the memory that it may not exceed, files in memory included. A limit of processor time would stop a
/// process for up to a tenth of a second, which its neighbours take for silence.
pub(crate) fn resources(service: &Service) -> Value {
    let devices = service.devices;
    let (cpu, memory, limit) = match service.role {
        Role::Agent => (10 + devices, 16 + devices / 8, 192 + devices),
        // Tables grow with the fabric.
        _ => (50, 32 + devices / 16, 256 + devices / 2),
    };
    json!({
        "requests": { "cpu": format!("{cpu}m"), "memory": format!("{memory}Mi") },
        "limits": { "memory": format!("{limit}Mi") },
    })
}

/// Subnet managers go to different nodes where there are several: one that dies takes no other with it.
pub(crate) fn affinity(service: &Service, cluster: &Cluster<'_>) -> Option<Value> {
    (service.role == Role::SubnetManager).then(|| {
        json!({ "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 100,
            "podAffinityTerm": {
                "labelSelector": { "matchLabels": labels::of_role(service.role, cluster) },
                "topologyKey": "kubernetes.io/hostname",
            },
        }] } })
    })
}

/// Whoever drains a node takes one agent at a time, and never the last subnet manager of several.
pub(crate) fn budgets(services: &[Service], cluster: &Cluster<'_>) -> Vec<Value> {
    let budget = |(name, role): (&str, Role)| {
        let count = services.iter().filter(|service| service.role == role).count();
        // A budget for one alone would keep its node from being drained for ever.
        (count > 1).then(|| {
            let metadata = labels::metadata(name, role.name(), cluster);
            let spec =
                json!({ "maxUnavailable": 1, "selector": { "matchLabels": labels::of_role(role, cluster) } });
            object("policy/v1", "PodDisruptionBudget", &metadata, &spec)
        })
    };
    let all = [("agents", Role::Agent), ("subnet-managers", Role::SubnetManager)];
    all.into_iter().filter_map(budget).collect()
}
