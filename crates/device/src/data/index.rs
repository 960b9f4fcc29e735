//! Index types of the data lanes' lists, so that a port is never taken for a lane, or a place in the pool for a
//! queue.

use std::marker::PhantomData;
use std::ops::{BitAnd, Index, IndexMut};

use weft_wire::{PortNum, VirtualLane};

/// A port's lane in lists that have an entry for each: the port's number, then the lane's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneIndex(u16);

impl LaneIndex {
    /// No lane of any port.
    pub(crate) const NONE: Self = Self(u16::MAX);

    /// The lane of a port, where ports are `1 << shift` entries apart.
    #[inline]
    pub(super) fn new(port: PortNum, lane: VirtualLane, shift: u8) -> Self {
        Self(u16::from(port.0) << shift | u16::from(lane.0))
    }

    #[inline]
    pub(super) fn port(self, shift: u8) -> PortNum {
        PortNum((self.0 >> shift) as u8)
    }

    #[inline]
    pub(super) fn lane(self, shift: u8) -> VirtualLane {
        VirtualLane((self.0 & ((1 << shift) - 1)) as u8)
    }
}

/// A queue's place in the list of queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueIndex(u32);

impl QueueIndex {
    /// No queue.
    pub(crate) const NONE: Self = Self(u32::MAX);

    #[inline]
    pub(super) fn new(position: usize) -> Self {
        Self(position as u32)
    }

    /// The buffer whose only queue this is. There is none for a queue of a host or for one output.
    #[inline]
    pub(super) fn buffer(self) -> LaneIndex {
        LaneIndex(self.0 as u16)
    }
}

impl From<LaneIndex> for QueueIndex {
    /// The queue of what comes in by a port on a lane.
    #[inline]
    fn from(buffer: LaneIndex) -> Self {
        Self(u32::from(buffer.0))
    }
}

/// A packet's place in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolIndex(u32);

impl PoolIndex {
    /// No packet.
    pub(crate) const NONE: Self = Self(u32::MAX);

    #[inline]
    pub(super) fn new(position: usize) -> Self {
        Self(position as u32)
    }

    #[inline]
    pub(super) fn position(self) -> usize {
        self.0 as usize
    }
}

/// What a list has an entry for each of.
pub(super) trait Position: Copy {
    fn position(self) -> usize;
}

impl Position for PortNum {
    #[inline]
    fn position(self) -> usize {
        usize::from(self.0)
    }
}

impl Position for LaneIndex {
    #[inline]
    fn position(self) -> usize {
        usize::from(self.0)
    }
}

impl Position for QueueIndex {
    #[inline]
    fn position(self) -> usize {
        self.0 as usize
    }
}

/// A list that only one type of index reaches into.
#[derive(Debug)]
pub(super) struct Per<I, T>(Vec<T>, PhantomData<I>);

/// A list with an entry for each port, 0 included.
pub(super) type PerPort<T> = Per<PortNum, T>;

/// A list with an entry for each lane of each port.
pub(super) type PerLane<T> = Per<LaneIndex, T>;

/// All queues: first those of what comes in, each where its port's lane is in other lists.
pub(super) type Queues<Q> = Per<QueueIndex, Q>;

impl<I: Position, T> Per<I, T> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(super) fn get(&self, at: I) -> Option<&T> {
        self.0.get(at.position())
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: I) -> Option<&mut T> {
        self.0.get_mut(at.position())
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
}

impl<I, T: Clone> Per<I, T> {
    /// The same for each of this number of ports, lanes or queues.
    pub(super) fn of(entry: T, count: usize) -> Self {
        Self(vec![entry; count], PhantomData)
    }

    pub(super) fn fill(&mut self, entry: T) {
        self.0.fill(entry);
    }
}

impl<Q> Queues<Q> {
    /// One more.
    pub(super) fn push(&mut self, queue: Q) -> QueueIndex {
        self.0.push(queue);
        QueueIndex::new(self.0.len() - 1)
    }
}

impl<I, T> Default for Per<I, T> {
    fn default() -> Self {
        Self(Vec::new(), PhantomData)
    }
}

impl<I, T> FromIterator<T> for Per<I, T> {
    fn from_iter<E: IntoIterator<Item = T>>(entries: E) -> Self {
        Self(entries.into_iter().collect(), PhantomData)
    }
}

impl<I: Position, T> Index<I> for Per<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, at: I) -> &T {
        &self.0[at.position()]
    }
}

