//! Several machines on one: network namespaces on a bridge that has a namespace of its own, as the host drops what its own bridges forward.

use std::process::{Command, Stdio};

use crate::output_of;

/// The machine that commands are given on: it has the bridge.
pub const HERE: usize = 0;
/// Its address, behind those of the others.
const HERE_AT: u8 = 254;

/// Machines with addresses from 10.77.0.1 up, gone when this is dropped. They share the file system.
pub struct Machines {
    prefix: String,
    count: usize,
}

impl Machines {
    /// Makes them.
    ///
    /// # Panics
    /// When it cannot: only root may, and `ip` has to be there.
    pub fn make(name: &str, count: usize) -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "only root can make network namespaces: run this test as root"
        );
        let machines = Self { prefix: format!("weft-{name}-{}", std::process::id()), count };
        let here = machines.namespace(HERE);
        ip(&["netns", "add", &here]);
        ip(&["-n", &here, "link", "set", "lo", "up"]);
        ip(&["-n", &here, "link", "add", "br0", "type", "bridge"]);
        ip(&["-n", &here, "addr", "add", &format!("10.77.0.{HERE_AT}/24"), "dev", "br0"]);
        ip(&["-n", &here, "link", "set", "br0", "up"]);
        for machine in 1..=count {
            let (namespace, cable) = (machines.namespace(machine), cable(machine));
            ip(&["netns", "add", &namespace]);
            ip(&[
                "-n", &here, "link", "add", &cable, "type", "veth", "peer", "name", "eth0", "netns",
                &namespace,
            ]);
            ip(&["-n", &here, "link", "set", &cable, "master", "br0", "up"]);
            ip(&[
                "-n",
                &namespace,
                "addr",
                "add",
                &format!("{}/24", machines.address(machine)),
                "dev",
                "eth0",
            ]);
            ip(&["-n", &namespace, "link", "set", "lo", "up"]);
            ip(&["-n", &namespace, "link", "set", "eth0", "up"]);
        }
        machines
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
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace(machine))).arg("--").arg(program);
        command
    }

    /// Pulls a machine's cable.
    pub fn cut(&self, machine: usize) {
        ip(&["-n", &self.namespace(HERE), "link", "set", &cable(machine), "down"]);
    }

    /// Plugs it in again.
    pub fn mend(&self, machine: usize) {
        ip(&["-n", &self.namespace(HERE), "link", "set", &cable(machine), "up"]);
    }

    fn namespace(&self, machine: usize) -> String {
        format!("{}-{machine}", self.prefix)
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for machine in 0..=self.count {
            let namespace = self.namespace(machine);
            let _ = Command::new("ip").args(["netns", "del", &namespace]).stderr(Stdio::null()).status();
        }
    }
}

fn cable(machine: usize) -> String {
    format!("cable{machine}")
}

fn ip(arguments: &[&str]) {
    output_of(Command::new("ip").args(arguments));
}
