//! Group commit: threads that write at the same time share one transaction.
//!
//! At any time one of the waiting threads leads. It takes the jobs that have gathered and carries them out; then the
//! lead goes to the first that came meanwhile, while what was done is settled: the disk is waited for. So one round is
//! carried out while the one before it is settled. With one thread there is no hand-over at all, which is why there
//! is no thread of its own for it: waking one up costs a tenth of a commit. For the same reason a few of those who wait
//! stay awake for a moment, giving way to whoever has something to do.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::lock;

/// More jobs than this wait for the next round, so that no one waits for an endless transaction.
const MOST: usize = 256;

/// So many of those who wait stay awake, and for so long: a few rounds on a quick disk, a fraction of one on a slow one.
const AWAKE: usize = 8;
const PATIENCE: Duration = Duration::from_millis(1);

/// So long a leader waits, at most, for those who were told a moment ago: that is how long a few of them take to come again.
const RETURN: Duration = Duration::from_micros(200);

pub(super) struct Group<J, R> {
    queue: Mutex<Queue<J, R>>,
    /// Held while a round is settled: one at a time.
    turn: Mutex<()>,
    awake: AtomicUsize,
}

struct Queue<J, R> {
    led: bool,
    waiting: VecDeque<(J, Arc<Slot<R>>)>,
    /// How many jobs are being settled.
    settling: usize,
    /// When a round was settled last.
    settled: Option<Instant>,
    /// How many write, by what was seen lately.
    crowd: usize,
    /// A leader that waits for company, and for how much.
    gathering: Option<(usize, Arc<Slot<R>>)>,
}

struct Round<J, R> {
    jobs: Vec<J>,
    slots: Vec<Arc<Slot<R>>>,
    /// It is one job, nothing else goes on, and nobody else was there lately.
    alone: bool,
}

/// Where a thread is told how it goes on.
struct Slot<R> {
    word: Mutex<Word<R>>,
    /// There is a word.
    told: AtomicBool,
    thread: Thread,
}

enum Word<R> {
    Wait,
    Lead,
    Done(Option<R>),
}

impl<J, R> Group<J, R> {
    pub(super) fn new() -> Self {
        let queue = Queue {
            led: false,
            waiting: VecDeque::new(),
            settling: 0,
            settled: None,
            crowd: 0,
            gathering: None,
        };
        Self { queue: Mutex::new(queue), turn: Mutex::new(()), awake: AtomicUsize::new(0) }
    }

    /// Has `job` carried out by `work`, here or in another thread, and returns its result; `None` if that thread
    /// was lost on the way. `work` gets one job or more, and whether nobody else is at work; `settle` makes of what it
    /// did a result for each.
    pub(super) fn submit<W>(
        &self,
        job: J,
        work: impl FnOnce(Vec<J>, bool) -> W,
        settle: impl FnOnce(W) -> Vec<R>,
    ) -> Option<R> {
        let slot = Arc::new(Slot {
            word: Mutex::new(Word::Wait),
            told: AtomicBool::new(false),
            thread: thread::current(),
        });
        if !self.enter(job, &slot)
            && let Some(done) = self.wait(&slot)
        {
            return done;
        }
        self.gather(&slot);
        let lead = Lead { group: self };
        let Round { jobs, slots, alone } = self.take_round();
        let mut answers = Answers { slots };
        let done = work(jobs, alone);
        let turn = self.take_turn(answers.slots.len());
        drop(lead);
        let results = settle(done);
        drop(turn);
        answers.deliver(results);
        drop(answers);
        self.wait(&slot).flatten()
    }

    /// Queues a job, and says whether its thread is to lead because nobody does.
    fn enter(&self, job: J, slot: &Arc<Slot<R>>) -> bool {
        let mut queue = lock(&self.queue);
        queue.waiting.push_back((job, slot.clone()));
        if queue.gathering.as_ref().is_some_and(|(enough, _)| queue.waiting.len() >= *enough) {
            queue.stop_gathering();
        }
        !std::mem::replace(&mut queue.led, true)
    }

