//! The prompts of the LM Evaluation Harness, version 0.4: `lm_eval/tasks/{hellaswag,piqa,arc,mmlu,super_glue/boolq}`.

use serde_json::Value;

use super::answer::answer;
use super::record::{Choices, Record, letters, texts};
use crate::choices::{Question, RecordError};

/// The choice follows the context after a space, unless one of both has one there.
pub(super) fn generic(record: Record<'_>) -> Result<Question, RecordError> {
    let choices = record.choices()?;
    let right = answer(record, &choices)?;
    let context = record.text("context")?.to_owned();
    let spaced = context.is_empty()
        || context.ends_with(char::is_whitespace)
        || choices.texts.iter().any(|choice| choice.starts_with(char::is_whitespace));
    let question = Question::new(context, choices.texts, right)?;
    Ok(Question { delimiter: if spaced { "" } else { " " }, ..question })
}

/// `ACTIVITY: CONTEXT`, the choices being endings.
pub(super) fn hellaswag(record: Record<'_>) -> Result<Question, RecordError> {
    let (context, endings) = match record.get("endings") {
        Some(endings) => (scene(record)?, endings),
        None => (record.text("question")?.to_owned(), record.get("answer").unwrap_or(&Value::Null)),
    };
    let field = "endings";
    let endings = texts(endings).ok_or(RecordError::Field { field, expected: "a list of strings" })?;
    let texts: Vec<String> = endings.iter().map(|ending| without_wikihow(ending)).collect();
    let right = answer(record, &Choices { labels: letters(texts.len()), texts: texts.clone() })?;
    Question::new(without_wikihow(&context), texts, right)
}

/// Of the data set's own files: the activity, the first sentence, the begin of the second.
fn scene(record: Record<'_>) -> Result<String, RecordError> {
    let begin = match (record.text("ctx_a"), record.text("ctx_b")) {
        (Ok(first), Ok(second)) => format!("{first} {}", capitalized(second)),
        _ => record.text("ctx")?.to_owned(),
    };
    Ok(match record.text("activity_label") {
        Ok(activity) => format!("{activity}: {begin}"),
        Err(_) => begin,
    })
}

/// As Python's `capitalize`: the first letter upper, all others lower case.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters.flat_map(char::to_lowercase)).collect()
}

/// Without the marks of `WikiHow` articles: ` [title]` ends a sentence, everything else in brackets goes.
fn without_wikihow(text: &str) -> String {
    let text = text.trim().replace(" [title]", ". ");
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, from)) = rest.split_once('[') {
        // As the regular expression `\[.*?\]`, which does not cross lines.
        let end = from.find(']').filter(|&end| !from[..end].contains('\n'));
        kept.push_str(before);
        rest = if let Some(end) = end {
            &from[end + 1..]
        } else {
            kept.push('[');
            from
        };
    }
    kept.push_str(rest);
    kept.replace("  ", " ")
}

/// `Question: GOAL`, the choices being ways to reach it.
pub(super) fn piqa(record: Record<'_>) -> Result<Question, RecordError> {
    if record.get("sol1").is_none() {
        return asked(record);
    }
    let texts = vec![record.text("sol1")?.to_owned(), record.text("sol2")?.to_owned()];
    let choices = Choices { labels: letters(2), texts };
    let right = answer(record, &choices)?;
    Question::new(question_and_answer(record.text("goal")?), choices.texts, right)
}

/// `Question: QUESTION`, the choices as texts.
pub(super) fn arc(record: Record<'_>) -> Result<Question, RecordError> {
    asked(record)
}

fn asked(record: Record<'_>) -> Result<Question, RecordError> {
    let choices = record.choices()?;
    let right = answer(record, &choices)?;
    Question::new(question_and_answer(record.text("question")?), choices.texts, right)
}

fn question_and_answer(question: &str) -> String {
    format!("Question: {question}\nAnswer:")
}

/// The subject, the question, the lettered choices; letters are what is chosen from.
pub(super) fn mmlu(record: Record<'_>) -> Result<Question, RecordError> {
    let choices = record.choices()?;
    let right = answer(record, &choices)?;
    let mut context = String::new();
    if let Ok(subject) = record.text("subject") {
        let subject = subject.replace('_', " ");
        context = format!(
            "The following are multiple choice questions (with answers) about {}.\n\n",
            subject.trim()
        );
    }
    context += record.text("question")?.trim();
    let letters = letters(choices.texts.len());
    for (letter, text) in letters.iter().zip(&choices.texts) {
        context.extend(["\n", letter, ". ", text]);
    }
    Question::new(context + "\nAnswer:", letters, right)
}

/// The passage, then the question; `no` or `yes`.
pub(super) fn boolq(record: Record<'_>) -> Result<Question, RecordError> {
    let value = record.get("label").or_else(|| record.get("answer"));
    let value = value.ok_or(RecordError::NoAnswer { fields: "`label`, `answer`" })?;
    let right = match (value.as_bool(), value.as_u64(), value.as_str()) {
        (Some(yes), ..) => usize::from(yes),
        (_, Some(index @ 0..=1), _) => index as usize,
        (_, _, Some("False" | "false" | "no")) => 0,
        (_, _, Some("True" | "true" | "yes")) => 1,
        _ => return Err(RecordError::NoSuchChoice { answer: value.to_string(), choices: 2 }),
    };
    let (passage, question) = (record.text("passage")?, record.text("question")?);
    let context = format!("{passage}\nQuestion: {question}?\nAnswer:");
    Question::new(context, vec!["no".to_owned(), "yes".to_owned()], right)
}
