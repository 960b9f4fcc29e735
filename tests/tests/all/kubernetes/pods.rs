//! Processes as process 1 of their pods.

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// How long a process may take to end on a busy machine. After five seconds its pod is killed, and a namespace is gone when the last of its
/// pods is.
const ENDS_WITHIN: Duration = Duration::from_secs(4);

/// Process 1 of a container gets no signal that it does not handle, and when a namespace is deleted names go first: whoever is asked for
/// them says nothing. So each kind of process runs as process 1 of a namespace of its own where the one name server is silent.
#[test]
fn processes_end_at_once_as_process_1_where_no_name_resolves() {
    let manifests = Manifests::of("ring-4.topo", &["--pm", "--standby", "1", "--vfs", "1", "--metrics"]);
    let bundle = manifests.folder.path().join("lab");
    let started: Vec<Pod> = containers(&manifests)
        .map(|(name, container)| Pod::start(name, container, manifests.folder.path(), &bundle))
        .collect();
    let kinds: BTreeSet<&str> =
        started.iter().map(|pod| pod.name.trim_end_matches(|c: char| c.is_ascii_digit())).collect();
    assert_eq!(kinds, BTreeSet::from(["a", "hub", "pm", "sm", "sm-", "vmm"]));
    started.iter().for_each(Pod::becomes_healthy);
    for pod in started {
        pod.ends_on_sigterm();
    }
}

/// A name server that takes questions and answers none.
const SILENCE: &str = "import socket, time
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(('127.0.0.1', 53))
print(flush=True)
time.sleep(600)";

/// A process of a pod, as process 1 of its own namespace.
struct Pod {
    name: String,
    run: std::path::PathBuf,
    outside: Child,
}

impl Pod {
    fn start(name: &str, container: &Value, folder: &Path, bundle: &Path) -> Self {
        let run = folder.join("runs").join(name);
        std::fs::create_dir_all(&run).unwrap();
        std::fs::write(run.join("resolv.conf"), "nameserver 127.0.0.1\noptions timeout:5 attempts:2\n")
            .unwrap();
        let args =
            container["args"].as_array().unwrap().iter().map(|argument| match argument.as_str().unwrap() {
                "/bundle" => bundle.display().to_string(),
                "/run/weft/run" => run.join("run").display().to_string(),
                other => other.to_owned(),
            });
        let script = "ip link set lo up; mount --bind resolv.conf /etc/resolv.conf; mkfifo ready; \
                      python3 -c \"$1\" > ready & read -r _ < ready; shift; exec \"$@\"";
        let mut command = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command.args([
            "--pid",
            "--fork",
            "--kill-child",
            "--net",
            "--mount",
            "sh",
            "-ec",
            script,
            "sh",
            SILENCE,
        ]);
        command.arg(weft_program()).args(args).current_dir(&run).stdin(Stdio::null());
        let log = std::fs::File::create(run.join("log")).unwrap();
        let outside = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        Self { name: name.to_owned(), run, outside }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.run.join("log")).unwrap_or_default()
    }

    /// As its probe asks.
    fn becomes_healthy(&self) {
        let began = Instant::now();
        loop {
            let mut command = Command::new(weft_program());
            command.args(["health", "--as", &self.name, "--run"]).arg(self.run.join("run"));
            let said = command.output().unwrap();
            if said.status.success() {
                return;
            }
            let said = String::from_utf8_lossy(&said.stderr).into_owned();
            assert!(began.elapsed() < PATIENCE, "{} is not well: {said}\n{}", self.name, self.log());
        }
    }

    /// The process itself, as it is called outside.
    fn process(&self) -> Pid {
        let outside = self.outside.id();
        let children = std::fs::read_to_string(format!("/proc/{outside}/task/{outside}/children")).unwrap();
        let inside: i32 = children.trim().parse().unwrap();
        let status = std::fs::read_to_string(format!("/proc/{inside}/status")).unwrap();
        let names = status.lines().find(|line| line.starts_with("NSpid:")).unwrap();
        assert_eq!(names.split_whitespace().last(), Some("1"), "{}: {names}", self.name);
        Pid::from_raw(inside).unwrap()
    }

    fn ends_on_sigterm(mut self) {
        kill_process(self.process(), Signal::TERM).unwrap();
        let began = Instant::now();
        while self.outside.try_wait().unwrap().is_none() {
            let log = self.log();
            assert!(began.elapsed() < ENDS_WITHIN, "{} does not end:\n{log}", self.name);
            std::thread::yield_now();
        }
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        // Process 1 goes with it, and with that all others of its namespace.
        let _ = self.outside.kill();
        let _ = self.outside.wait();
    }
}
