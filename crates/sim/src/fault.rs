use weft_topology::{NodeIndex, PortRef};

/// Something that goes wrong in a simulation, or is put right. Ports and nodes are those of the fabric.
pub type Fault = weft_fault::Fault<NodeIndex, PortRef>;
