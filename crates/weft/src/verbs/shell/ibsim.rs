//! What programs under ibsim's stock library are told of their server.

use std::ffi::OsString;

use weft_topology::NodeIndex;

use super::super::Lab;
use crate::failure::Failure;

/// Where ibsim listens when nothing else is said.
const UDP_PORT: u16 = 7070;

/// A server of ibsim's client protocol.
#[derive(Debug, PartialEq, Eq)]
enum Server {
    /// Abstract Unix sockets of this name.
    Local(String),
    /// UDP: the control port of a machine.
    Remote(String, u16),
}

/// The environment of programs at a node: which server, named or the laboratory's own, and who they are there.
pub(super) fn environment(
    lab: &Lab,
    node: NodeIndex,
    name: Option<&str>,
) -> Result<Vec<(&'static str, OsString)>, Failure> {
    let server = name.map_or_else(|| own(lab), parse)?;
    let host = ("SIM_HOST", OsString::from(&lab.fabric.node(node).id));
    Ok(match server {
        Server::Local(name) => vec![host, ("IBSIM_SOCKNAME", name.into())],
        Server::Remote(address, port) => {
            vec![host, ("IBSIM_SERVER_NAME", address.into()), ("IBSIM_SERVER_PORT", port.to_string().into())]
        }
    })
}

/// `NAME`, or `udp:ADDRESS[:PORT]`.
fn parse(name: &str) -> Result<Server, Failure> {
    let Some(place) = name.strip_prefix("udp:") else {
        return match name {
            "" => Err(Failure::bad_input("an ibsim server has a name")),
            name => Ok(Server::Local(name.to_owned())),
        };
    };
    let (address, port) = match place.rsplit_once(':') {
        Some((address, port)) => (address, port.parse().ok()),
        None => (place, Some(UDP_PORT)),
    };
    match port {
        Some(port) if !address.is_empty() => Ok(Server::Remote(address.to_owned(), port)),
        _ => Err(Failure::bad_input(format!("`{name}` is not udp:ADDRESS:PORT"))),
    }
}

/// The laboratory's own server.
fn own(lab: &Lab) -> Result<Server, Failure> {
    Err(Failure::new(format!("the laboratory `{}` has no ibsim server", lab.folder.name()))
        .hint("name one that runs, as in `weft shell --ibsim=NAME`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_as_its_clients_name_it() {
        let remote = |address: &str, port| Server::Remote(address.to_owned(), port);
        assert_eq!(parse("mine").unwrap(), Server::Local("mine".to_owned()));
        assert_eq!(parse("udp:10.0.0.1:99").unwrap(), remote("10.0.0.1", 99));
        assert_eq!(parse("udp:there").unwrap(), remote("there", UDP_PORT));
        for wrong in ["", "udp:", "udp::7", "udp:x:y", "udp:x:70000"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
