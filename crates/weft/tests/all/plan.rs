//! Bundles: what `weft plan` writes, and laboratories that start from it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{Home, planned_port, text, wait_until};
use serde_json::Value;

use crate::common;

/// A bundle of the small tree.
fn plan(home: &Home, options: &[&str]) -> PathBuf {
    let (file, out) = (home.small_tree(), home.base().with_file_name("bundle"));
    home.weft(&[&["plan", text(&file), "--out", text(&out)], options].concat()).succeeds();
    out
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_bundle_keeps_secrets_in_place_and_no_local_path() {
    let home = Home::new();
    let key = "0x7e57ab1e7e57ab1e";
    let options =
        ["--pm", "--standby", "1", "--metrics", "--m-key", key, "--sm-key", key, "--ibsim-socket", "x"];
    let bundle = plan(&home, &options);
    let secret = |path: &Path| path.starts_with(bundle.join("identities")) || path == bundle.join("ca.key");
    let number = u64::from_str_radix(&key[2..], 16).unwrap();
    let mut secrets = 0;
    for path in files(&bundle) {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        assert_eq!(mode(path.parent().unwrap()), 0o700, "{}", path.display());
        let content = std::fs::read_to_string(&path).unwrap();
        let token = std::fs::read_to_string(bundle.join("identities/http.token")).unwrap();
        let secrets_of = ["PRIVATE KEY", &number.to_string(), key, token.trim()];
        let holds = secrets_of.iter().any(|secret| content.contains(*secret));
        assert_eq!(holds, secret(&path), "{}", path.display());
        secrets += u32::from(holds);
        let here = home.base().parent().unwrap().to_owned();
        assert!(!content.contains(text(&here)), "{} names a path of this machine", path.display());
    }
    // 8 agents, two subnet managers, the performance manager, hub, operator and viewer; the keys, the authority's and the token of HTTP.
    assert_eq!(secrets, 8 + 2 + 1 + 3 + 1 + 1 + 1);
    let agent: Value =
        serde_json::from_slice(&std::fs::read(bundle.join("agents/a0003.json")).unwrap()).unwrap();
    assert_eq!(agent["devices"].as_array().unwrap().len(), 1);
    assert!(home.is_empty(), "`plan` started something");
}

/// Where physical functions hand notices on, all hosts run from the start; else the first flow begins them.
#[test]
fn hosts_of_a_bundle_subscribe_as_they_are_told() {
    for (notices, from_start) in [("server", true), ("none", false), ("repath", false)] {
        let home = Home::new();
        let bundle = plan(&home, &["--vfs", "1", "--notices", notices]);
        let part = std::fs::read(bundle.join("agents/a0000.json")).unwrap();
        let part: Value = serde_json::from_slice(&part).unwrap();
        assert_eq!(part["later_hosts"]["notices"], notices, "{part}");
        assert_eq!(part["hosts"]["notices"], if from_start { notices.into() } else { Value::Null }, "{part}");
    }
}

#[test]
fn a_lab_starts_from_a_bundle_and_agents_restart_from_it() {
    let home = Home::new();
    let bundle = plan(&home, &["--lab", "planned", "--pack", "leaf"]);
    let record: Value = serde_json::from_slice(&std::fs::read(bundle.join("lab.json")).unwrap()).unwrap();
    let kept = home.base().with_file_name("guid2lid");
    home.weft(&["up", "--bundle", text(&bundle), "--guid2lid", text(&kept)]).succeeds();
    std::fs::remove_dir_all(&bundle).unwrap();
    assert!(!home.lab("planned").join("ca.key").exists(), "no process needs the authority's key");
    assert!(kept.exists(), "LIDs are kept where `up` was told");
    let processes = home.json(&["ps", "--json"]);
    for (planned, runs) in
        record["agents"].as_array().unwrap().iter().zip(processes.as_array().unwrap().iter().skip(1))
    {
        assert_eq!((&planned["name"], &planned["address"]), (&runs["process"], &runs["address"]));
    }
    assert_eq!(record["agents"].as_array().unwrap().len(), 4, "a switch and its hosts are one agent");
    home.weft(&["check"]).succeeds();
    home.weft(&["fault", "restart", "host-0"]).succeeds();
    home.weft(&["fault", "restart", "sm"]).succeeds();
    home.weft(&["check"]).succeeds();
    home.weft(&["down"]).succeeds();
    assert!(home.is_empty());
}

#[test]
fn a_bundle_is_for_one_laboratory_on_one_machine() {
    let home = Home::new();
    let bundle = plan(&home, &["--lab", "one"]);
    home.weft(&["up", "--bundle", text(&bundle), "--lab", "two"]).fails(2, "the laboratory `one`, not `two`");
    home.weft(&["up", "--bundle", text(&bundle), "--no-sm"]).fails(2, "cannot be used with");
    let file = home.small_tree();
    home.weft(&["plan", text(&file), "--out", text(&bundle)]).fails(1, "is there already");
    let far = home.base().with_file_name("far");
    home.weft(&["plan", text(&file), "--out", text(&far), "--hosts", "far-a,far-b"]).succeeds();
    home.weft(&["up", "--bundle", text(&far)]).fails(2, "run on other hosts, such as far-a");
    let part: Value = serde_json::from_slice(&std::fs::read(far.join("agents/a0000.json")).unwrap()).unwrap();
    assert_eq!(part["bind"], "0.0.0.0:20000");
    let named = home.base().with_file_name("x");
    home.weft(&["plan", text(&file), "--out", text(&named), "--hosts", "{}.weft", "--metrics"])
        .fails(2, "leave out --metrics");
    assert!(home.is_empty());
}

#[test]
fn peers_are_found_by_name() {
    let home = Home::new();
    let first = planned_port();
    let bundle = plan(&home, &["--hosts", "localhost", "--udp-port", &first]);
    let part = std::fs::read_to_string(bundle.join("agents/a0000.json")).unwrap();
    assert!(part.contains("\"remote_addr\":\"localhost:"), "{part}");
    home.weft(&["up", "--bundle", text(&bundle)]).succeeds();
    home.weft(&["check"]).succeeds();
}

/// A process as a container starts it: no hub, and a run folder that is not there yet.
fn alone(home: &Home, bundle: &Path, name: &str, more: &[&str]) -> Command {
    let run = home.base().with_file_name("run");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(["agent", "--bundle", text(bundle), "--as", name, "--run", text(&run)]).args(more);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// What a process that must not start says.
#[track_caller]
fn refusal(mut command: Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{said}");
    said
}

#[test]
fn an_agent_starts_without_a_hub_and_makes_its_run_folder() {
    let home = Home::new();
    let bundle = plan(&home, &[]);
    let mut agent = alone(&home, &bundle, "a0000", &[]).spawn().unwrap();
    let socket = home.base().with_file_name("run").join("sockets/a0000");
    let deadline = Instant::now() + Duration::from_secs(20);
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        assert!(
            Instant::now() < deadline && agent.try_wait().unwrap().is_none(),
            "the agent does not listen"
        );
        std::thread::yield_now();
    }
    common::signal(agent.id(), rustix::process::Signal::TERM);
    assert!(agent.wait().unwrap().success());
    assert_eq!(mode(&home.base().with_file_name("run")), 0o700);
}

#[test]
fn an_identity_that_is_of_no_use_is_named() {
    let home = Home::new();
    let bundle = plan(&home, &[]);
    let identity = bundle.join("identities/a0000.pem");
    let other = alone(&home, &bundle, "a0000", &["--identity", text(&bundle.join("identities/a0001.pem"))]);
    let said = refusal(other);
    assert!(said.contains("a0001.pem is another process's"), "{said}");
    let none = refusal(alone(&home, &bundle, "a0000", &["--identity", "/nowhere/x.pem"]));
    assert!(none.contains("cannot read the identity /nowhere/x.pem") && none.contains("hint: "), "{none}");
    // By the clock of its own machine: two days behind, and more than a year ahead. An hour is not too much.
    for (offset, says) in
        [("-48h", "is this machine's clock right?"), ("+9600h", "the certificate expired on 2")]
    {
        let mut agent = alone(&home, &bundle, "a0000", &[]);
        agent.env(weft_process::CLOCK_OFFSET, offset);
        let said = refusal(agent);
        assert!(said.contains(says), "{offset}: {said}");
    }
    // Expired yesterday.
    let read = |name: &str| std::fs::read_to_string(bundle.join(name)).unwrap();
    let authority = weft_link::Authority::load("default", &read("ca.pem"), &read("ca.key"));
    let part: Value = serde_json::from_str(&read("agents/a0000.json")).unwrap();
    let guid = weft_wire::Guid(part["devices"][0]["guid"].as_u64().unwrap());
    let now = weft_link::Validity::days(0);
    let past = weft_link::Validity { from: now.from - Duration::from_secs(86_400), until: now.from };
    std::fs::write(&identity, authority.valid(past).issue(&[guid]).unwrap().pem()).unwrap();
    let said = refusal(alone(&home, &bundle, "a0000", &[]));
    assert!(
        said.contains("a0000.pem is of no use: the certificate expired on 2")
            && said.contains("identity renew"),
        "{said}"
    );
    home.weft(&["up", "--bundle", text(&bundle)]).fails(1, "the certificate expired on 2");
    assert!(home.is_empty());
    // Another is issued, and then it starts.
    home.weft(&["identity", "renew", "a0000", "--in", text(&bundle)]).succeeds();
    assert_eq!(mode(&identity), 0o600);
    home.weft(&["up", "--bundle", text(&bundle), "--json"]).succeeds();
    home.weft(&["identity", "renew", "a9999", "--in", text(&bundle)])
        .fails(2, "hint: `weft identity ls` lists them");
}

#[test]
fn an_identity_that_cannot_be_read_is_named_with_the_user() {
    let home = Home::new();
    let bundle = plan(&home, &[]);
    let identity = bundle.join("identities/a0000.pem");
    let own = rustix::process::geteuid().as_raw();
    // Root reads everything, so it starts the agent as somebody else, who may read all but the identity.
    let user = if own == 0 { 65_532 } else { own };
    let mut agent = alone(&home, &bundle, "a0000", &[]);
    if own == 0 {
        agent.uid(user);
        for folder in
            [home.base().parent().unwrap(), &bundle, &bundle.join("agents"), &bundle.join("identities")]
        {
            std::fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        }
        std::fs::set_permissions(bundle.join("agents/a0000.json"), Permissions::from_mode(0o644)).unwrap();
    } else {
        std::fs::set_permissions(&identity, Permissions::from_mode(0o000)).unwrap();
    }
    let said = refusal(agent);
    let expected = format!("user {user} cannot read the identity {}: Permission denied", identity.display());
    assert!(said.contains(&expected) && said.contains(&format!("chown {user}")), "{said}");
}

#[test]
fn a_part_that_was_tampered_with_is_named_in_one_line() {
    let home = Home::new();
    let bundle = plan(&home, &["--pm"]);
    for (part, error) in
        [("agents/a0003.json", "a0003"), ("managers/sm.json", "sm"), ("managers/pm.json", "pm")]
    {
        let path = bundle.join(part);
        let whole = std::fs::read(&path).unwrap();
        let changes: [&[u8]; 3] = [b"{", &whole[..whole.len() / 2], b"{\"secret\": 1}"];
        for change in changes {
            std::fs::write(&path, change).unwrap();
            let done = home.weft(&["up", "--bundle", text(&bundle)]);
            done.fails(1, &format!("{part} is invalid"));
            let errors = done.stderr.lines().filter(|line| line.starts_with("error:")).count();
            assert!(errors == 1 && done.stderr.contains(error), "{}", done.stderr);
            assert!(home.is_empty());
        }
        std::fs::write(&path, whole).unwrap();
    }
    std::fs::write(bundle.join("lab.json"), "[]").unwrap();
    home.weft(&["up", "--bundle", text(&bundle)]).fails(2, "lab.json is invalid").fails(2, "hint: ");
    assert!(home.is_empty());
}

#[test]
fn a_truncated_foreign_or_newer_bundle_is_refused_unchanged() {
    let home = Home::new();
    let (bundle, other) = (plan(&home, &[]), home.base().with_file_name("other"));
    let tree = home.small_tree();
    home.weft(&["plan", text(&tree), "--out", text(&other)]).succeeds();
    let record = std::fs::read_to_string(bundle.join("lab.json")).unwrap();
    let newer = record.replacen(env!("CARGO_PKG_VERSION"), "77.0.0", 1);
    // A newer record may have fields that this version does not know, and lack others.
    let strange = "{\"version\": \"77.0.0\", \"lab\": \"default\", \"planets\": []}".to_owned();
    for (text_of, code, says) in [
        (record[..record.len() / 2].to_owned(), 2, "lab.json is invalid"),
        (newer, 1, "planned by weft 77.0.0"),
        (strange, 1, "hint: install weft 77.0.0 here"),
    ] {
        std::fs::write(bundle.join("lab.json"), &text_of).unwrap();
        let run = home.base().with_file_name("run");
        for verb in
            [&["up", "--bundle", text(&bundle)][..], &["hub", "--bundle", text(&bundle), "--run", text(&run)]]
        {
            let done = home.weft(verb);
            done.fails(code, says).fails(code, "hint: ");
            assert_eq!(done.stderr.lines().filter(|line| line.starts_with("error: ")).count(), 1);
        }
        assert_eq!(std::fs::read_to_string(bundle.join("lab.json")).unwrap(), text_of, "it stays as it is");
    }
    std::fs::write(bundle.join("lab.json"), &record).unwrap();
    // An identity of another authority.
    let identity = bundle.join("identities/a0000.pem");
    let own = std::fs::read(&identity).unwrap();
    std::fs::copy(other.join("identities/a0000.pem"), &identity).unwrap();
    home.weft(&["up", "--bundle", text(&bundle)])
        .fails(1, "a0000.pem is of no use")
        .fails(1, "identity renew");
    assert!(home.is_empty());
    std::fs::write(&identity, own).unwrap();
    home.weft(&["up", "--bundle", text(&bundle)]).succeeds();
}

/// A script that runs with a mount namespace of its own: `$0` is weft.
fn unshared(home: &Home, script: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, env!("CARGO_BIN_EXE_weft")]).args(arguments);
    command.env("WEFT_HOME", home.base()).env("NO_COLOR", "1").output().unwrap()
}

