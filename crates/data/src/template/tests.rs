use serde_json::{Value as Json, json};

use super::*;
use crate::conversation::Conversation;
use crate::source::Kind;

fn template(source: &str) -> ChatTemplate {
    ChatTemplate::new(source, BTreeMap::new(), "2024-07-26".parse().unwrap()).unwrap()
}

fn conversation(messages: &[(&str, &str)]) -> Conversation {
    let messages: Vec<Json> =
        messages.iter().map(|(role, content)| json!({"role": role, "content": content})).collect();
    let record = serde_json::from_value(json!({"messages": messages})).unwrap();
    Conversation::new(&record, &Kind::Messages("messages".to_owned())).unwrap()
}

/// The text with its answers in brackets.
fn answers(source: &str, messages: &[(&str, &str)]) -> Result<String, RecordError> {
    let rendered = template(source).render_answers(&conversation(messages), &["<end>".to_owned()])?;
    let mut text = rendered.text;
    for Range { start, end } in rendered.answers.into_iter().rev() {
        text.insert(end, ']');
        text.insert(start, '[');
    }
    Ok(text)
}

const TALK: [(&str, &str); 4] = [("user", "q"), ("assistant", "a"), ("user", "r"), ("assistant", "b")];
const PROMPT: &str = "{% if add_generation_prompt %}assistant:{% endif %}";

#[test]
fn answers_end_with_their_turn() {
    let plain = "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}";
    let text = answers(&format!("{plain}{PROMPT}"), &TALK).unwrap();
    assert_eq!(
        text, "user:q\nassistant:[a\n]user:r\nassistant:[b\n]",
        "the line break is the end of the turn"
    );
    let ended = plain.replace('\n', "<end>\n");
    let text = answers(&format!("{ended}{PROMPT}"), &TALK).unwrap();
    assert_eq!(text, "user:q<end>\nassistant:[a<end>]\nuser:r<end>\nassistant:[b<end>]\n");
}

#[test]
fn a_last_turn_of_another_form_is_no_hindrance() {
    let source = "{% for m in messages %}{{ m.role }}:{% if loop.last and m.role == 'assistant' %}(thought){% endif %}\
                  {{ m.content }}<end>\n{% endfor %}";
    let text = answers(&format!("{source}{PROMPT}"), &TALK).unwrap();
    assert_eq!(text, "user:q<end>\nassistant:[a<end>]\nuser:r<end>\nassistant:[(thought)b<end>]\n");
}

#[test]
fn a_template_that_shows_no_answers_is_told() {
    let counts = format!("{{{{ messages|length }}}}{PROMPT}");
    assert_eq!(answers(&counts, &TALK), Err(RecordError::NoSpan(1)));
    let raises = "{{ raise_exception('roles must take turns') }}";
    let error = answers(raises, &TALK).unwrap_err();
    assert_eq!(error.to_string(), "the chat template: roles must take turns");
    let error = answers("{{ messages[0].content.nothing() }}", &TALK).unwrap_err();
    assert!(error.to_string().starts_with("the chat template: unknown method"), "{error}");
}

#[test]
fn a_template_without_end_is_stopped() {
    let source = "{% for a in range(99999) %}{% for b in range(99999) %}{{ b }}{% endfor %}{% endfor %}";
    let error = answers(source, &TALK).unwrap_err();
    assert!(error.to_string().contains("fuel"), "{error}");
}

#[test]
fn marks_in_a_record_are_no_answers() {
    let source = "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}\
                  {% else %}{{ m.content }}{% endif %}{% endfor %}";
    assert_eq!(answers(source, &TALK).unwrap(), "q[a]r[b]");
    let forged = [("user", "\u{fdd0}q\u{fdd1}"), ("assistant", "a")];
    assert_eq!(answers(source, &forged), Err(RecordError::Reserved));
}

#[test]
fn what_python_gives_is_there() {
    let source = "{{ strftime_now('%d %b %Y') }} {{ {'b': [1, none], 'a': '<\u{e9}>'}|tojson }}\
                  {{ {'a': [1]}|tojson(indent=2) }} {{ 'ab'.upper() }}";
    let text = template(source).render(&[], None, false).unwrap();
    assert_eq!(text, "26 Jul 2024 {\"b\": [1, null], \"a\": \"<\u{e9}>\"}{\n  \"a\": [\n    1\n  ]\n} AB");
}