    /// Waits for company: half of those who write is enough, and the other half is what is settled meanwhile. To wait for
    /// more would leave the disk idle, and to go on with less would make it sync for few. While a round is settled that
    /// costs nothing. After it, those who were told are about to come again, one after the other: whoever does not wait for
    /// a few of them has all of them wait for itself.
    fn gather(&self, slot: &Arc<Slot<R>>) {
        while let Some(until) = self.should_wait(slot) {
            let is_over = || until.is_some_and(|until| until <= Instant::now());
            self.stay_awake(|| slot.is_told() || is_over());
            while !slot.is_told() && !is_over() {
                match until {
                    None => thread::park(),
                    Some(until) => thread::park_timeout(until.saturating_duration_since(Instant::now())),
                }
            }
            // Under the lock, so that nobody says anything to whoever does not wait any more.
            lock(&self.queue).gathering = None;
            slot.told.store(false, Ordering::Relaxed);
        }
    }

    /// Says whether a leader is to wait for company, and until when if not for a word.
    fn should_wait(&self, slot: &Arc<Slot<R>>) -> Option<Option<Instant>> {
        let mut queue = lock(&self.queue);
        let enough = queue.crowd.div_ceil(2).min(MOST);
        if queue.waiting.len() >= enough {
            return None;
        }
        let until = match queue.settling {
            0 => Some(queue.settled? + RETURN),
            _ => None,
        };
        if until.is_some_and(|until| until <= Instant::now()) {
            // They have gone.
            queue.crowd = queue.waiting.len();
            return None;
        }
        queue.gathering = Some((enough, slot.clone()));
        Some(until)
    }

    /// Takes what has gathered.
    fn take_round(&self) -> Round<J, R> {
        let mut queue = lock(&self.queue);
        let count = queue.waiting.len().min(MOST);
        let alone = count == 1 && queue.settling == 0 && queue.crowd <= 1;
        // Some may be between two jobs, so that one round with fewer does not mean that there are fewer.
        queue.crowd = (queue.waiting.len() + queue.settling).max(queue.crowd - queue.crowd.div_ceil(8));
        let (jobs, slots) = queue.waiting.drain(..count).unzip();
        Round { jobs, slots, alone }
    }

    fn take_turn(&self, count: usize) -> Turn<'_, J, R> {
        self.stay_awake(|| !matches!(self.turn.try_lock(), Err(TryLockError::WouldBlock)));
        let held = lock(&self.turn);
        lock(&self.queue).settling = count;
        Turn { group: self, _held: held }
    }

    /// Waits for the result; `None` means that this thread is to lead instead.
    fn wait(&self, slot: &Slot<R>) -> Option<Option<R>> {
        self.stay_awake(|| slot.is_told());
        slot.wait()
    }

    /// Waits a moment for something, unless enough others do.
    fn stay_awake(&self, is_so: impl Fn() -> bool) {
        if is_so() {
            return;
        }
        if self.awake.fetch_add(1, Ordering::Relaxed) < AWAKE {
            let started = Instant::now();
            while !is_so() && started.elapsed() < PATIENCE {
                thread::yield_now();
            }
        }
        self.awake.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<J, R> Queue<J, R> {
    fn stop_gathering(&mut self) {
        if let Some((_, leader)) = self.gathering.take() {
            leader.say(Word::Lead);
        }
    }
}

impl<R> Slot<R> {
    fn is_told(&self) -> bool {
        self.told.load(Ordering::Acquire)
    }

    fn wait(&self) -> Option<Option<R>> {
        while !self.told.swap(false, Ordering::Acquire) {
            thread::park();
        }
        match std::mem::replace(&mut *lock(&self.word), Word::Wait) {
            Word::Lead => None,
            Word::Done(result) => Some(result),
            Word::Wait => Some(None),
        }
    }

    fn say(&self, word: Word<R>) {
        *lock(&self.word) = word;
        self.told.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// The right to settle. Whatever happens to whoever has it, a leader that waits for the end of it goes on.
struct Turn<'a, J, R> {
    group: &'a Group<J, R>,
    _held: MutexGuard<'a, ()>,
}

impl<J, R> Drop for Turn<'_, J, R> {
    fn drop(&mut self) {
        let mut queue = lock(&self.group.queue);
        queue.settling = 0;
        queue.settled = Some(Instant::now());
        queue.stop_gathering();
    }
}

/// The lead. Whatever happens to the leader, it goes on to the next.
struct Lead<'a, J, R> {
    group: &'a Group<J, R>,
}

impl<J, R> Drop for Lead<'_, J, R> {
    fn drop(&mut self) {
        let mut queue = lock(&self.group.queue);
        match queue.waiting.front() {
            Some((_, next)) => next.say(Word::Lead),
            None => queue.led = false,
        }
    }
}

