//! What one node is fed, written down in the format of an agent's recording.

use weft_machine::Time;
use weft_node::recording::Recorder;
use weft_node::{Input, NodeOptions, Output};
use weft_topology::NodeIndex;

use super::Simulation;

/// The recordings of one node: one for each time that it is switched on.
#[derive(Debug)]
pub(super) struct Recordings {
    node: NodeIndex,
    name: String,
    recorder: Option<Recorder>,
    ended: Vec<Vec<u8>>,
}

impl Recordings {
    pub(super) fn of(node: NodeIndex, name: &str) -> Self {
        Self { node, name: name.to_owned(), recorder: None, ended: Vec::new() }
    }

    fn of_node(&mut self, node: NodeIndex) -> Option<&mut Recorder> {
        self.recorder.as_mut().filter(|_| node == self.node)
    }

    pub(super) fn begin(&mut self, node: NodeIndex, options: NodeOptions) {
        if node == self.node {
            self.recorder = Some(Recorder::new(&self.name, options));
        }
    }

    pub(super) fn end(&mut self, node: NodeIndex) {
        if node == self.node
            && let Some(mut recorder) = self.recorder.take()
        {
            recorder.end();
            self.ended.push(recorder.take());
        }
    }

    pub(super) fn woken(&mut self, node: NodeIndex, now: Time) {
        self.of_node(node).into_iter().for_each(|recorder| recorder.woken(now));
    }
}

impl Simulation {
    /// Writes down what a node is fed now.
    #[cold]
    pub(super) fn fed(&mut self, node: NodeIndex, input: &Input) {
        if let Some(recorder) = self.recordings.as_mut().and_then(|recordings| recordings.of_node(node)) {
            recorder.fed(self.now, input);
        }
    }

    /// Writes down what a node says.
    #[cold]
    pub(super) fn said(&mut self, node: NodeIndex, output: &Output) {
        if let Some(recorder) = self.recordings.as_mut().and_then(|recordings| recordings.of_node(node)) {
            recorder.said(output);
        }
    }

    /// The recordings of the node that [`SimOptions::record`](crate::SimOptions::record) names, one for each time that it was
    /// switched on; the last one ends now. `weft_node::recording` replays them.
    pub fn into_recordings(mut self) -> Vec<Vec<u8>> {
        let Some(mut recordings) = self.recordings.take() else { return Vec::new() };
        recordings.end(recordings.node);
        recordings.ended
    }
}
