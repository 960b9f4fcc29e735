//! Recordings of one node's inputs and outputs, in the format of an agent's recording.

use weft_machine::Time;
use weft_node::recording::Recorder;
use weft_node::{Input, NodeOptions, Output};
use weft_topology::NodeIndex;

/// The recordings of one node: one for each time that it is switched on.
#[derive(Debug)]
pub(crate) struct Recordings {
    node: NodeIndex,
    name: String,
    recorder: Option<Recorder>,
    ended: Vec<Vec<u8>>,
}

impl Recordings {
    pub(crate) fn of(node: NodeIndex, name: &str) -> Self {
        Self { node, name: name.to_owned(), recorder: None, ended: Vec::new() }
    }

    fn of_node(&mut self, node: NodeIndex) -> Option<&mut Recorder> {
        self.recorder.as_mut().filter(|_| node == self.node)
    }

    pub(crate) fn begin(&mut self, node: NodeIndex, options: NodeOptions) {
        if node == self.node {
            self.recorder = Some(Recorder::new(&self.name, options));
        }
    }

    pub(crate) fn end(&mut self, node: NodeIndex) {
        if node == self.node
            && let Some(mut recorder) = self.recorder.take()
        {
            recorder.end();
            self.ended.push(recorder.take());
        }
    }

    pub(crate) fn woken(&mut self, node: NodeIndex, now: Time) {
        self.of_node(node).into_iter().for_each(|recorder| recorder.woken(now));
    }

    /// Writes down what a node is fed now.
    #[cold]
    pub(crate) fn fed(&mut self, node: NodeIndex, now: Time, input: &Input) {
        self.of_node(node).into_iter().for_each(|recorder| recorder.fed(now, input));
    }

    /// Writes down what a node says.
    #[cold]
    pub(crate) fn said(&mut self, node: NodeIndex, output: &Output) {
        self.of_node(node).into_iter().for_each(|recorder| recorder.said(output));
    }

    /// One for each time that the node was switched on; the last one ends now.
    pub(crate) fn take(mut self) -> Vec<Vec<u8>> {
        self.end(self.node);
        self.ended
    }
}
