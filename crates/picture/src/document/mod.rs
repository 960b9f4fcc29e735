//! Documents of a view: SVG, an HTML page around it, Mermaid and DOT.

mod html;
mod legend;
mod svg;
mod text;

use std::collections::BTreeMap;

use weft_topology::{Cable, Fabric, NodeIndex, PortRef};

use crate::paint::Paint;
use crate::view::{Bundle, MarkId, View};

pub use html::html;
pub use svg::svg;
pub use text::{dot, mermaid};

/// How the parts of a picture look, besides their places.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// The title.
    pub title: String,
    /// What the colours of cables stand for, with the unit; nothing where all are plain.
    pub scale: Option<String>,
    /// What is at the scale's end, in that unit.
    pub scale_end: String,
    /// The paint of a cable, by its end in front.
    pub cables: BTreeMap<PortRef, Paint>,
    /// Words on a cable, by its end in front.
    pub notes: BTreeMap<PortRef, String>,
    /// A way through the fabric: its cables, from the first to the last.
    pub route: Vec<Cable>,
    /// What that way is, where it is not simply a route.
    pub route_words: Option<String>,
    /// Cables whose channels may wait for each other in a circle, in the order of waiting.
    pub circle: Vec<Cable>,
    /// Nodes that stand out, and why.
    pub groups: Vec<Group>,
    /// What was found, a sentence each, below the picture.
    pub words: Vec<String>,
}

/// Nodes that are outlined, each group in a way of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// What the legend says.
    pub words: String,
    /// The nodes.
    pub nodes: Vec<NodeIndex>,
}

/// The cable at a port.
pub fn cable_at(fabric: &Fabric, port: PortRef) -> Option<Cable> {
    let peer = fabric.peer(port)?;
    fabric.cables().find(|cable| [(port, peer), (peer, port)].contains(&(cable.a, cable.b)))
}

impl Look {
    /// The paint of all cables between two marks.
    fn paint(&self, bundle: &Bundle) -> Paint {
        let paints = bundle.cables.iter().filter_map(|cable| self.cables.get(&cable.a));
        paints.fold(Paint::Plain, |one, other| one.more(*other))
    }

    /// Whether a way goes over one of the cables between two marks.
    fn is_on_route(&self, bundle: &Bundle) -> bool {
        bundle.cables.iter().any(|cable| is_among(&self.route, cable))
    }

    /// Whether a circle goes over one of the cables between two marks.
    fn is_on_circle(&self, bundle: &Bundle) -> bool {
        bundle.cables.iter().any(|cable| is_among(&self.circle, cable))
    }

    /// The groups that a node is in, by their places.
    fn groups_of(&self, view: &View, mark: MarkId) -> impl Iterator<Item = usize> {
        let has = move |group: &Group| group.nodes.iter().any(|node| view.mark(*node) == mark);
        self.groups.iter().enumerate().filter(move |(_, group)| has(group)).map(|(nth, _)| nth)
    }

    /// What a viewer shows of a line when it is pointed at.
    fn words(&self, bundle: &Bundle, names: [&str; 2]) -> String {
        let [a, b] = names;
        let mut words = format!("{a} – {b}");
        if bundle.cables.len() > 1 {
            words += &format!(", {} cables", bundle.cables.len());
        }
        for note in bundle.cables.iter().filter_map(|cable| self.notes.get(&cable.a)) {
            words += "\n";
            words += note;
        }
        words
    }
}

fn is_among(cables: &[Cable], cable: &Cable) -> bool {
    cables.iter().any(|other| other.a == cable.a || other.b == cable.a)
}
