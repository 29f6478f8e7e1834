//! Plans: propose and judge, every iteration kept, scored and compared.
//!
//! [`refine`] drives a planner and a judge (commands or closures) until a plan is approved, or iterations or budget run
//! out. Every answer is a checkpoint before the next call is made, so a run goes on where it was cut off. Scores, the
//! best attempt and how a run stands are derived from its checkpoints, never counted up in place.
//!
//! ```
//! # let home = stagepost_testutil::TempProject::git();
//! # let project = &home.open();
//! use serde_json::{Value, json};
//! use stagepost::plan::{Agents, Job, Refine, Request, refine};
//! use stagepost::process::Cancel;
//!
//! let mut planner = |request: &Request<'_>| -> Result<Value, String> {
//!     Ok(json!({"sections": vec!["verse"; request.iteration as usize]}))
//! };
//! let mut judge = |request: &Request<'_>| -> Result<Value, String> {
//!     let sections = request.plan.map_or(0, |plan| plan["sections"].as_array().map_or(0, Vec::len));
//!     Ok(json!({"score": 4 + 2 * sections, "feedback": "longer"}))
//! };
//! let job = Job { project_name: Some("my_song".into()), checkpoint: false, ..Job::default() };
//! let outcome = refine(
//!     project,
//!     &Refine { job, ..Refine::default() },
//!     Agents::new(&mut planner, &mut judge),
//!     &Cancel::new()?,
//!     &mut |_| {},
//! )?;
//! assert!(outcome.approved);
//! assert_eq!((outcome.iterations, outcome.best), (2, Some(2)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Someone else's loop can record what it does:
//!
//! ```
//! # let home = stagepost_testutil::TempProject::git();
//! # let project = &home.open();
//! use serde_json::json;
//! use stagepost::plan::{Part, Plan, Settings};
//!
//! # let plan = json!({"sections": []});
//! // Start a run: this makes a unique id.
//! let manager = Plan::start_run(
//!     project,
//!     &Settings {
//!         project_name: "my_song".into(),
//!         output_dir: Some("artifacts/my_song".into()),
//!         checkpoint: true,
//!     },
//! )?;
//! let run_id = manager.id();
//!
//! // Save a checkpoint of an iteration.
//! manager.write_iteration_checkpoint(&Part::raw(), json!({"plan": plan}), 1)?;
//!
//! // Save a checkpoint of which the newest counts.
//! manager.write_checkpoint(&Part::last(), json!({"status": "SUCCESS", "plan": plan}))?;
//!
//! let folder = home.root().join("artifacts/my_song/checkpoints/plans");
//! assert!(folder.join(format!("my_song_{run_id}_iter01_raw.json")).exists());
//! assert!(folder.join("my_song_final.json").exists());
//! # Ok::<(), stagepost::plan::Error>(())
//! ```

mod agent;
mod command;
mod compare;
mod decide;
mod driver;
mod error;
mod history;
mod job;
mod part;
mod payload;
mod plot;
mod prune;
mod record;
mod refine;
mod scores;
mod standing;
mod view;

pub use agent::{Agent, Agents, Fault, Previous, Reply, Request, Role};
pub use command::{Command, Words};
pub use compare::{Comparison, Shift, Side, compare};
pub use error::Error;
pub use history::{About, Call, End, History, Iteration, Judgement, Validation};
pub use job::{HardFail, Job, Retry, Size, Span};
pub use part::Part;
pub use payload::Payload;
pub use prune::{Cause, Gone, Policy, Pruned, Pruning, apply_prune, plan_prune};
pub use record::{Plan, Settings, Status};
pub use refine::{Outcome, Progress, Refine, Which, refine};
pub use scores::{Point, Scores};
pub use standing::Standing;
pub use view::{catch_up, export};
