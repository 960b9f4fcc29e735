//! Queues for each output behind one input buffer, where the crossbar has them.
//!
//! A buffer holds few packets at once, so it has few such queues at once: one is taken when its first packet comes and
//! given back when its last one goes. A device with many ports needs no more of them than it holds packets.

use super::DataPath;
use super::buffer::{NIL, Queue};

/// Which queue each buffer has for each output, and which queues are free.
#[derive(Debug)]
pub(super) struct VirtualQueues {
    /// By buffer and output; NIL where there is none.
    at: Box<[u32]>,
    /// Outputs.
    width: usize,
    free: u32,
}

impl VirtualQueues {
    pub(super) fn new(buffers: usize, outputs: usize) -> Self {
        Self { at: vec![NIL; buffers * outputs].into(), width: outputs, free: NIL }
    }
}

impl DataPath {
    /// The queue of a buffer for an output, which becomes one if it is none yet. The device's own packets, which take no
    /// buffer, stay in their FIFO.
    #[inline(always)]
    pub(super) fn queue_for(&mut self, buffer: usize, output: u8) -> usize {
        let (input, _) = self.place_of(buffer as u16);
        let Some(virtual_queues) = self.virtual_queues.as_mut().filter(|_| input != 0) else { return buffer };
        let found = &mut virtual_queues.at[buffer * virtual_queues.width + usize::from(output)];
        if *found != NIL {
            return *found as usize;
        }
        let at = virtual_queues.free;
        if let Some(queue) = self.queues.get_mut(at as usize) {
            virtual_queues.free = queue.next;
            (queue.home, queue.input, queue.output) = (buffer as u16, input, output);
            *found = at;
            return at as usize;
        }
        let at = self.queues.len();
        *found = at as u32;
        self.queues.push(Queue { home: buffer as u16, input, output, ..Queue::new() });
        at
    }

    /// Takes the head off a queue; a queue for one output that is empty then is given back.
    #[inline(always)]
    pub(super) fn pop_queue(&mut self, queue: u32) -> Option<u32> {
        let from = &mut self.queues[queue as usize];
        let place = from.pop(&self.pool)?;
        if from.head == NIL
            && let Some(virtual_queues) = &mut self.virtual_queues
            && from.input != 0
        {
            let at = usize::from(from.home) * virtual_queues.width + usize::from(from.output);
            virtual_queues.at[at] = NIL;
            from.next = std::mem::replace(&mut virtual_queues.free, queue);
        }
        Some(place)
    }

    /// The queues that hold packets of a buffer.
    pub(super) fn queues_of(&self, buffer: usize) -> impl Iterator<Item = u32> {
        let own = self.virtual_queues.as_ref().map(|all| &all.at[buffer * all.width..][..all.width]);
        let own = own.into_iter().flatten().copied().filter(|&at| at != NIL);
        std::iter::once(buffer as u32).chain(own)
    }
}
