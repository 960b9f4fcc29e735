//! Queues for each output behind one input buffer, where the crossbar has them.
//!
//! A buffer holds few packets at once, so it has few such queues at once: one is taken when its first packet comes and
//! given back when its last one goes. A device with many ports needs no more of them than it holds packets.

use weft_wire::PortNum;

use super::DataPath;
use super::buffer::Queue;
use super::index::{LaneIndex, PoolIndex, Position as _, QueueIndex};

/// Which queue each buffer has for each output, and which queues are free.
#[derive(Debug)]
pub(super) struct VirtualQueues {
    /// By buffer and output.
    at: Box<[QueueIndex]>,
    /// Outputs.
    width: usize,
    free: QueueIndex,
}

impl VirtualQueues {
    pub(super) fn new(buffers: usize, outputs: usize) -> Self {
        let at = vec![QueueIndex::NONE; buffers * outputs].into();
        Self { at, width: outputs, free: QueueIndex::NONE }
    }

    /// A buffer's queue for an output.
    #[inline]
    fn of(&mut self, buffer: LaneIndex, output: PortNum) -> &mut QueueIndex {
        &mut self.at[buffer.position() * self.width + usize::from(output.0)]
    }
}

impl DataPath {
    /// The queue of a buffer for an output, which becomes one if it is none yet. The device's own packets, which take no
    /// buffer, stay in their FIFO.
    #[inline(always)]
    pub(super) fn queue_for(&mut self, queue: QueueIndex, output: PortNum) -> QueueIndex {
        let Some(virtual_queues) = &mut self.virtual_queues else { return queue };
        let buffer = queue.buffer();
        let input = buffer.port(self.shift);
        if input == PortNum::ZERO {
            return queue;
        }
        let found = *virtual_queues.of(buffer, output);
        if found != QueueIndex::NONE {
            return found;
        }
        let at = virtual_queues.free;
        let at = if let Some(queue) = self.queues.get_mut(at) {
            virtual_queues.free = queue.next;
            (queue.home, queue.input, queue.output) = (buffer, input, output);
            at
        } else {
            self.queues.push(Queue { home: buffer, input, output, ..Queue::new() })
        };
        *virtual_queues.of(buffer, output) = at;
        at
    }

    /// Takes the head off a queue; a queue for one output that is empty then is given back.
    #[inline(always)]
    pub(super) fn pop_queue(&mut self, queue: QueueIndex) -> Option<PoolIndex> {
        let from = &mut self.queues[queue];
        let place = from.pop(&self.pool)?;
        if from.head == PoolIndex::NONE
            && let Some(virtual_queues) = &mut self.virtual_queues
            && from.input != PortNum::ZERO
        {
            *virtual_queues.of(from.home, from.output) = QueueIndex::NONE;
            from.next = std::mem::replace(&mut virtual_queues.free, queue);
        }
        Some(place)
    }

    /// The queues that hold packets of a buffer.
    pub(super) fn queues_of(&self, buffer: LaneIndex) -> impl Iterator<Item = QueueIndex> {
        let own =
            self.virtual_queues.as_ref().map(|all| &all.at[buffer.position() * all.width..][..all.width]);
        let own = own.into_iter().flatten().copied().filter(|&at| at != QueueIndex::NONE);
        std::iter::once(buffer.into()).chain(own)
    }
}
