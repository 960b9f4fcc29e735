//! Probes, resources, labels, budgets and claims of the manifests.

use super::*;

/// A pod is started again when its process does not answer for minutes, and not because its peers do not; it has what it asks for.
pub(super) fn pods_are_looked_after(manifests: &Manifests) {
    for (name, container) in containers(manifests) {
        let check = |probe: &str| container[probe]["exec"]["command"].as_array();
        let times = |probe: &str, what: &str| container[probe][what].as_u64().unwrap();
        if container["name"] == "opensm" {
            assert!(container.get("livenessProbe").is_none(), "OpenSM is silent until its subnet is up");
        } else {
            let process = ["/weft", "health", "--run", "/run/weft/run", "--as", name];
            assert!(check("livenessProbe").unwrap().iter().eq(process.iter()), "{name}");
            assert_eq!(check("startupProbe"), check("livenessProbe"), "{name}");
            assert!(check("readinessProbe").unwrap().starts_with(check("livenessProbe").unwrap()), "{name}");
            let silent = times("livenessProbe", "periodSeconds") * times("livenessProbe", "failureThreshold");
            assert!((180..=1200).contains(&silent), "{name}: {silent} s");
            let starts = times("startupProbe", "periodSeconds") * times("startupProbe", "failureThreshold");
            assert!(starts >= 300, "{name}: {starts} s");
        }
        let resources = &container["resources"];
        let amount = |kind: &str| {
            let text = resources[kind]["memory"].as_str().unwrap();
            text.strip_suffix("Mi").unwrap().parse::<u64>().unwrap()
        };
        // Files in memory count, and there may be 64 MiB of them.
        assert!(amount("requests") > 0 && amount("limits") >= amount("requests") + 64, "{name}: {resources}");
        assert!(resources["requests"]["cpu"].as_str().unwrap().ends_with('m'), "{name}");
        assert!(resources["limits"].get("cpu").is_none(), "{name}: a throttled process looks dead");
    }
}

/// <https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/>
pub(super) fn labels_are_those_that_kubernetes_recommends(manifests: &Manifests) {
    let recommended = ["name", "instance", "version", "component", "part-of", "managed-by"];
    let templates = manifests.of_kind("StatefulSet").into_values().map(|set| &set["spec"]["template"]);
    for object in manifests.objects.iter().chain(templates) {
        let labels = &object["metadata"]["labels"];
        for name in recommended {
            assert!(
                labels[format!("app.kubernetes.io/{name}")].is_string(),
                "{name}: {}",
                object["metadata"]
            );
        }
        assert_eq!(labels["app.kubernetes.io/managed-by"], "weft");
    }
    // What changes with the program is in no selector and no template of a claim, neither of which can change.
    for set in manifests.of_kind("StatefulSet").into_values() {
        let fixed = [&set["spec"]["selector"], &set["spec"]["volumeClaimTemplates"]];
        assert!(fixed.iter().all(|fixed| !fixed.to_string().contains("/version")), "{fixed:?}");
    }
}

/// One agent at a time may be evicted, and one of several subnet managers, which are on different nodes where there are several.
pub(super) fn drains_leave_managers_and_most_agents(manifests: &Manifests, managers: &[&str]) {
    let sets = manifests.of_kind("StatefulSet");
    let budgets = manifests.of_kind("PodDisruptionBudget");
    let chosen = |selector: &Value| {
        let chosen = sets.iter().filter(|(_, set)| selects(selector, &set["spec"]["template"]));
        chosen.map(|(name, _)| *name).collect::<Vec<_>>()
    };
    let names: Vec<&str> = budgets.keys().copied().collect();
    assert_eq!(names, if managers.len() > 1 { &["agents", "subnet-managers"][..] } else { &["agents"] });
    for (name, budget) in budgets {
        let pods = chosen(&budget["spec"]["selector"]["matchLabels"]);
        assert_eq!(
            (&budget["apiVersion"], &budget["spec"]["maxUnavailable"]),
            (&json!("policy/v1"), &json!(1))
        );
        match name {
            "agents" => assert!(pods.len() > 1 && pods.iter().all(|pod| pod.starts_with('a')), "{pods:?}"),
            _ => assert_eq!(pods, managers),
        }
    }
    for (name, set) in &sets {
        let apart = &set["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"];
        let apart = &apart["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"];
        assert_eq!(apart.is_object(), ["sm", "sm-2"].contains(name), "{name}");
        if apart.is_object() {
            assert_eq!(apart["topologyKey"], "kubernetes.io/hostname");
            assert_eq!(chosen(&apart["labelSelector"]["matchLabels"]), managers);
        }
    }
}

/// The hub and the VM manager claim volumes, of the class that was given or of the default one.
pub(super) fn claims_are_of_the_class(manifests: &Manifests, class: Option<&str>) {
    let sets = manifests.of_kind("StatefulSet");
    let claims =
        sets.iter().filter_map(|(name, set)| Some((*name, set["spec"].get("volumeClaimTemplates")?)));
    let claims: BTreeMap<&str, &Value> = claims.collect();
    assert!(claims.contains_key("hub"));
    for (name, claim) in claims {
        assert!(["hub", "vmm", "vmm-2"].contains(&name), "{name}");
        assert_eq!(
            claim[0]["spec"].get("storageClassName"),
            class.map(|class| json!(class)).as_ref(),
            "{name}"
        );
    }
}
