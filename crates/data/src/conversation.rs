//! Records to conversations, in the form that chat templates take.

use minijinja::Value;
use minijinja::value::ValueKind;

use crate::Columns;
use crate::damage::RecordError;
use crate::source::Kind;

/// Messages in order. At least one is an answer.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    /// Each an object with a `role` and a `content`, and what else the record has (`tool_calls`, `name`).
    pub(crate) messages: Vec<Value>,
    /// The record's `tools`, which some templates describe in front of the first message.
    pub(crate) tools: Option<Value>,
}

const ASSISTANT: &str = "assistant";

impl Conversation {
    /// The conversation in a record of this kind.
    pub(crate) fn new(record: &Value, kind: &Kind) -> Result<Self, RecordError> {
        if record.kind() != ValueKind::Map {
            return Err(RecordError::NotAnObject);
        }
        let (messages, tools) = match kind {
            Kind::Messages(field) => (list(record, field, message)?, tools(record)?),
            Kind::Sharegpt(field) => {
                (from_first_question(list(record, field, sharegpt_message)?), tools(record)?)
            }
            Kind::Alpaca(columns) => (alpaca_messages(record, columns)?, None),
            Kind::Plain | Kind::Text(_) => unreachable!("texts are no conversations"),
        };
        if messages.is_empty() {
            return Err(RecordError::EmptyConversation);
        }
        let conversation = Self { messages, tools };
        if conversation.answers().next().is_none() {
            return Err(RecordError::NoAnswer);
        }
        Ok(conversation)
    }

    /// Which messages are answers.
    pub(crate) fn answers(&self) -> impl Iterator<Item = usize> + '_ {
        let is_answer = |message: &Value| role(message).is_some_and(|role| role == ASSISTANT);
        (0..self.messages.len()).filter(move |&at| is_answer(&self.messages[at]))
    }
}

fn role(message: &Value) -> Option<String> {
    Some(message.get_attr("role").ok()?.as_str()?.to_owned())
}

/// A field's list of messages, each made by `convert`, which gets its number.
fn list(
    record: &Value,
    field: &str,
    convert: impl Fn(usize, &Value) -> Result<Value, RecordError>,
) -> Result<Vec<Value>, RecordError> {
    let value = present(record, field).ok_or_else(|| RecordError::Missing(field.to_owned()))?;
    if value.kind() != ValueKind::Seq {
        return Err(RecordError::WrongType { field: field.to_owned(), expected: "a list of messages" });
    }
    let items = value.try_iter().map_err(|error| RecordError::Template(error.to_string()))?;
    items.enumerate().map(|(at, item)| convert(at, &item)).collect()
}

/// A field that is there and not null.
fn present(record: &Value, field: &str) -> Option<Value> {
    record.get_attr(field).ok().filter(|value| !value.is_undefined() && !value.is_none())
}

fn text(record: &Value, field: &str) -> Result<String, RecordError> {
    let value = present(record, field).ok_or_else(|| RecordError::Missing(field.to_owned()))?;
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| RecordError::WrongType { field: field.to_owned(), expected: "a text" })
}

/// Takes a message as it is. Parquet has a column for each field that any message has: absent ones are null there.
fn message(at: usize, message: &Value) -> Result<Value, RecordError> {
    if message.kind() != ValueKind::Map {
        return Err(RecordError::NotAMessage(at));
    }
    let role = role(message).ok_or(RecordError::NotAMessage(at))?;
    if !["system", "developer", "user", ASSISTANT, "tool", "function", "ipython"].contains(&&*role) {
        return Err(RecordError::UnknownRole(role));
    }
    let content = message.get_attr("content").unwrap_or_default();
    let calls_tools = role == ASSISTANT && present(message, "tool_calls").is_some();
    match content.kind() {
        ValueKind::String | ValueKind::Seq => {}
        ValueKind::None | ValueKind::Undefined if calls_tools => {}
        _ => return Err(RecordError::NotAMessage(at)),
    }
    let keys = message.try_iter().map_err(|_| RecordError::NotAMessage(at))?;
    let fields = keys.filter_map(|key| Some((key.clone(), message.get_item(&key).ok()?)));
    Ok(Value::from_pairs(fields.filter(|(key, value)| key.as_str() == Some("content") || !value.is_none())))
}

fn sharegpt_message(at: usize, item: &Value) -> Result<Value, RecordError> {
    let field = |name| item.get_attr(name).ok().and_then(|value| value.as_str().map(str::to_owned));
    let (Some(from), Some(value)) = (field("from"), field("value")) else {
        return Err(RecordError::NotAMessage(at));
    };
    let role = match &*from {
        "human" | "user" => "user",
        "gpt" | "assistant" | "chatgpt" | "bard" | "bing" | "model" => ASSISTANT,
        "system" => "system",
        "tool" | "function" | "observation" => "tool",
        _ => return Err(RecordError::UnknownRole(from)),
    };
    Ok(plain_message(role, &value))
}

/// Long conversations are cut into records, and then one begins with an answer to what is not in it: that answer is left
/// out.
fn from_first_question(mut messages: Vec<Value>) -> Vec<Value> {
    let is = |message: &Value, wanted: &str| role(message).is_some_and(|role| role == wanted);
    let first = messages.iter().position(|message| !is(message, "system")).unwrap_or(0);
    let answers = messages[first..].iter().take_while(|message| is(message, ASSISTANT)).count();
    messages.drain(first..first + answers);
    messages
}