/// A name that leads nowhere is tried again. Of several addresses all are tried, and others are found after a change. Agents listen
/// at one address each, so that it matters which one is dialled.
#[test]
fn a_name_may_have_no_address_several_or_others_later() {
    let home = Home::new();
    let first = planned_port();
    let bundle = plan(&home, &["--hosts", "fabric.weft", "--udp-port", &first, "--no-sm"]);
    for entry in std::fs::read_dir(bundle.join("agents")).unwrap() {
        let path = entry.unwrap().path();
        let part = std::fs::read_to_string(&path).unwrap();
        assert!(part.contains("\"bind\":\"0.0.0.0:"), "{part}");
        std::fs::write(&path, part.replace("\"bind\":\"0.0.0.0:", "\"bind\":\"127.0.0.2:")).unwrap();
    }
    // Only processes that are started in the namespace see this file. It is mounted, so it is changed in place.
    let hosts = home.write("hosts", "127.0.0.1 localhost\n");
    let script = "mount --bind \"$1\" /etc/hosts && \
                  \"$0\" up --part fabric.weft \"$2\" --keep --patience 2 --restart on-failure";
    let output = unshared(&home, script, &[text(&hosts), text(&bundle)]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && home.lab("default").exists(), "{said}");
    let states = || {
        let links = home.json(&["links", "--json"]);
        let states = links.as_array().unwrap().iter().map(|link| link["state"].as_str().unwrap().to_owned());
        states.collect::<Vec<_>>()
    };
    assert!(states().iter().all(|state| state == "Down"), "{:?}", states());
    let all_up = || states().iter().all(|state| state == "Initialize");
    std::fs::write(&hosts, "127.0.0.1 localhost fabric.weft\n127.0.0.2 fabric.weft\n").unwrap();
    wait_until("the links are up by the second of two addresses", all_up);

    let part = home.lab("default").join("agents/a0000.json");
    let moved =
        std::fs::read_to_string(&part).unwrap().replace("\"bind\":\"127.0.0.2:", "\"bind\":\"127.0.0.3:");
    std::fs::write(&part, moved).unwrap();
    std::fs::write(&hosts, "127.0.0.1 localhost\n127.0.0.3 fabric.weft\n127.0.0.2 fabric.weft\n").unwrap();
    let pid = || home.processes().into_iter().find(|(name, _)| name == "a0000").map_or(0, |(_, pid)| pid);
    let before = pid();
    common::signal(before, rustix::process::Signal::KILL);
    wait_until("the hub has started it again", || ![0, before].contains(&pid()));
    wait_until("the links are up at another address", all_up);
    home.weft(&["down"]).succeeds();
}

