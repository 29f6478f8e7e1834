//! Where everything is kept: an append-only journal of sealed entries, and blobs beside it.
//!
//! [`Store`] is the contract; [`SqliteStore`] keeps it on disk and [`MemoryStore`] in memory. A store decides
//! places (`seq`, parents, the chain) and durability. It decides nothing about what should be saved, kept or
//! deleted: that is the business of those who call it.

pub mod blob;
mod check;
mod error;
mod memory;
mod sqlite;

use std::io::Read;

pub(crate) use check::nests_at_most;
pub use error::Error;
pub use memory::MemoryStore;
pub use sqlite::{OpenOptions, SqliteStore};

use crate::model::{
    BlobRef, Checkpoint, CheckpointId, Draft, Event, Label, Run, RunId, Stub, Timestamp, Topic,
};
use blob::{Cut, Prepared};

/// A store of checkpoints. Every implementation passes the contract suite in `stagepost-testutil`.
///
/// *Must* marks what loses data if broken, *should* what costs a repair. All methods may be called from many
/// threads, and a durable store may be open in many processes at once.
pub trait Store: Send + Sync {
    /// Appends everything in `batch`, or nothing.
    ///
    /// When this returns `Ok`, the batch *must* survive a crash of the process and of the machine. It *must*
    /// give each checkpoint the next `seq` of its run, seal it after its parent, and refuse a batch whose
    /// expectations do not hold or whose ids are taken ([`Error::Conflict`]), whose artifacts name blobs that
    /// are neither in the batch nor stored ([`Error::MissingBlob`]), whose runs or parents are not there
    /// ([`Error::MissingRun`], [`Error::MissingCheckpoint`]), or that could not be read back
    /// ([`Error::Refused`]). Concurrent callers *should* share the cost of durability. Where the disk fails them while
    /// they do, what got an error may be there all the same; nobody *must* get `Ok` then before it is durable.
    fn write(&self, batch: Batch) -> Result<Written, Error>;

    /// Finds a checkpoint by its id. What it returns *must* carry the seal it was given.
    fn checkpoint(&self, id: &CheckpointId) -> Result<Option<Found>, Error>;

    /// Lists ids that start with `prefix` (lower-case hexadecimal digits and dashes as in the printed form), at
    /// most `limit`.
    fn matching(&self, prefix: &str, limit: usize) -> Result<Vec<CheckpointId>, Error>;

    /// Finds a checkpoint by its place in a run.
    fn at(&self, run: &RunId, seq: u64) -> Result<Option<Found>, Error>;

    /// Finds the newest checkpoint of a run, in the order of appending, whatever the clock said.
    fn head(&self, run: &RunId) -> Result<Option<Found>, Error>;

    /// Lists checkpoints, newest first in the order of appending. Pruned ones are left out.
    fn list(&self, query: &Query) -> Result<Vec<Listed>, Error>;

    /// Lists as [`list`](Self::list) does, but goes past what is damaged and names it. A store that cannot tell one
    /// record from another may fail instead.
    fn survey(&self, query: &Query) -> Result<Survey, Error> {
        let sound = self.list(query)?;
        Ok(Survey { last: sound.last().map(|one| one.position), sound, damaged: Vec::new() })
    }

    /// Finds a run.
    fn run(&self, id: &RunId) -> Result<Option<Run>, Error>;

    /// Lists all runs in the order in which they were started, with the place of their newest checkpoint.
    fn runs(&self) -> Result<Vec<(Run, u64)>, Error>;

    /// Lists events of one topic, oldest first.
    fn events(&self, query: &EventQuery) -> Result<Vec<(u64, Event)>, Error>;

    /// Cuts, hashes and compresses `bytes` for a batch. `base` names a blob that probably has much in common.
    fn prepare(&self, bytes: Vec<u8>, cut: Cut, base: Option<BlobRef>) -> Prepared;

    /// Stores a stream that is too large to hold in memory. The caller *must* keep a [`Hold`] from before
    /// this call until the batch that refers to the blob is written, or a collection may take it away.
    fn put(&self, source: &mut dyn Read, cut: Cut) -> Result<BlobRef, Error>;

    /// Keeps collections, also those of other processes, from taking blobs that nothing refers to yet.
    fn hold(&self) -> Result<Hold, Error>;

