//! Two adapters and a cable.

use weft_node::{Answer, Client, PortId, Request};
use weft_wire::{NodeType, PortNum};

use crate::world::World;

/// Two adapters with a cable between them that is up, and a program at the first.
pub(crate) fn pair() -> (World, [PortId; 2], Client) {
    let mut world = World::new(4096);
    let [a, b] = [NodeType::Hca; 2].map(|kind| world.add(kind));
    world.connect((a, 1), (b, 1));
    assert_eq!(world.ask(Request::Begin).0, Ok(Answer::Done));
    let client = world.attach(a);
    (world, [a, b].map(|device| PortId::new(device, PortNum(1))), client)
}