/// Killed at any moment, `plan` leaves nothing or a whole bundle, and the next one clears away what it wrote beside.
#[test]
fn a_killed_plan_leaves_nothing_or_a_whole_bundle() {
    let home = Home::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topologies/psmn-x5.topo");
    let folder = home.base().with_file_name("plans");
    std::fs::create_dir(&folder).unwrap();
    let out = folder.join("bundle");
    let arguments = ["plan", text(&file), "--out", text(&out)];
    let begun = Instant::now();
    home.weft(&arguments).succeeds();
    let took = begun.elapsed();
    let whole = files(&out).len();
    std::fs::remove_dir_all(&out).unwrap();
    let seed = std::env::var("WEFT_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(u64::from(std::process::id()));
    let mut random = weft_machine::Random::new(seed);
    let (mut none, mut some) = (0, 0);
    for _ in 0..30 {
        let mut plan = home.command(&arguments).stderr(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + took.mul_f64((random.draw() % 1300) as f64 / 1000.0);
        while Instant::now() < until && plan.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        plan.kill().unwrap();
        plan.wait().unwrap();
        match out.exists() {
            true => {
                assert_eq!(files(&out).len(), whole, "half a bundle, seed {seed}");
                std::fs::remove_dir_all(&out).unwrap();
                some += 1;
            }
            false => none += 1,
        }
    }
    assert!(none > 0, "no plan was killed before its end, seed {seed}: {some}");
    home.weft(&arguments).succeeds();
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["bundle"], "seed {seed}");
}

/// Whether this user may mount a small file system in namespaces of its own.
fn can_mount() -> bool {
    let probe = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).output();
    probe.is_ok_and(|output| output.status.success())
}