    /// Waits until nobody holds, and keeps others from holding, here and in other processes, until it is dropped.
    /// While it lasts, whatever nothing refers to will not be referred to later.
    fn alone(&self) -> Result<Hold, Error>;

    /// Reads a blob back as a stream. Reading *must* end in an error, never in wrong bytes, if what is stored is
    /// not what was put in: the last read fails if the whole does not hash to `blob.hash`.
    fn open(&self, blob: &BlobRef) -> Result<Box<dyn Read + '_>, Error>;

    /// Reads a whole blob.
    fn load(&self, blob: &BlobRef) -> Result<Vec<u8>, Error>;

    /// Reads several whole blobs, in this order. Where they were written one after the other, it *should* cost less than
    /// reading each by itself.
    fn load_all(&self, blobs: &[BlobRef]) -> Result<Vec<Vec<u8>>, Error> {
        blobs.iter().map(|blob| self.load(blob)).collect()
    }

    /// Turns checkpoints into stubs and appends `event` in one step. The event *must* be of topic `prune` and
    /// list them as `{"checkpoints": [id, …]}`, or it is refused ([`Error::Refused`]): an audit takes a stub
    /// that no event speaks of for damage.
    fn prune(&self, ids: &[CheckpointId], event: Event) -> Result<(), Error>;

    /// Drops blobs that no checkpoint refers to and gives the space back. It *must not* take a blob that a live
    /// checkpoint, a batch in flight or a holder needs.
    fn collect(&self) -> Result<Collected, Error>;

    /// Reads everything again and reports each damage found. Errors of reading are reports too.
    fn audit(&self, report: &mut dyn FnMut(Damage)) -> Result<Audited, Error>;

    /// Makes again whatever is derived from the journal, such as lookup tables. It *must not* change the journal.
    fn rebuild(&self) -> Result<(), Error>;

    /// Returns how many entries at the end of the journal were reported as written and are not there any more. It *should*
    /// be quick, for it is asked whenever a project is opened; a store that cannot lose its end says 0.
    fn lost(&self) -> Result<u64, Error> {
        Ok(0)
    }

    /// Says how much there is and how much room it takes.
    fn usage(&self) -> Result<Usage, Error>;
}

/// What is written in one step.
#[derive(Debug, Default)]
pub struct Batch {
    /// Payloads that artifacts of the batch refer to.
    pub payloads: Vec<Prepared>,
    /// What is appended, in this order.
    pub entries: Vec<NewEntry>,
    /// What must hold for the batch to be written.
    pub expect: Vec<Expect>,
}

/// Something to append.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a batch holds a few, and most of them are checkpoints")]
pub enum NewEntry {
    /// A run; nothing happens if it is there already with the same kind, and another kind is a conflict.
    Run(Run),
    /// A checkpoint.
    Checkpoint(Draft),
    /// An event.
    Event(Event),
}

/// What must hold for a batch to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// The run is not there yet.
    NewRun(RunId),
    /// The newest checkpoint of the run has this `seq` (0: there is none).
    Head(RunId, u64),
    /// The newest event of this topic and key has this position (0: there is none).
    LatestEvent(Topic, String, u64),
}

impl std::fmt::Display for Expect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Expect::NewRun(run) => write!(f, "run `{run}` is there already"),
            Expect::Head(run, seq) => write!(f, "checkpoint {seq} is no longer the newest of run `{run}`"),
            Expect::LatestEvent(topic, key, _) => {
                write!(f, "something newer happened to {} `{}`", topic.as_str(), key.escape_debug())
            }
        }
    }
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The checkpoints of the batch, sealed.
    pub checkpoints: Vec<Checkpoint>,
    /// The position of the last entry in the store.
    pub position: u64,
}

/// What is stored under a checkpoint id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The checkpoint.
    Live(Box<Checkpoint>),
    /// What pruning left of it.
    Pruned(Stub),
}

impl Found {
    /// Returns the checkpoint unless it was pruned.
    pub fn live(self) -> Option<Checkpoint> {
        match self {
            Found::Live(checkpoint) => Some(*checkpoint),
            Found::Pruned(_) => None,
        }
    }

    /// Returns the id.
    pub fn id(&self) -> CheckpointId {
        match self {
            Found::Live(checkpoint) => checkpoint.id,
            Found::Pruned(stub) => stub.id,
        }
    }

