//! JSON Schemas of the types that write themselves as text.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{ArtifactName, CheckpointId, Hash, Label, ObjectId, RepoPath, RunId, Timestamp};

macro_rules! text_schema {
    ($name:ident, $($schema:tt)*) => {
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", $($schema)* })
            }
        }
    };
}

text_schema!(CheckpointId, "format": "uuid");
text_schema!(RunId, "minLength": 1, "maxLength": 128, "pattern": r"^[^.\-/\\:\s][^/\\:\s]*$");
text_schema!(ArtifactName, "minLength": 1, "maxLength": 255);
text_schema!(Hash, "pattern": "^[0-9a-f]{64}$");
text_schema!(Label, "minLength": 1);
text_schema!(Timestamp, "format": "date-time");
text_schema!(ObjectId, "pattern": "^([0-9a-f]{40}|[0-9a-f]{64})$");
text_schema!(RepoPath, "minLength": 1);
