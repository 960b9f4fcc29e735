//! Prometheus and Grafana beside a laboratory in Kubernetes: of its own, or rules and dashboards for operators.

use crate::mounted::{finds_its_dashboards, laid_out, serves_rules_and_consoles};

use super::*;

/// `kubectl apply` keeps a copy of an object in an annotation, and the API takes no more than this of all annotations.
const APPLIED_BYTES_MAX: usize = 256 << 10;

/// The pods that watch may do no more than others, and there is a monitor where there are none.
pub(super) fn what_watches_is_as_closed(manifests: &Manifests, options: &[&str]) {
    let has = |option: &str| usize::from(options.contains(&option));
    let deployments = manifests.of_kind("Deployment");
    assert_eq!(deployments.len(), has("--prometheus") + has("--grafana"));
    let for_operators = has("--metrics") - has("--prometheus");
    assert_eq!(manifests.of_kind(MONITOR).len(), for_operators);
    assert_eq!(manifests.of_kind(OPERATORS_RULES).len(), 2 * for_operators);
    for (name, deployment) in deployments {
        let template = &deployment["spec"]["template"];
        let pod = &template["spec"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{name}");
        assert_eq!(pod["automountServiceAccountToken"], false, "{name}");
        let service = manifests.of_kind("Service")[name];
        assert!(selects(&service["spec"]["selector"], template), "{name}");
        assert_eq!(deployment["spec"]["selector"]["matchLabels"], service["spec"]["selector"], "{name}");
        // The policy lets the laboratory's pods talk to each other by these labels.
        let policy = manifests.of_kind("NetworkPolicy")["fabric"];
        let own = &policy["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"];
        assert!(selects(own, template), "{name}");
        let expected = json!({
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        });
        let container = &pod["containers"][0];
        assert_eq!(container["securityContext"], expected, "{name}");
        let port = &service["spec"]["ports"][0]["port"];
        assert_eq!(container["ports"][0]["containerPort"], *port, "{name}");
    }
}

/// What a pod finds at `/bundle`.
fn mounted(manifests: &Manifests, deployment: &str) -> TempDir {
    let pod = &manifests.of_kind("Deployment")[deployment]["spec"]["template"]["spec"];
    let mount = &pod["containers"][0]["volumeMounts"][0];
    assert_eq!((&mount["mountPath"], &mount["readOnly"]), (&json!("/bundle"), &json!(true)));
    let volumes = pod["volumes"].as_array().unwrap().iter();
    let volume = volumes.into_iter().find(|volume| volume["name"] == mount["name"]).unwrap();
    let (maps, secrets) = (manifests.of_kind("ConfigMap"), manifests.of_kind("Secret"));
    let sources = volume["projected"]["sources"].as_array().unwrap().iter();
    laid_out(sources.flat_map(|source| {
        let (from, data) = match source.get("secret") {
            Some(secret) => (secret, &secrets[secret["name"].as_str().unwrap()]["stringData"]),
            None => {
                let map = &source["configMap"];
                (map, &maps[map["name"].as_str().unwrap()]["data"])
            }
        };
        from["items"].as_array().unwrap().iter().map(move |item| {
            let key = item["key"].as_str().unwrap();
            let text = data[key].as_str().unwrap_or_else(|| panic!("no {key} in {from}"));
            (item["path"].as_str().unwrap().to_owned(), text.to_owned())
        })
    }))
}

#[test]
fn prometheus_and_grafana_find_what_their_pods_mount() {
    let options = ["--pm", "--metrics", "--prometheus", "prom", "--grafana", "graf"];
    let manifests = Manifests::of("ring-4.topo", &options);
    let pods = manifests.of_kind("Deployment");
    let container = |name: &str| pods[name]["spec"]["template"]["spec"]["containers"][0].clone();
    let prometheus = container("prometheus");
    assert_eq!((&prometheus["image"], &prometheus["command"]), (&json!("prom"), &json!(["prometheus"])));
    let arguments = prometheus["args"].as_array().unwrap().iter();
    let arguments: Vec<String> = arguments.map(|word| word.as_str().unwrap().to_owned()).collect();
    let bundle = mounted(&manifests, "prometheus");
    serves_rules_and_consoles(bundle.path(), &arguments);
    // It believes and shows what the bundle says.
    for file in ["ca.pem", "identities/http.token", "prometheus.yml"] {
        let text = std::fs::read_to_string(bundle.path().join(file)).unwrap();
        assert_eq!(text, manifests.bundled(file), "{file}");
    }
    let grafana = container("grafana");
    assert_eq!(grafana["image"], "graf");
    let settings = grafana["env"].as_array().unwrap().iter().map(|variable| {
        let text = |key: &str| variable[key].as_str().unwrap().to_owned();
        (text("name"), text("value"))
    });
    finds_its_dashboards(mounted(&manifests, "grafana").path(), &settings.collect(), "prometheus:9090");
}

#[test]
fn operators_find_the_rules_and_dashboards() {
    let manifests = Manifests::of("ring-4.topo", &["--pm", "--metrics"]);
    let mut alerts = 0;
    for (name, rules) in manifests.of_kind(OPERATORS_RULES) {
        assert_eq!(rules["apiVersion"], "monitoring.coreos.com/v1");
        // JSON is YAML, and the specification of these objects is a file of rules.
        let file = manifests.folder.path().join(name);
        std::fs::write(&file, rules["spec"].to_string()).unwrap();
        output_of(Command::new("promtool").args(["check", "rules"]).arg(file));
        alerts += rules["spec"].to_string().matches("\"alert\":").count();
    }
    assert!(alerts >= 20, "{alerts}");
    let maps = manifests.of_kind("ConfigMap");
    let boards = maps.values().filter(|map| map["metadata"]["labels"]["grafana_dashboard"] == "1");
    assert_eq!(boards.count(), crate::boards::files("grafana", "json").len());
    // Everything that is no Secret can be applied.
    for object in &manifests.objects {
        let bytes = object.to_string().len();
        let is_secret = object["kind"] == "Secret";
        assert!(is_secret || bytes < APPLIED_BYTES_MAX, "{}: {bytes} bytes", object["metadata"]["name"]);
    }
}
