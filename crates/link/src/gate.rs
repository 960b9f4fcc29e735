//! The limit of an agent's handshakes under way at once, so that a machine that is busy is not made busier: a few at first,
//! more for as long as they end quickly, half as many when one is slow. An agent does not know how many others share its
//! machine, but all of them feel it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::oneshot;

/// At first.
const BEGIN: u32 = 16;
/// Never more: what fits into a socket's buffer of the usual size.
const MAX: u32 = 64;
/// A handshake takes half a millisecond of both ends; one that takes so long has met a long queue.
const QUICK: Duration = Duration::from_secs(1);
/// One that has not been answered by then leaves its place to others: its peer may be gone, and it is not to keep them waiting.
pub(crate) const PLACE_KEPT: Duration = Duration::from_secs(1);

/// The places for handshakes of one agent.
#[derive(Debug)]
pub(crate) struct Gate {
    limit: Cell<u32>,
    /// Handshakes that ended quickly since the limit last rose.
    quick: Cell<u32>,
    inside: Cell<u32>,
    waiting: RefCell<VecDeque<oneshot::Sender<()>>>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Pass(Rc<Gate>);

impl Gate {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            limit: Cell::new(BEGIN),
            quick: Cell::default(),
            inside: Cell::default(),
            waiting: RefCell::default(),
        })
    }

    /// Waits for a place.
    pub(crate) async fn enter(self: &Rc<Self>) -> Pass {
        while self.inside.get() >= self.limit.get() {
            let (call, called) = oneshot::channel();
            self.waiting.borrow_mut().push_back(call);
            // It cannot fail: the sender waits in this gate, which lives as long as this call.
            let _ = called.await;
        }
        self.inside.set(self.inside.get() + 1);
        Pass(self.clone())
    }

    /// A handshake has ended after so long. The limit rises by one when as many as it is have been quick.
    pub(crate) fn learn(&self, took: Duration) {
        let limit = self.limit.get();
        if took >= QUICK {
            self.quick.set(0);
            self.limit.set((limit / 2).max(1));
            return;
        }
        self.quick.set(self.quick.get() + 1);
        if self.quick.get() >= limit {
            self.quick.set(0);
            self.limit.set((limit + 1).min(MAX));
            self.call();
        }
    }

    fn call(&self) {
        let mut waiting = self.waiting.borrow_mut();
        // One who no longer waits does not need it.
        while waiting.pop_front().is_some_and(|call| call.send(()).is_err()) {}
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.inside.set(self.0.inside.get() - 1);
        self.0.call();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// What a future gives when it is polled once.
    fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    fn enter(gate: &Rc<Gate>) -> Option<Pass> {
        poll(pin!(gate.enter()))
    }

    #[test]
    fn a_place_that_is_given_back_is_for_the_next() {
        let gate = Gate::new();
        let inside: Vec<Pass> = std::iter::from_fn(|| enter(&gate)).collect();
        assert_eq!(inside.len(), 16);
        drop(inside);
        assert_eq!(std::iter::from_fn(|| enter(&gate)).collect::<Vec<_>>().len(), 16);
    }

    #[test]
    fn quick_handshakes_raise_the_limit_and_a_slow_one_halves_it() {
        let gate = Gate::new();
        let quick = |times| (0..times).for_each(|_| gate.learn(QUICK / 2));
        quick(16);
        assert_eq!(gate.limit.get(), 17);
        quick(17 + 18);
        assert_eq!(gate.limit.get(), 19);
        quick(10_000);
        assert_eq!(gate.limit.get(), MAX);
        gate.learn(QUICK * 2);
        assert_eq!(gate.limit.get(), MAX / 2);
        (0..20).for_each(|_| gate.learn(PLACE_KEPT));
        assert_eq!(gate.limit.get(), 1, "one that had to leave its place was not quick");
        quick(1);
        assert_eq!(gate.limit.get(), 2);
    }

    #[tokio::test]
    async fn waiting_handshakes_enter_in_order_and_skip_leavers() {
        let gate = Gate::new();
        (0..10).for_each(|_| gate.learn(QUICK * 2));
        let first = gate.enter().await;
        let gone = tokio::time::timeout(Duration::from_millis(1), gate.enter()).await;
        assert!(gone.is_err());
        let mut waits = pin!(gate.enter());
        assert!(poll(waits.as_mut()).is_none());
        drop(first);
        drop(waits.await);
        assert_eq!(gate.inside.get(), 0);
    }
}
