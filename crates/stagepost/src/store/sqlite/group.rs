//! Group commit: threads that write at the same time share one transaction.
//!
//! At any time one of the waiting threads leads. It takes all jobs that have gathered, carries them out and then
//! hands the lead to the first that came meanwhile. With one thread there is no hand-over at all, which is why
//! there is no thread of its own for it: waking one up costs a tenth of a commit.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// More jobs than this wait for the next round, so that no one waits for an endless transaction.
const MOST: usize = 256;

pub(super) struct Group<J, R> {
    queue: Mutex<Queue<J, R>>,
}

struct Queue<J, R> {
    led: bool,
    waiting: VecDeque<(J, Arc<Slot<R>>)>,
}

struct Slot<R> {
    word: Mutex<Word<R>>,
    wake: Condvar,
}

enum Word<R> {
    Wait,
    Lead,
    Done(Option<R>),
}

impl<J, R> Group<J, R> {
    pub(super) fn new() -> Self {
        Self { queue: Mutex::new(Queue { led: false, waiting: VecDeque::new() }) }
    }

    /// Has `job` carried out by `work`, here or in another thread, and returns its result; `None` if that thread
    /// was lost on the way. `work` gets one job or more and returns a result for each.
    pub(super) fn submit(&self, job: J, work: impl FnOnce(Vec<J>) -> Vec<R>) -> Option<R> {
        let slot = Arc::new(Slot { word: Mutex::new(Word::Wait), wake: Condvar::new() });
        let leads = {
            let mut queue = lock(&self.queue);
            queue.waiting.push_back((job, slot.clone()));
            !std::mem::replace(&mut queue.led, true)
        };
        if !leads && let Some(done) = slot.wait() {
            return done;
        }
        let round = self.take_round();
        let mut led = Led { group: self, slots: round.1 };
        let results = work(round.0);
        led.deliver(results);
        drop(led);
        slot.wait().flatten()
    }

    fn take_round(&self) -> (Vec<J>, Vec<Arc<Slot<R>>>) {
        let mut queue = lock(&self.queue);
        let count = queue.waiting.len().min(MOST);
        queue.waiting.drain(..count).unzip()
    }
}

impl<R> Slot<R> {
    /// Waits for the result; `None` means that this thread is to lead instead.
    fn wait(&self) -> Option<Option<R>> {
        let mut word = lock(&self.word);
        loop {
            match std::mem::replace(&mut *word, Word::Wait) {
                Word::Wait => word = self.wake.wait(word).unwrap_or_else(PoisonError::into_inner),
                Word::Lead => return None,
                Word::Done(result) => return Some(result),
            }
        }
    }

    fn say(&self, word: Word<R>) {
        *lock(&self.word) = word;
        self.wake.notify_one();
    }
}

/// The lead. Whatever happens to the leader, those it answers for are told and the lead goes on.
struct Led<'a, J, R> {
    group: &'a Group<J, R>,
    slots: Vec<Arc<Slot<R>>>,
}

impl<J, R> Led<'_, J, R> {
    fn deliver(&mut self, results: Vec<R>) {
        // A result too few is one lost: dropping the lead tells those who are left.
        let answered = self.slots.len().min(results.len());
        for (slot, result) in self.slots.drain(..answered).zip(results) {
            slot.say(Word::Done(Some(result)));
        }
    }
}

impl<J, R> Drop for Led<'_, J, R> {
    fn drop(&mut self) {
        for slot in self.slots.drain(..) {
            slot.say(Word::Done(None));
        }
        let mut queue = lock(&self.group.queue);
        match queue.waiting.front() {
            Some((_, next)) => next.say(Word::Lead),
            None => queue.led = false,
        }
    }
}

/// A thread that panicked while it held one of these locks left a value that is still whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn everyone_gets_their_own_answer_and_rounds_are_shared() {
        let (group, rounds) = (Group::<usize, usize>::new(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (group, rounds) = (&group, &rounds);
                scope.spawn(move || {
                    for number in 0..200 {
                        let job = thread * 1000 + number;
                        let answer = group.submit(job, |jobs| {
                            rounds.fetch_add(1, Ordering::Relaxed);
                            std::thread::sleep(std::time::Duration::from_micros(50));
                            jobs.into_iter().map(|job| job * 2).collect()
                        });
                        assert_eq!(answer, Some(job * 2));
                    }
                });
            }
        });
        assert!(rounds.load(Ordering::Relaxed) < 1600, "no round was shared");
    }

    #[test]
    fn a_lost_leader_does_not_take_the_others_along() {
        let group = Group::<u8, u8>::new();
        let lost = std::thread::scope(|scope| scope.spawn(|| group.submit(1, |_| panic!("lost"))).join());
        assert!(lost.is_err());
        assert_eq!(group.submit(2, |jobs| jobs), Some(2));
    }
}
