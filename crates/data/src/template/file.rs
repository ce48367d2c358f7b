//! Where a chat template is kept: `chat_template.jinja`, or `chat_template` in `tokenizer_config.json`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{DataError, ModelTexts, TemplateError};

const CONFIG_FILE: &str = "tokenizer_config.json";
const TEMPLATE_FILE: &str = "chat_template.jinja";

/// The part of a `tokenizer_config.json` that concerns texts.
#[derive(Debug, Default, Deserialize)]
struct TokenizerConfig {
    chat_template: Option<Template>,
    #[serde(flatten)]
    others: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Template {
    One(String),
    Named(Vec<NamedTemplate>),
}

#[derive(Debug, Deserialize)]
struct NamedTemplate {
    name: String,
    template: String,
}

/// What `folder` says of a model's texts, and the file with the template, which it may not have.
pub(crate) fn find(folder: &Path) -> Result<(PathBuf, ModelTexts), DataError> {
    let config = config(folder)?;
    let special_tokens = config.special_tokens();
    let path = folder.join(TEMPLATE_FILE);
    if path.is_file() {
        let chat_template = Some(text(&path)?);
        return Ok((path, ModelTexts { chat_template, special_tokens }));
    }
    Ok((folder.join(CONFIG_FILE), ModelTexts { chat_template: config.template(), special_tokens }))
}

/// The template in `path`; the special tokens are those of its `tokenizer_config.json`, else `special_tokens`, else those
/// of the folder it lies in.
pub(super) fn read(
    path: &Path,
    special_tokens: Option<BTreeMap<String, String>>,
) -> Result<(String, BTreeMap<String, String>), DataError> {
    if path.extension().is_some_and(|end| end == "json") {
        let config = parse(path, &text(path)?)?;
        let special_tokens = config.special_tokens();
        let missing = || DataError::Template { path: path.into(), source: TemplateError::Missing };
        return Ok((config.template().ok_or_else(missing)?, special_tokens));
    }
    let special_tokens = match special_tokens {
        Some(special_tokens) => special_tokens,
        None => config(path.parent().unwrap_or(Path::new("")))?.special_tokens(),
    };
    Ok((text(path)?, special_tokens))
}

/// What the `tokenizer_config.json` in `folder` says; nothing, if there is none.
fn config(folder: &Path) -> Result<TokenizerConfig, DataError> {
    let path = folder.join(CONFIG_FILE);
    match text(&path) {
        Ok(json) => parse(&path, &json),
        Err(DataError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(TokenizerConfig::default())
        }
        Err(error) => Err(error),
    }
}

fn parse(path: &Path, json: &str) -> Result<TokenizerConfig, DataError> {
    let wrong = |source| DataError::Template { path: path.into(), source: TemplateError::Json(source) };
    serde_json::from_str(json).map_err(wrong)
}

fn text(path: &Path) -> Result<String, DataError> {
    fs::read_to_string(path).map_err(|source| DataError::Read { path: path.into(), source })
}

impl TokenizerConfig {
    /// A name such as `eos_token` and its text; kept as a text, or as an object with the text as `content`.
    fn special_tokens(&self) -> BTreeMap<String, String> {
        let token = |value: &serde_json::Value| {
            value.as_str().or_else(|| value.get("content")?.as_str()).map(str::to_owned)
        };
        let named = self.others.iter().filter(|(name, _)| name.ends_with("_token"));
        named.filter_map(|(name, value)| Some((name.clone(), token(value)?))).collect()
    }

    /// Of several templates, the one named `default`.
    fn template(self) -> Option<String> {
        match self.chat_template? {
            Template::One(template) => Some(template),
            Template::Named(templates) => {
                let default = templates.into_iter().find(|template| template.name == "default");
                default.map(|template| template.template)
            }
        }
    }
}
