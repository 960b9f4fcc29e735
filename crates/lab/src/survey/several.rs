//! Work on many things, several at a time, with reports of its progress.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// How often `found` hears at least.
const TELL: Duration = Duration::from_millis(200);

/// Works on `items` in at most `width` threads. `found` gets what came of each, in no order, and nothing now and then while
/// none is done; its error ends the work.
pub fn several<T: Sync, R: Send>(
    width: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    mut found: impl FnMut(Option<R>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::sync_channel(2 * width);
    let serve = |send: mpsc::SyncSender<R>| {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if send.send(work(item)).is_err() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..width.min(items.len()) {
            let send = send.clone();
            scope.spawn(|| serve(send));
        }
        drop(send); // So that the end of all threads is seen.
        let receive = receive; // Dropped with the scope's body, which ends threads that have something to give.
        loop {
            match receive.recv_timeout(TELL) {
                Ok(done) => found(Some(done))?,
                Err(mpsc::RecvTimeoutError::Timeout) => found(None)?,
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_done_once_and_an_error_ends_the_work() {
        let items: Vec<u32> = (0..1000).collect();
        let mut squares = Vec::new();
        several(
            4,
            &items,
            |item| item * item,
            |done| {
                squares.extend(done);
                Ok(())
            },
        )
        .unwrap();
        squares.sort_unstable();
        assert_eq!(squares, items.iter().map(|item| item * item).collect::<Vec<_>>());
        let worked = AtomicUsize::new(0);
        let stopped = several(
            4,
            &items,
            |_| worked.fetch_add(1, Ordering::Relaxed),
            |done| if done.is_some() { anyhow::bail!("enough") } else { Ok(()) },
        );
        assert!(stopped.is_err() && worked.load(Ordering::Relaxed) < 100);
    }
}
