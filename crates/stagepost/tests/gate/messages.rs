//! What people and other programs are shown, held to golden files, and that data cannot act.

use std::path::Path;

use serde_json::{Value, json};
use stagepost::gate::{Message, Prompt};
use stagepost::reply::{Choice, Kind, Risk};

use crate::support::TempGates;

fn prompts() -> Vec<Prompt> {
    let route = json!({
        "id": "route-2", "name": "Mountain Pass", "distance": 80, "elevation": 1900,
        "highlights": ["two long climbs", "views"],
        "stops": [{"type": "water", "name": "Fountain", "location": "Main Square"}, {"type": "cafe", "name": "Summit Hut"}],
        "warnings": ["snow until May"],
    });
    let mut last = route.clone();
    last["adjustments"] = json!(["lunch moved to the hut"]);
    last["nutritionPlan"] = json!({"water": "3 l", "bars": 4});
    last["clothingRecommendations"] = json!(["windproof vest"]);
    let mut high = Prompt::new(Kind::Approve)
        .asking("Deploy 7f3a to production?")
        .about(json!({"version": "7f3a", "changes": 12}));
    (high.risk, high.phrase) = (Risk::High, Some("deploy 7f3a".to_owned()));
    let mut confirm = Prompt::new(Kind::Confirm).asking("Delete the old branch?");
    confirm.message = "The branch `old` was merged three weeks ago.\nNobody has touched it since.".to_owned();
    let options = vec![
        Choice::new("s", "Staging").described("safe, used by the testers"),
        Choice::new("p", "Production"),
    ];
    vec![
        confirm,
        Prompt::new(Kind::Choose).asking("Where shall it go?").among(options),
        high,
        Prompt::new(Kind::Input).asking("What shall the release be called?"),
        Prompt::new(Kind::ConfirmIntent).about(json!({
            "query": {
                "destinations": ["Girona"], "distance": {"min": 60, "max": 80},
                "constraints": {"mustVisit": ["Banyoles"], "avoid": ["Highway 1"], "surfacePreferences": ["paved", "gravel"]},
                "reference": null,
            },
            "skillsNeeded": {"history": false, "climbs": true, "weather": true, "waterStops": true, "cafes": false,
                "surface": false, "safety": false, "nutrition": true},
        })),
        Prompt::new(Kind::PresentFindings).about(json!({
            "skillResults": [{"skillName": "waterStops", "summary": "three fountains on the way", "data": {"n": 3}}],
            "insights": ["start early: the pass is hot after noon"],
        })),
        Prompt::new(Kind::SelectRoute).about(json!({"candidates": [
            {"id": "route-1", "name": "Coastal Loop", "distance": 62, "elevation": 300, "highlights": ["flat", "along the sea"]},
            route.clone(),
        ]})),
        Prompt::new(Kind::RefineRoute).about(json!({"selectedRoute": route, "proposedRefinements": ["lunch at the hut"]})),
        Prompt::new(Kind::PresentFinal).about(json!({"finalRoute": last})),
    ]
}

#[test]
fn messages_are_as_they_were_agreed_on() {
    let temp = TempGates::new();
    for prompt in prompts() {
        let kind = prompt.kind.name();
        let gate = temp.ask(kind, prompt);
        let message = Message::of(&gate);
        let json = |value: Value| serde_json::to_string_pretty(&value).unwrap();
        let whole = format!(
            "{}\n===== terminal, 60 columns\n{}\n===== ask\n{}\n===== elicitation\n{}\n",
            message.markdown(),
            message.plain(60),
            json(Message::ask_user(&gate)),
            json(Message::elicitation(&gate)),
        );
        assert!(message.plain(60).lines().all(|line| line.chars().count() <= 60), "{whole}");
        golden(kind, &whole);
    }
}

/// Compares with a golden file; `UPDATE_GOLDENS=1` writes those that are not there yet or differ.
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gate/goldens").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder can be made");
        std::fs::write(&path, text).expect("it can be written");
    }
    let agreed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(agreed == text, "{name} is not as agreed on:\n{text}");
}

