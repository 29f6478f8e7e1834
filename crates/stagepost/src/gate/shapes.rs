//! A message as JSON for other programs that ask people: agent kits and MCP clients.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Gate, GateId, Message, Possible, Prompt};
use crate::model::Hash;
use crate::reply::{Kind, Risk};

/// A question in the shape that agent kits ask a person with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Question {
    /// The gate that waits for the answer.
    pub gate: GateId,
    /// The hash of what is shown: an answer is bound to it.
    pub shown: Hash,
    /// A word or two, at most twelve characters.
    pub header: String,
    /// The one question.
    pub question: String,
    /// What may be said as it stands.
    pub options: Vec<Offered>,
    /// Whether several options may be chosen.
    #[serde(rename = "multiSelect")]
    pub multi_select: bool,
    /// Whether an answer in own words is welcome: always.
    #[serde(rename = "freeText")]
    pub free_text: bool,
    /// The whole message.
    pub markdown: String,
}

/// Something that may be said as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Offered {
    /// The words.
    pub label: String,
    /// What they mean.
    pub description: String,
}

impl Message {
    /// The shape that agent kits ask a person with: `header`, `question`, `options` of `label` and `description`,
    /// `multiSelect`. Free text is always welcome. Whatever comes back, a label or words, is an answer in words.
    pub fn ask_user(gate: &Gate) -> Value {
        let message = Message::of(gate);
        let offered =
            |answer: &Possible| Offered { label: answer.say.clone(), description: answer.means.clone() };
        let question = Question {
            gate: gate.id.clone(),
            shown: gate.shown,
            header: header(gate.prompt.kind).to_owned(),
            options: message.fixed(&gate.prompt).map(offered).collect(),
            multi_select: gate.prompt.takes_several(),
            free_text: true,
            markdown: message.markdown(),
            question: message.question,
        };
        serde_json::to_value(question).expect("a question has string keys only")
    }

    /// The parameters of MCP's `elicitation/create`: a message and a flat schema.
    pub fn elicitation(gate: &Gate) -> Value {
        let message = Message::of(gate);
        let says: Vec<&Possible> = message.fixed(&gate.prompt).collect();
        let mut properties = Map::new();
        if !says.is_empty() {
            properties.insert("answer".to_owned(), answer_schema(&gate.prompt, &says));
        }
        let words = json!({"type": "string", "title": "In your own words", "maxLength": 65_536});
        properties.insert("words".to_owned(), words);
        json!({
            "message": message.markdown(),
            "requestedSchema": {"type": "object", "properties": properties, "required": []},
        })
    }

    /// What may be said as it stands, without a gap to fill. Words that must be typed cannot be clicked.
    pub(super) fn fixed<'a>(&'a self, prompt: &Prompt) -> impl Iterator<Item = &'a Possible> {
        let typed = prompt.risk == Risk::High;
        self.answers.iter().filter(move |answer| match answer.option {
            Some(_) => true,
            None if typed && answer.action.is_consent() => false,
            None => !answer.say.contains('…'),
        })
    }
}

fn answer_schema(prompt: &Prompt, says: &[&Possible]) -> Value {
    let named: Vec<Value> = says
        .iter()
        .map(|answer| json!({"const": answer.say, "title": format!("{}: {}", answer.say, answer.means)}))
        .collect();
    if prompt.takes_several() {
        return json!({"type": "array", "title": "Answer", "items": {"anyOf": named}});
    }
    json!({"type": "string", "title": "Answer", "oneOf": named})
}

/// The words in the result of an elicitation; `None` where nobody said anything.
///
/// To decline is to say no, to dismiss the question is to say nothing.
pub fn elicited(result: &Value) -> Option<String> {
    let content = &result["content"];
    let said = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    match result["action"].as_str()? {
        "decline" => Some("no".to_owned()),
        "accept" => {
            let words = content["words"].as_str().and_then(said);
            let several = content["answer"]
                .as_array()
                .map(|answers| answers.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" and "));
            let answer = content["answer"].as_str().map(str::to_owned).or(several);
            match (answer.as_deref().and_then(said), words) {
                // Both count: "yes" beside "but not on Friday" is not a yes.
                (Some(answer), Some(words)) => Some(format!("{answer}, {words}")),
                (answer, words) => answer.or(words),
            }
        }
        _ => None,
    }
}

/// At most twelve characters, as the kits show it beside the question.
fn header(kind: Kind) -> &'static str {
    match kind {
        Kind::Confirm => "Confirm",
        Kind::Choose => "Choose",
        Kind::Approve => "Approve",
        Kind::Input => "Answer",
        Kind::ConfirmIntent => "Intent",
        Kind::PresentFindings => "Findings",
        Kind::SelectRoute => "Route",
        Kind::RefineRoute => "Refine",
        Kind::PresentFinal => "Final route",
    }
}
