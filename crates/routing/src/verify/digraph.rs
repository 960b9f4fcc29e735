//! A directed graph, searched for cycles.

/// A graph of nodes that are numbered from 0.
pub(crate) trait Digraph: Sync {
    fn len(&self) -> usize;
    /// Tells every node that `node` leads to, in order.
    fn for_each(&self, node: u32, tell: impl FnMut(u32));
}