#[test]
fn a_full_disk_is_told_and_nothing_is_left() {
    if !can_mount() {
        eprintln!("no file systems can be mounted here: nothing is tested");
        return;
    }
    let home = Home::new();
    let file = home.small_tree();
    let (said, left) = on_a_full_disk(&home, 0, &["plan", text(&file), "--out", "/mnt/bundle"]);
    assert!(said.contains("code 1") && said.contains("No space left on device"), "{said}");
    assert!(said.contains("error: cannot write /mnt/") && said.contains("hint: make room"), "{said}");
    assert_eq!(left, "", "something was left");
    let large = ["topo", "gen", "xgft", "--children", "18,18", "--parents", "1,9", "-o", "/mnt/tree.topo"];
    let (said, left) = on_a_full_disk(&home, 0, &large);
    assert!(said.contains("error: cannot write /mnt/tree.topo: No space left on device"), "{said}");
    assert_eq!(left, "", "something was left");
    home.weft(&["up", text(&file), "--metrics"]).succeeds();
    let (said, left) = on_a_full_disk(&home, DISK_BYTES, &["metrics", "-o", "/mnt/prometheus.yml"]);
    assert!(said.contains("error: cannot write /mnt/prometheus.yml: No space left on device"), "{said}");
    assert_eq!(left, "", "something was left");
    home.weft(&["down"]).succeeds();
}

const DISK_BYTES: usize = 40 << 10;

/// Runs a verb with a disk of 40 KiB at /mnt, `used` bytes of which are taken; returns what it says and what is on the
/// disk then.
fn on_a_full_disk(home: &Home, used: usize, verb: &[&str]) -> (String, String) {
    let script = format!(
        "mount -t tmpfs -o size={DISK_BYTES} tmpfs /mnt && head -c {used} /dev/zero >/mnt/used && \
         \"$0\" \"$@\"; echo \"code $?\" >&2; rm /mnt/used; ls -A /mnt"
    );
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", &script, env!("CARGO_BIN_EXE_weft")])
        .args(verb)
        .env("WEFT_HOME", home.base())
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let read = |bytes| String::from_utf8(bytes).unwrap();
    (read(output.stderr), read(output.stdout))
}
