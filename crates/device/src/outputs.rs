//! The outputs of a device that its driver has not taken yet.

use std::collections::VecDeque;

use crate::Output;

/// A device's outputs, in memory that a driver of many devices can lend to each in turn
/// ([`Device::exchange_outputs`](crate::Device::exchange_outputs)), so that it stays in the processor's cache.
///
/// Bounded by what one input causes, since the driver takes them after each.
#[derive(Debug, Default)]
// One word to lend, at every packet, and not four.
#[allow(clippy::box_collection)]
pub struct Outputs(Option<Box<VecDeque<Output>>>);

impl Outputs {
    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|outputs| outputs.is_empty())
    }

    #[inline]
    pub(crate) fn push_back(&mut self, output: Output) {
        self.0.get_or_insert_default().push_back(output);
    }

    /// Drops the oldest one if `is_taken` says so. Whether there is one, and it does.
    #[inline(always)]
    pub fn pop_front_if(&mut self, is_taken: impl FnOnce(&Output) -> bool) -> bool {
        let Some(outputs) = &mut self.0 else { return false };
        outputs.front().is_some_and(is_taken) && outputs.pop_front().is_some()
    }

    /// Takes the oldest one.
    #[inline]
    pub fn pop_front(&mut self) -> Option<Output> {
        self.0.as_mut()?.pop_front()
    }

    pub(crate) fn extend(&mut self, outputs: impl Iterator<Item = Output>) {
        outputs.for_each(|output| self.push_back(output));
    }

    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }
}
