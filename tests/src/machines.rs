//! Several machines on one: network namespaces on a bridge that has a namespace of its own, as the host drops what its own bridges forward;
//! or on a slow and lossy way in place of the bridge ([`Roughness`]).

use std::process::{Command, Stdio};

use crate::way::{Carried, Roughness, Way};
use crate::{output_of, wait_until};

/// The machine that commands are given on: it has the bridge.
pub const HERE: usize = 0;
/// Its address, behind those of the others.
const HERE_AT: u8 = 254;
/// An address that no machine has.
const ELSEWHERE: &str = "10.77.0.253";

/// Machines with addresses from 10.77.0.1 up, gone when this is dropped. They share the file system.
pub struct Machines {
    prefix: String,
    count: usize,
    /// The namespace that their cables lead to.
    between: String,
    /// In place of the bridge.
    way: Option<Way>,
}

impl Machines {
    /// Makes them.
    ///
    /// # Panics
    /// When it cannot: only root may, and `ip` has to be there.
    pub fn make(name: &str, count: usize) -> Self {
        let machines = Self::named(name, count, "0");
        let here = machines.namespace(HERE);
        ip(&["netns", "add", &here]);
        ip(&["-n", &here, "link", "set", "lo", "up"]);
        ip(&["-n", &here, "link", "add", "br0", "type", "bridge"]);
        ip(&["-n", &here, "addr", "add", &format!("{}/24", machines.address(HERE)), "dev", "br0"]);
        ip(&["-n", &here, "link", "set", "br0", "up"]);
        for machine in 1..=count {
            machines.begin(machine, &here);
            ip(&["-n", &here, "link", "set", &cable(machine), "master", "br0", "up"]);
        }
        machines
    }

    /// Makes machines with a rough way between each two of them, [`HERE`] too.
    ///
    /// # Panics
    /// When it cannot: only root may, and `ip` has to be there.
    pub fn far_apart(name: &str, count: usize, roughness: Roughness) -> Self {
        let mut machines = Self::named(name, count, "way");
        let between = machines.between.clone();
        ip(&["netns", "add", &between]);
        // The kernel is to say nothing of its own on the cables.
        let quiet = "for all in all default; do echo 1 > /proc/sys/net/ipv6/conf/$all/disable_ipv6; done";
        output_of(in_namespace(&between, "sh").args(["-c", quiet]));
        machines.way = Some(Way::begin(&between, roughness));
        let mtu = roughness.mtu.to_string();
        for machine in HERE..=count {
            machines.begin(machine, &between);
            for (namespace, end) in
                [(machines.namespace(machine), "eth0".to_owned()), (between.clone(), cable(machine))]
            {
                // Whatever is sent crosses the cable in packets of this size, and not joined together.
                ip(&["-n", &namespace, "link", "set", &end, "mtu", &mtu, "gso_max_segs", "1", "up"]);
            }
        }
        for machine in HERE..=count {
            // The way knows a machine when it has heard it. This makes it ask for an address, at least.
            wait_until("the way knows the machine", || {
                let said = format!("echo > /dev/udp/{ELSEWHERE}/9");
                let _ = machines.command(machine, "bash").args(["-c", &said]).stderr(Stdio::null()).status();
                machines.carried().known > machine
            });
        }
        machines
    }

    fn named(name: &str, count: usize, between: &str) -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "only root can make network namespaces: run this test as root"
        );
        let prefix = format!("weft-{name}-{}", std::process::id());
        Self { between: format!("{prefix}-{between}"), prefix, count, way: None }
    }

    /// Makes a machine, and a cable from it to another namespace. It is plugged in there later.
    fn begin(&self, machine: usize, to: &str) {
        let (namespace, cable) = (self.namespace(machine), cable(machine));
        ip(&["netns", "add", &namespace]);
        ip(&["-n", to, "link", "add", &cable, "type", "veth", "peer", "name", "eth0", "netns", &namespace]);
        ip(&["-n", &namespace, "addr", "add", &format!("{}/24", self.address(machine)), "dev", "eth0"]);
        ip(&["-n", &namespace, "link", "set", "lo", "up"]);
        ip(&["-n", &namespace, "link", "set", "eth0", "up"]);
    }

    /// What the rough way has carried.
    ///
    /// # Panics
    /// Where there is a bridge.
    pub fn carried(&self) -> Carried {
        self.way.as_ref().expect("the way is rough").carried()
    }

    /// A machine's address.
    pub fn address(&self, machine: usize) -> String {
        match machine {
            HERE => format!("10.77.0.{HERE_AT}"),
            machine => format!("10.77.0.{machine}"),
        }
    }

    /// The addresses of all but the one that has the bridge, from the first.
    pub fn addresses(&self) -> Vec<String> {
        (1..=self.count).map(|machine| self.address(machine)).collect()
    }

    /// A program on a machine.
    pub fn command(&self, machine: usize, program: impl AsRef<std::ffi::OsStr>) -> Command {
        in_namespace(&self.namespace(machine), program)
    }

    /// Pulls a machine's cable.
    pub fn cut(&self, machine: usize) {
        ip(&["-n", &self.between, "link", "set", &cable(machine), "down"]);
    }

    /// Plugs it in again.
    pub fn mend(&self, machine: usize) {
        ip(&["-n", &self.between, "link", "set", &cable(machine), "up"]);
    }

    fn namespace(&self, machine: usize) -> String {
        format!("{}-{machine}", self.prefix)
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        self.way = None;
        let machines = (HERE..=self.count).map(|machine| self.namespace(machine));
        for namespace in machines.chain([self.between.clone()]) {
            let _ = Command::new("ip").args(["netns", "del", &namespace]).stderr(Stdio::null()).status();
        }
    }
}

fn in_namespace(namespace: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{namespace}")).arg("--").arg(program);
    command
}

fn cable(machine: usize) -> String {
    format!("cable{machine}")
}

fn ip(arguments: &[&str]) {
    output_of(Command::new("ip").args(arguments));
}
