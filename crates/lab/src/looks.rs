//! Waiting for what no event tells of.

use std::time::{Duration, Instant};

/// Looks again and again, with pauses, until something is so or there is no patience left; whether it is so.
pub fn until(patience: Duration, pause: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::park_timeout(pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_once_at_least_and_no_more_when_it_has_found() {
        let mut looks = 0;
        let found = |looks: &mut u32, at: u32| {
            *looks += 1;
            *looks == at
        };
        assert!(!until(Duration::ZERO, Duration::ZERO, || found(&mut looks, 2)));
        assert!(until(Duration::from_secs(60), Duration::ZERO, || found(&mut looks, 3)));
        assert_eq!(looks, 3);
    }
}
