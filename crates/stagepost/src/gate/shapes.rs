//! A message as JSON for other programs that ask people: agent kits and MCP clients.

use serde_json::{Map, Value, json};

use super::{Gate, Message, Possible, Prompt};
use crate::reply::{Kind, Risk};

impl Message {
    /// The shape that agent kits ask a person with: `header`, `question`, `options` of `label` and `description`,
    /// `multiSelect`. Free text is always welcome. Whatever comes back, a label or words, is an answer in words.
    pub fn ask_user(gate: &Gate) -> Value {
        let message = Message::of(gate);
        let options: Vec<Value> = message
            .fixed(&gate.prompt)
            .map(|answer| json!({"label": answer.say, "description": answer.means}))
            .collect();
        json!({
            "gate": gate.id,
            "shown": gate.shown,
            "header": header(gate.prompt.kind),
            "question": message.question,
            "options": options,
            "multiSelect": gate.prompt.multiple,
            "freeText": true,
            "markdown": message.markdown(),
        })
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
    fn fixed<'a>(&'a self, prompt: &Prompt) -> impl Iterator<Item = &'a Possible> {
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
    if prompt.multiple {
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