/// One question, the input below the instruction, and its answer.
fn alpaca_messages(record: &Value, columns: &Columns) -> Result<Vec<Value>, RecordError> {
    let optional = |field| match present(record, field) {
        Some(_) => text(record, field),
        None => Ok(String::new()),
    };
    let mut question = text(record, &columns.instruction)?;
    let input = optional(&columns.input)?;
    let answer = text(record, &columns.output)?;
    if !input.is_empty() {
        question = format!("{question}\n\n{input}");
    }
    let system = Some(optional("system")?).filter(|system| !system.is_empty());
    let system = system.map(|system| plain_message("system", &system));
    let exchange = [plain_message("user", &question), plain_message(ASSISTANT, &answer)];
    Ok(system.into_iter().chain(exchange).collect())
}

fn plain_message(role: &str, content: &str) -> Value {
    Value::from_pairs([("role", role), ("content", content)])
}

/// A list of tools, which some data sets keep as the text of its JSON.
fn tools(record: &Value) -> Result<Option<Value>, RecordError> {
    let Some(tools) = present(record, "tools") else { return Ok(None) };
    let tools = match tools.as_str() {
        Some(json) if json.trim().is_empty() => return Ok(None),
        Some(json) => serde_json::from_str(json).map_err(|error| RecordError::Json(error.to_string()))?,
        None => tools,
    };
    match tools.kind() {
        ValueKind::Seq => Ok(Some(tools).filter(|tools| tools.len() != Some(0))),
        _ => Err(RecordError::WrongType { field: "tools".to_owned(), expected: "a list" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(kind: &Kind, json: &str) -> Result<String, RecordError> {
        let record: Value = serde_json::from_str(json).unwrap();
        let conversation = Conversation::new(&record, kind)?;
        Ok(serde_json::to_string(&conversation.messages).unwrap())
    }

    #[test]
    fn every_style_becomes_messages() {
        let asked = r#"[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]"#;
        let messages = Kind::Messages("messages".into());
        assert_eq!(new(&messages, &format!(r#"{{"messages": {asked}}}"#)).unwrap(), asked);
        let sharegpt = Kind::Sharegpt("talk".into());
        let json = r#"{"talk": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}"#;
        assert_eq!(new(&sharegpt, json).unwrap(), asked);
        // Cut in the middle of a longer one.
        let rest = json.replace("[{\"from\": \"human", r#"[{"from": "gpt", "value": "x"}, {"from": "human"#);
        assert_eq!(new(&sharegpt, &rest).unwrap(), asked);
        let only_answer = r#"{"talk": [{"from": "gpt", "value": "x"}]}"#;
        assert_eq!(new(&sharegpt, only_answer).unwrap_err().to_string(), "the conversation is empty");
        let alpaca = Kind::Alpaca(Columns::default());
        assert_eq!(new(&alpaca, r#"{"instruction": "q", "input": "", "output": "a"}"#).unwrap(), asked);
        assert_eq!(new(&alpaca, r#"{"instruction": "q", "output": "a"}"#).unwrap(), asked);
        let with_input = new(&alpaca, r#"{"instruction": "q", "input": "i", "output": "a"}"#).unwrap();
        assert_eq!(with_input, asked.replace("\"q\"", r#""q\n\ni""#));
    }

    #[test]
    fn other_fields_keep_their_order_and_nulls_go() {
        let call = r#"{"role":"assistant","content":null,"tool_calls":[{"z":1,"a":2}]}"#;
        let kind = Kind::Messages("messages".into());
        let json =
            format!(r#"{{"messages": [{}]}}"#, call.replace("\"content\"", r#""name":null,"content""#));
        assert_eq!(new(&kind, &json).unwrap(), format!("[{call}]"));
    }

    #[test]
    fn what_is_damaged_is_told() {
        let kind = Kind::Messages("messages".into());
        let user = r#"{"role": "user", "content": "q"}"#;
        for (json, expected) in [
            ("3".to_owned(), "not an object"),
            ("{}".to_owned(), "the field `messages` is missing"),
            (r#"{"messages": null}"#.to_owned(), "the field `messages` is missing"),
            (r#"{"messages": "hi"}"#.to_owned(), "the field `messages` is not a list of messages"),
            (r#"{"messages": []}"#.to_owned(), "the conversation is empty"),
            (format!(r#"{{"messages": [{user}]}}"#), "the conversation has no answer"),
            (
                format!(r#"{{"messages": [{user}, 3]}}"#),
                "message 1 is not an object with a role and a content",
            ),
            (r#"{"messages": [{"role": "robot", "content": ""}]}"#.to_owned(), "unknown role `robot`"),
            (
                r#"{"messages": [{"role": "assistant", "content": null}]}"#.to_owned(),
                "message 0 is not an object with a role and a content",
            ),
        ] {
            assert_eq!(new(&kind, &json).unwrap_err().to_string(), expected);
        }
        let error = new(&Kind::Alpaca(Columns::default()), r#"{"instruction": "q", "output": 3}"#);
        assert_eq!(error.unwrap_err().to_string(), "the field `output` is not a text");
    }
}
