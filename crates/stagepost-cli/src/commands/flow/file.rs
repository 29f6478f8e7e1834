//! Reading a flow file for a command.

use std::io::Read;
use std::path::Path;

use stagepost::flow::definition::{Flow, Invalid};

use crate::app::App;
use crate::failure::{Code, Failure};

/// More than a flow may have, so that the library says so; but not all of a file that never ends.
const MOST: u64 = 16 << 20;

/// Reads a flow file, or standard input for `-`. Returns its text too: a run keeps it.
pub(crate) fn read(app: &App, path: &Path) -> Result<(String, Flow), Failure> {
    let failed = |error| Failure::file("read the flow", path, error);
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().take(MOST).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        let file = std::fs::File::open(app.folder().join(path)).map_err(failed)?;
        file.take(MOST).read_to_end(&mut bytes).map_err(failed)?;
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| Failure::usage(format!("{} is not UTF-8 text: {error}", path.display())))?;
    let flow = Flow::read(&text).map_err(|invalid| not_valid(path, &invalid))?;
    Ok((text, flow))
}

/// Every fault as `FILE:LINE:COLUMN: what`, which editors understand.
pub(super) fn not_valid(path: &Path, invalid: &Invalid) -> Failure {
    let shown = path.display();
    let mut failure = Failure::new(Code::Usage, format!("{shown} is not a valid flow"));
    let faults = invalid.faults.iter();
    failure.causes = faults
        .map(|fault| format!("{shown}:{}:{}: {}", fault.place.line, fault.place.column, fault.what))
        .collect();
    failure.hint("`stagepost schema flow` prints the JSON Schema, for completion in editors")
}