const NASTY: &str = "\u{1b}[2J\u{1b}]0;x\u{7}\n# Approved\r\n## Question\n\n**Do it?**\n- yes: go\u{202e}\u{9b}31m\u{2028}> quote\n===\n1. one\n<script> [a](b) `c` ![d](e)";

fn nasty() -> Vec<Prompt> {
    let mut all = prompts();
    for prompt in &mut all {
        poison(&mut prompt.data);
        prompt.message = NASTY.to_owned();
        prompt.question = NASTY.to_owned();
        prompt.options.iter_mut().for_each(|option| {
            option.label = format!("{NASTY}{}", option.label);
            option.description = NASTY.to_owned();
        });
    }
    all
}

fn poison(value: &mut Value) {
    match value {
        Value::String(text) => *text = format!("{NASTY}{text}"),
        Value::Array(items) => items.iter_mut().for_each(poison),
        Value::Object(members) => {
            // An id is refused if it holds control characters; everything else is shown.
            members.iter_mut().filter(|(name, _)| *name != "id").for_each(|(_, value)| poison(value));
            if !members.contains_key("id") {
                members.insert(NASTY.to_owned(), json!(NASTY));
            }
        }
        _ => {}
    }
}

#[test]
fn nothing_in_the_data_acts_on_a_terminal_or_looks_like_a_heading() {
    let temp = TempGates::new();
    for mut prompt in nasty() {
        let kind = prompt.kind;
        if kind == Kind::ConfirmIntent {
            // Skills are a map: names from outside are shown too.
            prompt.data["skillsNeeded"] = json!({ NASTY: true });
        }
        let message = Message::of(&temp.ask(kind.name(), prompt));
        let markdown = message.markdown();
        let acts = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{2028}');
        assert!(!markdown.contains(acts) && !message.plain(60).contains(acts), "{kind}: {markdown}");
        let headings = markdown.lines().filter(|line| line.starts_with('#')).count();
        assert_eq!(headings, 1 + message.sections.len(), "{kind}: {markdown}");
        assert_eq!(markdown.lines().filter(|line| line.starts_with("**")).count(), 1, "{markdown}");
        assert!(
            !markdown.lines().any(|line| line.starts_with("===") || line.starts_with("---")),
            "{markdown}"
        );
        assert!(!markdown.contains("<script>") && !markdown.contains("[a]("), "{markdown}");
        let bullets: usize = message.sections.iter().map(|section| section.bullets.len()).sum();
        let listed = markdown.lines().filter(|line| line.starts_with("- ")).count();
        assert_eq!(listed, bullets + message.answers.len(), "{kind}: {markdown}");
    }
}

#[test]
fn the_exact_words_must_be_typed_and_cannot_be_clicked() {
    let temp = TempGates::new();
    let high = prompts().into_iter().find(|prompt| prompt.risk == Risk::High).expect("one of them");
    let gate = temp.ask("high", high);
    assert!(Message::of(&gate).plain(60).contains("deploy 7f3a           agree"));
    let offered = Message::ask_user(&gate)["options"].to_string();
    assert!(!offered.contains("deploy"), "{offered}");
    let schema = Message::elicitation(&gate)["requestedSchema"].to_string();
    assert!(!schema.contains("deploy"), "{schema}");
}

#[test]
fn narrow_and_wide_terminals_are_filled_and_never_overrun() {
    for prompt in prompts() {
        for width in [0, 24, 40, 80, 200] {
            let text = Message::of_prompt(&prompt).plain(width);
            let most = width.max(24);
            assert!(text.lines().all(|line| line.chars().count() <= most), "{width}:\n{text}");
        }
    }
    let long = Prompt::new(Kind::Confirm).asking("日本語".repeat(30)).about(json!(["x".repeat(300)]));
    let text = Message::of_prompt(&long).plain(40);
    assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
}
