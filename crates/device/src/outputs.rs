//! The outputs of a device that its driver has not taken yet.

use crate::Output;

/// A device's outputs, in memory that a driver of many devices can lend to each in turn
/// ([`Device::exchange_outputs`](crate::Device::exchange_outputs)), so that it stays in the processor's cache.
///
/// Bounded by what one input causes, since the driver takes all of them after each: then their places are free.
#[derive(Debug, Default)]
pub struct Outputs(Option<Box<Line>>);

/// Outputs in their order, of which the driver has gone past some. One that it has taken leaves its place empty.
#[derive(Debug, Default)]
struct Line {
    outputs: Vec<Option<Output>>,
    past: usize,
}

const _: () = assert!(size_of::<Option<Output>>() == size_of::<Output>());

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
        self.0.get_or_insert_default().outputs.push(Some(output));
    }

    /// Drops the oldest ones, up to the first of which `is_taken` does not say so.
    #[inline(always)]
    pub fn drop_while(&mut self, mut is_taken: impl FnMut(&Output) -> bool) {
        let Some(line) = &mut self.0 else { return };
        while line.outputs.get(line.past).and_then(Option::as_ref).is_some_and(&mut is_taken) {
            line.past += 1;
        }
        line.clear_if_empty();
    }

    /// Takes the oldest one.
    #[inline]
    pub fn pop_front(&mut self) -> Option<Output> {
        let line = self.0.as_mut()?;
        let output = line.outputs.get_mut(line.past)?.take();
        line.past += 1;
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

#[cfg(test)]
mod tests {
    use weft_wire::{PortNum, ServiceLevel};

    use super::*;

    fn output(packets: u16) -> Output {
        Output::Injected { port: PortNum(1), service_level: ServiceLevel(0), packets }
    }

    fn number(output: &Output) -> u16 {
        match output {
            Output::Injected { packets, .. } => *packets,
            other => panic!("{other:?} was not put in"),
        }
    }

    #[test]
    fn outputs_come_in_their_order_however_they_are_taken() {
        let mut outputs = Outputs::default();
        assert!(outputs.is_empty() && outputs.pop_front().is_none());
        outputs.extend((1..=5).map(output));
        let mut seen = Vec::new();
        outputs.drop_while(|output| {
            seen.push(number(output));
            number(output) < 3
        });
        assert_eq!(seen, [1, 2, 3], "the one that is not taken is the last that is looked at");
        assert_eq!(outputs.pop_front().as_ref().map(number), Some(3));
        outputs.push_back(output(6));
        assert_eq!(outputs.pop_front().as_ref().map(number), Some(4));
        outputs.drop_while(|output| number(output) != 6);
        assert!(!outputs.is_empty());
        outputs.drop_while(|_| true);
        assert!(outputs.is_empty() && outputs.pop_front().is_none());
        outputs.push_back(output(7));
        assert_eq!(outputs.pop_front().as_ref().map(number), Some(7), "what was taken is forgotten");
    }
}
