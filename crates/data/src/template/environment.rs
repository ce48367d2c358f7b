//! What transformers gives to chat templates, on top of Jinja.

use jiff::civil::Date;
use jiff::fmt::strtime;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value};
use minijinja::{AutoEscape, Environment, Error, ErrorKind};
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{Formatter, PrettyFormatter};

use super::generation;

/// Begins the detail of an error that the template itself raises.
pub(super) const RAISED: &str = "raised: ";

/// Instructions, and 64 bytes of text each, that one rendering may take; real ones take thousands.
const FUEL: u64 = 10_000_000;

/// An environment without templates, in which today is `date`.
pub(super) fn new(date: Date) -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the usual delimiters"));
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.set_fuel(Some(FUEL));
    environment.add_filter("tojson", to_json);
    environment.add_filter(generation::FILTER, generation::mark);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", move |format: &str| {
        strtime::format(format, date)
            .map_err(|error| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: {error}")))
    });
    environment
}

fn raise_exception(message: &str) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, format!("{RAISED}{message}")))
}

/// As Python's `json.dumps(value, ensure_ascii=False, indent=indent)`.
#[expect(clippy::needless_pass_by_value, reason = "a filter owns its arguments")]
fn to_json(value: &Value, arguments: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = arguments.get("indent")?;
    let failed = |error| Error::new(ErrorKind::BadSerialization, "tojson").with_source(error);
    // Without a meaning here: `ensure_ascii` is always off, the order of keys is kept.
    let (_, _): (Option<bool>, Option<bool>) = (arguments.get("ensure_ascii")?, arguments.get("sort_keys")?);
    arguments.assert_all_used()?;
    let mut json = Vec::new();
    match indent {
        Some(indent) => {
            let indent = " ".repeat(indent.min(16));
            let formatter = PrettyFormatter::with_indent(indent.as_bytes());
            value.serialize(&mut Serializer::with_formatter(&mut json, formatter)).map_err(failed)?;
        }
        None => {
            value.serialize(&mut Serializer::with_formatter(&mut json, PythonFormatter)).map_err(failed)?;
        }
    }
    Ok(String::from_utf8(json).expect("JSON is UTF-8"))
}

/// A space behind commas and colons.
struct PythonFormatter;

impl Formatter for PythonFormatter {
    fn begin_array_value<W: std::io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: std::io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: std::io::Write + ?Sized>(&mut self, out: &mut W) -> std::io::Result<()> {
        out.write_all(b": ")
    }
}
