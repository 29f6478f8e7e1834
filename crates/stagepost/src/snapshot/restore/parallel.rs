//! The same small thing done to many files at once.
//!
//! Not for the processors' sake: each sync and each rename over an existing file waits for the disk, and disks and
//! file systems serve many waiting callers at the price of one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many may wait at the same time.
const THREADS: usize = 16;

/// Does `act` to every item and returns the results in the items' order.
pub(super) fn for_each<T: Sync, R: Send>(items: &[T], act: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if items.len() < 2 {
        return items.iter().map(act).collect();
    }
    // Of very many, neighbours go to the same thread: they are in the same folder, where only one at a time can act.
    let (next, share) = (AtomicUsize::new(0), (items.len() / THREADS / 8).max(1));
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let work = || {
        loop {
            let start = next.fetch_add(share, Ordering::Relaxed);
            let Some(rest) = items.get(start..).filter(|rest| !rest.is_empty()) else { return };
            let done: Vec<_> = rest.iter().take(share).map(&act).collect();
            results.lock().unwrap_or_else(PoisonError::into_inner).push((start, done));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..items.len().min(THREADS) {
            scope.spawn(work);
        }
        work();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(start, _)| *start);
    results.into_iter().flat_map(|(_, done)| done).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        for count in [0, 1, 2, 15, 16, 17, 500, 2048] {
            let items: Vec<usize> = (0..count).collect();
            let doubled: Vec<usize> = items.iter().map(|item| item * 2).collect();
            assert_eq!(for_each(&items, |item| item * 2), doubled);
        }
    }
}
