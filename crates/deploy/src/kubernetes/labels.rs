//! Names and labels of a laboratory's objects: those that Kubernetes recommends, and one of weft's own that tells processes apart.

use serde_json::{Value, json};

use crate::kubernetes::Cluster;
use crate::services::{Role, Service};

/// The API's own limit is 63 characters; a label must have room for one.
const NAMESPACE_CHARS_MAX: usize = 63;
/// The API's limit for other names.
const NAME_CHARS_MAX: usize = 253;
/// The label that names the process.
const PROCESS: &str = "weft-process";
/// The label that names what a process is to its laboratory.
const COMPONENT: &str = "app.kubernetes.io/component";

/// Whether a name can be a namespace's.
pub fn is_namespace(name: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= NAMESPACE_CHARS_MAX
        && name.chars().all(good)
        && !name.is_empty()
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// Whether a name can be that of a storage class: labels with dots between.
pub fn is_object_name(name: &str) -> bool {
    name.len() <= NAME_CHARS_MAX && name.split('.').all(is_namespace)
}

/// What tells this laboratory's objects. It never changes, so that selectors can be made of it.
pub(crate) fn own(cluster: &Cluster<'_>) -> Value {
    json!({
        "app.kubernetes.io/name": "weft",
        "app.kubernetes.io/instance": cluster.namespace,
    })
}

/// What tells the pods of one process.
pub(crate) fn of_process(name: &str, cluster: &Cluster<'_>) -> Value {
    let mut labels = own(cluster);
    labels[PROCESS] = name.into();
    labels
}

/// What tells the pods of processes of one role.
pub(crate) fn of_role(role: Role, cluster: &Cluster<'_>) -> Value {
    let mut labels = own(cluster);
    labels[COMPONENT] = role.name().into();
    labels
}

/// All labels of an object that is no process's.
pub(crate) fn all(component: &str, cluster: &Cluster<'_>) -> Value {
    let mut labels = own(cluster);
    labels[COMPONENT] = component.into();
    labels["app.kubernetes.io/part-of"] = "weft".into();
    labels["app.kubernetes.io/managed-by"] = "weft".into();
    labels["app.kubernetes.io/version"] = env!("CARGO_PKG_VERSION").into();
    labels
}

/// All labels of a process's objects.
pub(crate) fn all_of(service: &Service, cluster: &Cluster<'_>) -> Value {
    let mut labels = all(service.role.name(), cluster);
    labels[PROCESS] = service.name.as_str().into();
    labels
}

/// The head of an object that is no process's.
pub(crate) fn metadata(name: &str, component: &str, cluster: &Cluster<'_>) -> Value {
    json!({ "name": name, "namespace": cluster.namespace, "labels": all(component, cluster) })
}

/// The head of a process's object.
pub(crate) fn metadata_of(service: &Service, cluster: &Cluster<'_>) -> Value {
    json!({ "name": service.name, "namespace": cluster.namespace, "labels": all_of(service, cluster) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_a_label_and_other_names_are_several() {
        assert!(is_namespace("x5") && is_namespace("5") && is_namespace(&"a".repeat(63)));
        for wrong in ["", "-a", "a-", "X5", "a.b", "a_b", &"a".repeat(64)] {
            assert!(!is_namespace(wrong), "{wrong}");
        }
        assert!(is_object_name("fast") && is_object_name("csi.example-1.com"));
        for wrong in ["", ".", "a..b", "-a.b", "a.b-", "Fast", "a b", &"a.".repeat(127)] {
            assert!(!is_object_name(wrong), "{wrong}");
        }
    }
}
