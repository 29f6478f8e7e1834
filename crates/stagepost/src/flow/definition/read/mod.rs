//! Reading a flow file: from a tree of values to a flow, with everything that is wrong along the way.

mod action;
mod flow;
mod reader;
mod step;

#[cfg(test)]
pub(super) use action::{ASK, EXPIRES, REFINE};
#[cfg(test)]
pub(super) use flow::{FLOW, RETENTION};
pub(super) use reader::{Mention, Named, Reader, closest};
#[cfg(test)]
pub(super) use step::{FOR_EACH, ON_FAILURE, OUTPUT, RETRY, STEP};

use super::{Flow, Invalid, check, node::Node};

impl Flow {
    /// Reads a flow file, YAML or JSON, and checks it. The error says everything that is wrong with it, and where.
    pub fn read(source: &str) -> Result<Self, Invalid> {
        let root = Node::read(source)?;
        let mut reader = Reader::new(source);
        let flow = reader.flow(&root);
        check::whole(&mut reader, &flow);
        let mut faults = reader.faults;
        if faults.is_empty() {
            return Ok(flow);
        }
        faults.sort_by_key(|fault| fault.place);
        faults.dedup();
        Err(Invalid { faults })
    }
}
