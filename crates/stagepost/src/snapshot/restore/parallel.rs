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
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let work = || {
        loop {
            let position = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(position) else { return };
            let result = act(item);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((position, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..items.len().min(THREADS) {
            scope.spawn(work);
        }
        work();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(position, _)| *position);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        for count in [0, 1, 2, 15, 16, 17, 500] {
            let items: Vec<usize> = (0..count).collect();
            let doubled: Vec<usize> = items.iter().map(|item| item * 2).collect();
            assert_eq!(for_each(&items, |item| item * 2), doubled);
        }
    }
}
