//! A project with a clock that a test can move.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use stagepost::gate::{Ask, Gate, GateId, Gates, Heard, Origin, Prompt, Said};
use stagepost::model::Timestamp;
use stagepost::project::{Clock, Context, Place, Project, RandomIds, Settings};
use stagepost::reply::Kind;
use stagepost::snapshot::GitProgram;
use tempfile::TempDir;

/// 2026-01-31T08:00:00Z.
const START: i64 = 1_769_846_400_000_000;

/// A clock with hands that can be moved, forwards and backwards.
#[derive(Clone)]
pub(crate) struct Hands(Arc<AtomicI64>);

impl Hands {
    pub(crate) fn move_by(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Relaxed)).expect("a time in this century")
    }
}

pub(crate) struct TempGates {
    folder: TempDir,
    pub(crate) hands: Hands,
    pub(crate) project: Project,
}

impl TempGates {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("there is room");
        let hands = Hands(Arc::new(AtomicI64::new(START)));
        let project = opened(&folder, &hands, "ada");
        Self { folder, hands, project }
    }

    /// The same project as another process sees it.
    pub(crate) fn as_someone(&self, who: &str) -> Project {
        opened(&self.folder, &self.hands, who)
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(crate) fn gates(&self) -> Gates<'_> {
        Gates::of(&self.project)
    }

    /// Asks under a name.
    pub(crate) fn ask(&self, name: &str, prompt: Prompt) -> Gate {
        self.gates().ask(Ask::new(prompt).named(id(name))).expect("it can be asked")
    }

    /// Asks whether to deploy.
    pub(crate) fn deploy(&self, name: &str) -> Gate {
        self.ask(name, Prompt::new(Kind::Confirm).asking("Deploy now?"))
    }

    /// Says something that is understood.
    pub(crate) fn say(&self, name: &str, words: &str) -> Gate {
        match self.gates().answer(&id(name), &Said::new(words, Origin::Person)).expect("it waits") {
            Heard::Answered(gate) => *gate,
            Heard::Unclear(_, attempt) => panic!("`{words}` was not understood: {}", attempt.reply.because),
        }
    }
}

fn opened(folder: &TempDir, hands: &Hands, who: &str) -> Project {
    let context = Context {
        clock: Box::new(hands.clone()),
        ids: Box::new(RandomIds::default()),
        who: who.to_owned(),
        git: GitProgram::new("git", std::env::vars_os()),
    };
    Project::init(Place::without_git(folder.path()), Settings::default(), context).expect("it can be made")
}

pub(crate) fn id(name: &str) -> GateId {
    GateId::new(name).expect("a name")
}