/// Those whom a leader answers for. Whatever happens to it, they are told.
struct Answers<R> {
    slots: Vec<Arc<Slot<R>>>,
}

impl<R> Answers<R> {
    fn deliver(&mut self, results: Vec<R>) {
        // A result too few is one lost: those who are left are told when this is dropped.
        let answered = self.slots.len().min(results.len());
        for (slot, result) in self.slots.drain(..answered).zip(results) {
            slot.say(Word::Done(Some(result)));
        }
    }
}

impl<R> Drop for Answers<R> {
    fn drop(&mut self) {
        for slot in self.slots.drain(..) {
            slot.say(Word::Done(None));
        }
    }
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
                        let answer = group.submit(
                            job,
                            |jobs, _| {
                                rounds.fetch_add(1, Ordering::Relaxed);
                                std::thread::sleep(std::time::Duration::from_micros(50));
                                jobs
                            },
                            |jobs| jobs.into_iter().map(|job| job * 2).collect(),
                        );
                        assert_eq!(answer, Some(job * 2));
                    }
                });
            }
        });
        assert!(rounds.load(Ordering::Relaxed) < 1600, "no round was shared");
    }

    #[test]
    fn a_round_is_carried_out_while_the_one_before_is_settled_and_nobody_is_told_before_that() {
        let (group, working, settling, together) =
            (Group::<usize, usize>::new(), AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let settled: Vec<AtomicBool> = (0..400).map(|_| AtomicBool::new(false)).collect();
        let work = |jobs: Vec<usize>, _| {
            assert_eq!(working.fetch_add(1, Ordering::SeqCst), 0, "two led");
            together.fetch_add(settling.load(Ordering::SeqCst), Ordering::SeqCst);
            working.fetch_sub(1, Ordering::SeqCst);
            jobs
        };
        let settle = |jobs: Vec<usize>| {
            assert_eq!(settling.fetch_add(1, Ordering::SeqCst), 0, "two settled");
            thread::sleep(Duration::from_micros(200));
            jobs.iter().for_each(|job| settled[*job].store(true, Ordering::SeqCst));
            settling.fetch_sub(1, Ordering::SeqCst);
            jobs
        };
        thread::scope(|scope| {
            for writer in 0..8 {
                let (group, settled, work, settle) = (&group, &settled, &work, &settle);
                scope.spawn(move || {
                    for job in (0..50).map(|number| writer * 50 + number) {
                        assert_eq!(group.submit(job, work, settle), Some(job));
                        assert!(settled[job].load(Ordering::SeqCst));
                    }
                });
            }
        });
        assert!(together.load(Ordering::SeqCst) > 0, "one round after the other");
    }

    #[test]
    fn a_leader_waits_for_those_who_were_told_a_moment_ago_and_not_for_those_who_have_gone() {
        let (group, rounds) = (Group::<u8, u8>::new(), Mutex::new(Vec::new()));
        let work = |jobs: Vec<u8>, alone| {
            lock(&rounds).push((jobs.len(), alone));
            jobs
        };
        let told = |ago| {
            let mut queue = lock(&group.queue);
            (queue.crowd, queue.settled) = (4, ago);
        };
        told(Some(Instant::now() + Duration::from_secs(600)));
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(group.submit(1, work, |jobs| jobs), Some(1)));
            while lock(&group.queue).gathering.is_none() {
                thread::yield_now();
            }
            assert_eq!(group.submit(2, work, |jobs| jobs), Some(2));
        });
        told(Some(Instant::now() - RETURN));
        assert_eq!(group.submit(3, work, |jobs| jobs), Some(3));
        assert_eq!(*lock(&rounds), [(2, false), (1, true)]);
    }

    #[test]
    fn a_lost_leader_does_not_take_the_others_along() {
        let group = Group::<u8, u8>::new();
        let lost = std::thread::scope(|scope| {
            scope.spawn(|| group.submit(1, |_, _| panic!("lost"), |()| vec![1])).join()
        });
        assert!(lost.is_err());
        assert_eq!(group.submit(2, |jobs, _| jobs, |jobs| jobs), Some(2));
        let settle = |_| panic!("lost");
        let lost = std::thread::scope(|scope| scope.spawn(|| group.submit(3, |jobs, _| jobs, settle)).join());
        assert!(lost.is_err());
        let alone =
            group.submit(4, |jobs, alone| (jobs, alone), |(jobs, alone)| if alone { jobs } else { vec![] });
        assert_eq!(alone, Some(4));
    }
}
