//! Going back: a gate is opened again, and what was answered after it does not hold any more.

use serde::Serialize;

use super::gates::Line;
use super::record::Moment;
use super::{Error, Gate, GateId, Gates, State};
use crate::store::{Batch, NewEntry};

/// What going back to a gate does. Nothing has happened yet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GoingBack {
    /// The gate that will wait again.
    pub gate: Gate,
    /// The later gates of its run whose answers will not hold any more. They are kept.
    pub voids: Vec<Gate>,
}

impl Gates<'_> {
    /// Decides what going back to a gate would do, and changes nothing.
    pub fn plan_back(&self, id: &GateId) -> Result<GoingBack, Error> {
        let gate = self.settled(id)?;
        if gate.of.alone {
            return Ok(GoingBack { gate, voids: Vec::new() });
        }
        let later = |other: &Gate| {
            !other.of.alone
                && other.of.run == gate.of.run
                && other.id != gate.id
                && other.asked_position > gate.asked_position
                && !matches!(other.state, State::Void { .. })
        };
        let voids = self.all()?.into_iter().filter(later).collect();
        Ok(GoingBack { gate, voids })
    }

    /// Goes back to a gate: it waits again, and later answers of its run are void. They are kept, and say what made
    /// them void.
    pub fn reopen(&self, id: &GateId, why: &str) -> Result<GoingBack, Error> {
        self.until_won(|| {
            let plan = self.plan_back(id)?;
            if plan.gate.is_waiting() && plan.voids.is_empty() {
                return Err(Error::StillWaiting { id: id.clone() });
            }
            self.apply_back(&plan, why)?;
            Ok(plan)
        })
    }

    /// All or nothing: if anything happened to one of the gates since the plan was made, nothing is written.
    fn apply_back(&self, plan: &GoingBack, why: &str) -> Result<(), Error> {
        let by = self.project.context().who.clone();
        let voided = Moment::Voided { by: by.clone(), back_to: plan.gate.id.clone() };
        let lines = std::iter::once(&plan.gate).chain(&plan.voids);
        let mut expect: Vec<_> =
            lines.map(|gate| Line { id: &gate.id, position: gate.position }.expect()).collect();
        let mut events: Vec<_> =
            plan.voids.iter().map(|gate| self.event(gate.id.as_str(), &voided)).collect();
        let mut changed: Vec<(GateId, bool)> =
            plan.voids.iter().map(|gate| (gate.id.clone(), false)).collect();
        if !plan.gate.is_waiting() {
            events.push(self.event(plan.gate.id.as_str(), &Moment::Reopened { by, why: why.to_owned() }));
        }
        changed.push((plan.gate.id.clone(), true));
        let (expected, index) = self.index_with(&changed)?;
        expect.push(expected);
        events.push(index);
        let entries = events.into_iter().map(NewEntry::Event).collect();
        self.project.store().write(Batch { entries, expect, ..Batch::default() })?;
        Ok(())
    }
}