impl<I: Position, T> IndexMut<I> for Per<I, T> {
    #[inline]
    fn index_mut(&mut self, at: I) -> &mut T {
        &mut self.0[at.position()]
    }
}

impl<Q> Index<LaneIndex> for Queues<Q> {
    type Output = Q;

    #[inline]
    fn index(&self, buffer: LaneIndex) -> &Q {
        &self.0[buffer.position()]
    }
}

impl<Q> IndexMut<LaneIndex> for Queues<Q> {
    #[inline]
    fn index_mut(&mut self, buffer: LaneIndex) -> &mut Q {
        &mut self.0[buffer.position()]
    }
}

/// Some of a port's lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaneSet(u16);

impl LaneSet {
    /// None.
    pub(crate) const EMPTY: Self = Self(0);

    /// One lane alone.
    #[inline]
    pub(crate) fn of(lane: VirtualLane) -> Self {
        Self(1 << lane.0)
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) fn contains(self, lane: VirtualLane) -> bool {
        self.0 >> lane.0 & 1 != 0
    }

    #[inline]
    pub(crate) fn insert(&mut self, lane: VirtualLane) {
        self.0 |= 1 << lane.0;
    }

    #[inline]
    pub(crate) fn remove(&mut self, lane: VirtualLane) {
        self.0 &= !(1 << lane.0);
    }

    /// The lowest lane.
    #[inline]
    pub(crate) fn first(self) -> Option<VirtualLane> {
        (self.0 != 0).then(|| VirtualLane(self.0.trailing_zeros() as u8))
    }

    /// Each of them, from the lowest up.
    #[inline]
    pub(crate) fn iter(self) -> impl Iterator<Item = VirtualLane> + use<> {
        let mut left = self;
        std::iter::from_fn(move || {
            let lane = left.first()?;
            left.0 &= left.0 - 1;
            Some(lane)
        })
    }

    /// Those above a lane.
    #[inline]
    pub(crate) fn above(self, lane: VirtualLane) -> Self {
        Self(self.0 & (u16::MAX << lane.0 << 1))
    }
}

impl BitAnd for LaneSet {
    type Output = Self;

    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl FromIterator<VirtualLane> for LaneSet {
    fn from_iter<I: IntoIterator<Item = VirtualLane>>(lanes: I) -> Self {
        lanes.into_iter().fold(Self::EMPTY, |mut set, lane| {
            set.insert(lane);
            set
        })
    }
}

/// Some of a device's ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PortSet([u64; 4]);

impl PortSet {
    #[inline]
    pub(super) fn insert(&mut self, port: PortNum) {
        self.0[usize::from(port.0 / 64)] |= 1 << (port.0 % 64);
    }

    /// Each of them, from the lowest up.
    #[inline]
    pub(super) fn each(self, mut with: impl FnMut(PortNum)) {
        for (word, mut ports) in (0_u8..).zip(self.0) {
            while ports != 0 {
                with(PortNum(64 * word + ports.trailing_zeros() as u8));
                ports &= ports - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_of_a_port_is_found_again() {
        for shift in 0..=4 {
            for (port, lane) in (0..=254).flat_map(|port| (0..1 << shift).map(move |lane| (port, lane))) {
                let index = LaneIndex::new(PortNum(port), VirtualLane(lane), shift);
                assert_eq!((index.port(shift), index.lane(shift)), (PortNum(port), VirtualLane(lane)));
                assert_ne!(index, LaneIndex::NONE);
            }
        }
    }

    #[test]
    fn sets_have_what_was_put_in() {
        let all = [0, 3, 14, 15].map(VirtualLane);
        let mut set: LaneSet = all.into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), all);
        assert_eq!(set.above(VirtualLane(3)).first(), Some(VirtualLane(14)));
        assert_eq!(set.above(VirtualLane(15)), LaneSet::EMPTY);
        set.remove(VirtualLane(0));
        assert_eq!((set.contains(VirtualLane(0)), set.contains(VirtualLane(3))), (false, true));
        assert_eq!(set & LaneSet::of(VirtualLane(3)), LaneSet::of(VirtualLane(3)));
        let (mut ports, mut found) = (PortSet::default(), Vec::new());
        [200, 0, 63, 64].into_iter().for_each(|port| ports.insert(PortNum(port)));
        ports.each(|port| found.push(port.0));
        assert_eq!(found, [0, 63, 64, 200]);
    }
}
