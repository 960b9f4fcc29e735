//! A directed route: the ports to leave by, one for each hop.

use std::fmt;
use std::str::FromStr;

use weft_wire::{HOPS_MAX, PortNum};

/// The ports by which a directed-route SMP leaves, hop after hop, from the node that it starts on; at most 63.
///
/// Written as the tools of the field write it: `0` is the node itself and `0,1,17` leaves by port 1 and then by
/// port 17. It is a plain value of 64 bytes, so that a sweep allocates nothing for its paths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectedPath {
    ports: [PortNum; HOPS_MAX],
    hops: u8,
}

weft_wire::worded! {
    /// Why a text is no directed path.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PathError {
        /// It does not begin with `0`, the node itself.
        Start => ("a directed path begins with `0`, the node that it starts on"),
        /// What stands at this place is no port number from 1 to 254.
        Port(at: usize) => ("hop {at} is no port number from 1 to 254"),
        /// More than 63 hops.
        TooLong => ("a directed path has at most {HOPS_MAX} hops"),
    }
}

impl DirectedPath {
    /// The path of no hops: the node itself.
    pub const HERE: Self = Self { ports: [PortNum(0); HOPS_MAX], hops: 0 };

    /// The path through these ports; `None` when there are more than 63.
    pub fn new(ports: &[PortNum]) -> Option<Self> {
        let mut path = Self::HERE;
        path.ports.get_mut(..ports.len())?.copy_from_slice(ports);
        path.hops = u8::try_from(ports.len()).ok()?;
        Some(path)
    }

    /// This path and one hop more; `None` when it has 63 already.
    pub fn then(&self, port: PortNum) -> Option<Self> {
        let mut path = *self;
        *path.ports.get_mut(usize::from(self.hops))? = port;
        path.hops += 1;
        Some(path)
    }

    /// The ports, in order.
    pub fn ports(&self) -> &[PortNum] {
        self.ports.get(..self.hops()).unwrap_or_default()
    }

    /// How many hops.
    pub fn hops(&self) -> usize {
        usize::from(self.hops)
    }
}

impl Default for DirectedPath {
    fn default() -> Self {
        Self::HERE
    }
}

impl fmt::Display for DirectedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0")?;
        self.ports().iter().try_for_each(|port| write!(f, ",{port}"))
    }
}

impl fmt::Debug for DirectedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for DirectedPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let mut words = text.split(',');
        if words.next() != Some("0") {
            return Err(PathError::Start);
        }
        let mut path = Self::HERE;
        for (at, word) in words.enumerate() {
            let port = word.parse().ok().filter(|port| (1..=254).contains(port));
            path = path.then(PortNum(port.ok_or(PathError::Port(at + 1))?)).ok_or(PathError::TooLong)?;
        }
        Ok(path)
    }
}

impl std::error::Error for PathError {}

weft_wire::serde_as_text!(DirectedPath);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_print_and_parse_alike() {
        for text in ["0", "0,1", "0,1,17,254"] {
            assert_eq!(text.parse::<DirectedPath>().unwrap().to_string(), text);
        }
        assert_eq!("".parse::<DirectedPath>(), Err(PathError::Start));
        assert_eq!("1,2".parse::<DirectedPath>(), Err(PathError::Start));
        assert_eq!("0,0".parse::<DirectedPath>(), Err(PathError::Port(1)));
        assert_eq!("0,3,255".parse::<DirectedPath>(), Err(PathError::Port(2)));
        assert_eq!("0,x".parse::<DirectedPath>(), Err(PathError::Port(1)));
    }

    #[test]
    fn sixty_three_hops_and_no_more() {
        let mut path = DirectedPath::HERE;
        for hop in 1..=63 {
            path = path.then(PortNum(hop)).unwrap();
            assert_eq!(path.hops(), usize::from(hop));
        }
        assert_eq!(path.then(PortNum(1)), None);
        assert_eq!(DirectedPath::new(path.ports()), Some(path));
        assert_eq!(DirectedPath::new(&[PortNum(1); 64]), None);
        assert_eq!(format!("{path},64").parse::<DirectedPath>(), Err(PathError::TooLong));
    }
}
