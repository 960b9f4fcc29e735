//! Bounded lists of what happened.

use std::ops::Deref;

/// The last of what happened, in order, `MOST` entries or fewer: when there is one more, the older half goes. An entry keeps
/// its number then.
#[derive(Debug)]
pub struct Kept<T, const MOST: usize> {
    items: Vec<T>,
    /// Entries that are not kept any more.
    gone: usize,
}

impl<T, const MOST: usize> Default for Kept<T, MOST> {
    fn default() -> Self {
        Self { items: Vec::new(), gone: 0 }
    }
}

impl<T, const MOST: usize> Kept<T, MOST> {
    pub(crate) fn push(&mut self, item: T) {
        if self.items.len() == MOST {
            self.items.drain(..MOST / 2);
            self.gone += MOST / 2;
        }
        self.items.push(item);
    }

    /// How many there have been.
    pub fn count(&self) -> usize {
        self.gone + self.items.len()
    }

    /// Those since there were `count`, as far as they are kept.
    pub fn since(&self, count: usize) -> &[T] {
        self.items.get(count.saturating_sub(self.gone)..).unwrap_or_default()
    }
}

impl<T, const MOST: usize> Deref for Kept<T, MOST> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_numbers() {
        let mut kept = Kept::<_, 4>::default();
        let mut seen = 0;
        let mut heard = Vec::new();
        for number in 0..50 {
            kept.push(number);
            if number % 3 == 0 {
                heard.extend_from_slice(kept.since(seen));
                seen = kept.count();
            }
            assert!(kept.len() <= 4 && kept.last() == Some(&number));
        }
        assert_eq!(heard, (0..49).collect::<Vec<_>>());
        // A listener that comes late misses the entries that have gone; a number that was never reached is no error.
        assert_eq!((kept.since(0), kept.since(51)), (&[46, 47, 48, 49][..], &[][..]));
        assert_eq!(kept.count(), 50);
    }
}
