//! The same small thing done to many files at once.
//!
//! A sync, and a rename over an existing file, waits for the disk, and disks and file systems serve many waiting callers at the
//! price of one. Reading, hashing and unpacking keep a processor busy, and there is more than one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many may wait at the same time.
const THREADS: usize = 16;
/// Fewer than so many are not worth a thread of their own.
const FEW: usize = 64;

/// Does `act`, which waits for the disk, to every item and returns the results in the items' order.
pub(super) fn for_each<T: Sync, R: Send>(items: &[T], act: impl Fn(&T) -> R + Sync) -> Vec<R> {
    // Of very many, neighbours go to the same thread: they are in the same folder, where only one at a time can act.
    let share = if items.len() < THREADS * FEW { 1 } else { items.len().div_ceil(THREADS) };
    spread(items, THREADS, share, act)
}

/// Does `act`, which works, to every item and returns the results in the items' order.
pub(super) fn on_processors<T: Sync, R: Send>(items: &[T], act: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if items.len() < FEW {
        return items.iter().map(act).collect();
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    spread(items, processors, (items.len() / processors / 4).max(1), act)
}

fn spread<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    share: usize,
    act: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let threads = threads.min(items.len());
    if threads < 2 {
        return items.iter().map(act).collect();
    }
    let next = AtomicUsize::new(0);
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
        for _ in 1..threads {
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
        for count in [0, 1, 2, 15, 16, 17, 500, 1023, 1024, 2047] {
            let items: Vec<usize> = (0..count).collect();
            let doubled: Vec<usize> = items.iter().map(|item| item * 2).collect();
            assert_eq!(for_each(&items, |item| item * 2), doubled);
            assert_eq!(on_processors(&items, |item| item * 2), doubled);
        }
    }
}
