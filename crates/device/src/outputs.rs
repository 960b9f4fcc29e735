//! The outputs of a device that its driver has not taken yet.

use crate::Output;

/// A device's outputs, in memory that a driver of many devices can lend to each in turn
/// ([`Device::exchange_outputs`](crate::Device::exchange_outputs)), so that it stays in the processor's cache.
///
/// Bounded by what one input causes, since the driver takes them after each.
#[derive(Debug, Default)]
pub struct Outputs(Option<Box<Line>>);

/// Outputs in their order, of which the driver has gone past some.
#[derive(Debug, Default)]
struct Line {
    outputs: Vec<Output>,
    past: usize,
}

impl Line {
    #[inline]
    fn is_empty(&self) -> bool {
        self.past == self.outputs.len()
    }

    #[inline]
    fn clear_if_empty(&mut self) {
        if self.is_empty() {
            self.outputs.clear();
            self.past = 0;
        }
    }
}

impl Outputs {
    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|line| line.is_empty())
    }

    #[inline]
    pub(crate) fn push_back(&mut self, output: Output) {
        self.0.get_or_insert_default().outputs.push(output);
    }

    /// Drops the oldest ones, up to the first of which `is_taken` does not say so.
    #[inline(always)]
    pub fn drop_while(&mut self, mut is_taken: impl FnMut(&Output) -> bool) {
        let Some(line) = &mut self.0 else { return };
        while line.outputs.get(line.past).is_some_and(&mut is_taken) {
            line.past += 1;
        }
        line.clear_if_empty();
    }

    /// Takes the oldest one.
    #[inline]
    pub fn pop_front(&mut self) -> Option<Output> {
        let line = self.0.as_mut()?;
        let output = (!line.is_empty()).then(|| line.outputs.remove(line.past));
        line.clear_if_empty();
        output
    }

    pub(crate) fn extend(&mut self, outputs: impl Iterator<Item = Output>) {
        outputs.for_each(|output| self.push_back(output));
    }

    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }
}