    /// Returns the number in the run.
    pub fn seq(&self) -> u64 {
        match self {
            Found::Live(checkpoint) => checkpoint.seq,
            Found::Pruned(stub) => stub.seq,
        }
    }
}

/// A checkpoint in a list, with its place in the store: pass it as [`Query::before`] to go on from there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The place in the store.
    pub position: u64,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
}

/// A list that goes past what is damaged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// What is as it was written, newest first.
    pub sound: Vec<Listed>,
    /// What is not, newest first: its place in the store, and what is wrong.
    pub damaged: Vec<(u64, String)>,
    /// The place of the last one looked at: pass it as [`Query::before`] to go on from there.
    pub last: Option<u64>,
}

/// Which checkpoints to list.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Only those of this run.
    pub run: Option<RunId>,
    /// Only those that answer to this label.
    pub label: Option<Label>,
    /// Only those that someone called good (see [`Checkpoint::is_good`]).
    pub good: bool,
    /// Only those made then or later, by the clock of whoever made them: they may stand anywhere, for clocks go backwards.
    pub since: Option<Timestamp>,
    /// Only those before this position.
    pub before: Option<u64>,
    /// At most so many.
    pub limit: Option<usize>,
}

/// Which events to list.
#[derive(Debug, Clone)]
pub struct EventQuery {
    /// The topic.
    pub topic: Topic,
    /// Only those of this key.
    pub key: Option<String>,
    /// Only the newest so many (still listed oldest first).
    pub last: Option<usize>,
}

impl EventQuery {
    /// All events of a topic.
    pub fn all(topic: Topic) -> Self {
        Self { topic, key: None, last: None }
    }

    /// The newest event of a topic and key.
    pub fn latest(topic: Topic, key: impl Into<String>) -> Self {
        Self { topic, key: Some(key.into()), last: Some(1) }
    }
}

/// Keeps unreferenced blobs alive until it is dropped.
#[derive(Debug)]
pub struct Hold(
    #[expect(dead_code, reason = "held for what dropping it does")] Box<dyn std::any::Any + Send>,
);

impl Hold {
    /// A hold that ends when `held` is dropped with it.
    pub fn new(held: impl std::any::Any + Send) -> Self {
        Self(Box::new(held))
    }
}

/// What a collection gave back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Collected {
    /// Payloads dropped.
    pub blobs: u64,
    /// Pieces dropped.
    pub pieces: u64,
    /// Bytes by which the files became smaller.
    pub bytes: u64,
}

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The run concerned, where that is known.
    pub run: Option<RunId>,
    /// The checkpoint concerned, where that is known.
    pub checkpoint: Option<CheckpointId>,
    /// The artifact concerned, where that is known.
    pub artifact: Option<String>,
    /// What is wrong.
    pub what: String,
    /// Only something derived is damaged: a lookup table, which [`Store::rebuild`] makes again, or, where a checkpoint is
    /// named, the ref that keeps its snapshot.
    pub derived: bool,
}

impl Damage {
    /// Damage that cannot be tied to a checkpoint.
    pub(crate) fn general(what: impl Into<String>) -> Self {
        Self { run: None, checkpoint: None, artifact: None, what: what.into(), derived: false }
    }

    /// Damage of the files of a checkpoint, with all its causes.
    pub(crate) fn files(checkpoint: &Checkpoint, error: &dyn std::error::Error) -> Self {
        let causes = std::iter::successors(Some(error), |error| error.source());
        Self::of(checkpoint, causes.map(ToString::to_string).collect::<Vec<_>>().join(": "))
    }

    /// Damage of a checkpoint.
    pub(crate) fn of(checkpoint: &Checkpoint, what: impl Into<String>) -> Self {
        Self {
            run: Some(checkpoint.run.clone()),
            checkpoint: Some(checkpoint.id),
            artifact: None,
            what: what.into(),
            derived: false,
        }
    }
}

/// What an audit went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Audited {
    /// Checkpoints whose seal was computed again.
    pub checkpoints: u64,
    /// Stubs of pruned checkpoints.
    pub stubs: u64,
    /// Events whose seal was computed again.
    pub events: u64,
    /// Payloads that were hashed again.
    pub blobs: u64,
    /// Bytes of those payloads.
    pub bytes: u64,
}

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Entries ever appended.
    pub entries: u64,
    /// Bytes on disk.
    pub bytes: u64,
}
