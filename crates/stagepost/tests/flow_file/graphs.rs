//! Flows as graphs: text for a terminal, SVG for everything else.

use stagepost::flow::definition::{Flow, Graph};

const SHIP: &str = r#"
name: ship & <tell>
steps:
  - { id: fetch, run: git fetch }
  - { id: lint, run: "cargo clippy && echo 'ok' > log", needs: [fetch] }
  - { id: docs, name: 'The "docs"', run: [mkdocs, build], needs: [fetch], for_each: { list: [a, b] } }
  - { id: ask, ask: { kind: approve, message: Ship it?, on: { approve: ship, refine: lint } }, needs: [lint, docs] }
  - { id: ship, run: "./ship.sh\n./tell.sh", needs: [ask, fetch], if: lint.exit == 0, on_failure: { goto: fetch } }
"#;

#[test]
fn the_text_shows_each_step_and_where_it_leads() {
    let expected = "\
ship & <tell>

1  fetch  run: git fetch
   ├──> lint
   ├──> docs
   └──> ship

2  lint   run: cargo clippy && echo 'ok' > log
   └──> ask
3  docs   run for each: mkdocs build
   └──> ask

4  ask    ask: Ship it?
   ├─ approve ──> ship
   └┄ refine ┄┄> lint

5  ship   run: ./ship.sh…
   if lint.exit == 0
   └┄ failed ┄┄> fetch
";
    assert_eq!(Graph::of(&Flow::read(SHIP).unwrap()).text(), expected);
}

#[test]
fn the_picture_is_well_formed_and_nothing_in_it_can_act() {
    let svg = Graph::of(&Flow::read(SHIP).unwrap()).svg();
    assert_eq!(unbalanced(&svg), Vec::<String>::new());
    for part in [
        "ship &amp; &lt;tell&gt;",
        "The &quot;docs&quot;",
        "&apos;ok&apos; &gt; log",
        "stroke-dasharray=\"5 4\"",
    ] {
        assert!(svg.contains(part), "no {part} in {svg}");
    }
    let bad = "name: \"<script>alert(1)</script>\"\nsteps: [{id: a, run: \"x\\u0001\\u001b[2J\\uFFFF</text><script>\"}]";
    let svg = Graph::of(&Flow::read(bad).unwrap()).svg();
    assert!(!svg.contains("<script") && !svg.chars().any(|c| c.is_control() && c != '\n'), "{svg}");
    assert_eq!(unbalanced(&svg), Vec::<String>::new());
}

#[test]
fn boxes_never_overlap_and_stay_within_the_picture() {
    for seed in 0..40_u64 {
        let flow = random_flow(seed);
        let svg = Graph::of(&flow).svg();
        let boxes: Vec<[f64; 4]> = svg.lines().filter(|line| line.contains("rx=")).map(rectangle).collect();
        assert_eq!(boxes.len(), flow.steps.len());
        let width = attribute(&svg, "width");
        let height = attribute(&svg, "height");
        for (at, [x, y, w, h]) in boxes.iter().enumerate() {
            assert!(*x >= 0.0 && *y >= 0.0 && x + w <= width && y + h <= height, "seed {seed}: {svg}");
            for [x2, y2, w2, h2] in &boxes[at + 1..] {
                let apart = x + w <= *x2 || x2 + w2 <= *x || y + h <= *y2 || y2 + h2 <= *y;
                assert!(apart, "seed {seed}: {svg}");
            }
        }
    }
}

#[test]
fn a_flow_of_thousands_of_steps_is_drawn_too() {
    let mut file = String::from("name: x\nsteps:\n- {id: s0, run: a}\n");
    for at in 1..3000 {
        file.push_str(
            &format!("- {{id: s{at}, run: a, needs: [s0, s{}]}}\n", at - 1).replace("[s0, s0]", "[s0]"),
        );
    }
    let flow = Flow::read(&file).unwrap();
    assert_eq!(Graph::of(&flow).svg().matches("rx=").count(), 3000);
}

/// A flow whose steps need some of those before them; the numbers come from a simple generator.
fn random_flow(seed: u64) -> Flow {
    let mut state = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let count = 2 + next(14);
    let mut file = String::from("name: x\nsteps:\n");
    for at in 0..count {
        let needs: Vec<String> = (0..at).filter(|_| next(3) == 0).map(|need| format!("s{need}")).collect();
        let run = "x".repeat(1 + usize::try_from(next(40)).unwrap());
        file.push_str(&format!("- {{id: s{at}, run: {run}, needs: [{}]", needs.join(", ")));
        if next(4) == 0 {
            file.push_str(&format!(", on_failure: {{ goto: s{} }}", next(count)));
        }
        file.push_str("}\n");
    }
    Flow::read(&file).unwrap()
}

fn attribute(text: &str, name: &str) -> f64 {
    let at = text.find(&format!(" {name}=\"")).unwrap() + name.len() + 3;
    text[at..].split('"').next().unwrap().parse().unwrap()
}

fn rectangle(line: &str) -> [f64; 4] {
    ["x", "y", "width", "height"].map(|name| attribute(line, name))
}

/// Tags that are not closed, or not opened, and signs that should have been escaped.
fn unbalanced(xml: &str) -> Vec<String> {
    let (mut open, mut faults): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for part in xml.split('<').skip(1) {
        let Some((tag, text)) = part.split_once('>') else { return vec![part.to_owned()] };
        let name = tag.trim_matches('/').split([' ', '\n']).next().unwrap_or_default().to_owned();
        if tag.starts_with('/') {
            if open.pop().as_ref() != Some(&name) {
                faults.push(format!("</{name}>"));
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        let is_entity = |rest: &&str| {
            ["amp;", "lt;", "gt;", "quot;", "apos;"].iter().any(|known| rest.starts_with(known))
        };
        faults.extend(text.split('&').skip(1).filter(|rest| !is_entity(rest)).map(str::to_owned));
        faults.extend(text.contains('>').then(|| text.to_owned()));
    }
    faults.extend(open);
    faults
}
