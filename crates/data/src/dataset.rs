//! Files as sequences of tokens.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cache::{self, Sink};
use crate::encoder::Encoder;
use crate::entry::START;
use crate::hash::sha256_hex;
use crate::rows::Rows;
use crate::source::{self, Content, Kind, Place};
use crate::store::Entries;
use crate::template::ChatTemplate;
use crate::{Damage, DataError, DataSettings, Packing, Tokenizer};

/// Goes into the key of tokenized data; counts up when the same files and settings give other tokens.
const VERSION: u32 = 1;

/// Up to this many bytes of files are tokenized at every start and held in memory.
const HELD_IN_MEMORY: u64 = 16 << 20;

/// Tokens that end texts, by their names in common vocabularies.
const ENDS_OF_TEXT: [&str; 4] = ["<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"];

/// Where tokenized data is kept.
#[derive(Debug, Clone, Copy)]
pub enum Cache<'a> {
    /// In this folder.
    Always(&'a Path),
    /// In this folder if the files have more than 16 MiB; else in memory.
    IfLarge(&'a Path),
    /// In memory, however much it is.
    Never,
}

/// How far files have been tokenized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Files done.
    pub files: usize,
    /// Files in all.
    pub all_files: usize,
    /// Records read.
    pub records: u64,
    /// Tokens made.
    pub tokens: u64,
}

/// What a data set comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Documents or conversations.
    pub documents: u64,
    /// Tokens, those between documents included.
    pub tokens: u64,
    /// Predictions that are trained on in an epoch.
    pub trained: u64,
    /// What could not be used.
    pub damage: Damage,
}

/// Tokenized files, cut into sequences. Only a list of sequences is held in memory: 16 bytes for each, or none for a
/// stream in which every token is trained on.
#[derive(Debug)]
pub struct Dataset {
    pub(crate) entries: Entries,
    pub(crate) rows: Rows,
    pub(crate) packing: Packing,
    content: String,
    settings: String,
    damage: Damage,
}

/// What the tokens depend on, besides the files and the tokenizer.
#[derive(Serialize)]
struct Identity<'a> {
    kind: &'a Kind,
    packing: Packing,
    end_of_text: Option<u32>,
    template: Option<String>,
}

impl Dataset {
    /// Reads, or has read before, the files that `paths` name (files, folders, patterns), and cuts them into sequences
    /// of at most `sequence` predictions. `progress` hears of the work as it goes on.
    ///
    /// # Errors
    /// Files that are not there or cannot be read; more damaged records than the settings allow; a template or
    /// end-of-text token that is missing; nothing to train on.
    pub fn open(
        paths: &[PathBuf],
        settings: &DataSettings,
        tokenizer: &Tokenizer,
        sequence: usize,
        cache: Cache<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, DataError> {
        let files = source::expand(paths)?;
        let first = || files.first().cloned().unwrap_or_default();
        let kind = source::detect(&files, settings)?;
        let template = template(&kind, settings, tokenizer)?;
        let end = end_of_text(&kind, &files, settings, tokenizer)?;
        let identity = identity(&kind, settings, end, template.as_ref());
        let content = source::content_sha256(&files)?;
        let special_tokens = tokenizer.special_tokens();
        let end = end.filter(|_| !kind.is_conversation() || settings.packing == Packing::Full);
        let encoder = Encoder { tokenizer, kind: &kind, template: template.as_ref(), special_tokens, end };
        let mut build = |sink: &mut Sink<'_>| {
            let damage = build(&files, &encoder, sink, progress)?;
            allowed(&damage, settings.damaged)?;
            Ok(damage)
        };
        let (entries, damage) = match cache {
            Cache::Never => in_memory(&mut build)?,
            Cache::IfLarge(_) if source::total_bytes(&files)? <= HELD_IN_MEMORY => in_memory(&mut build)?,
            Cache::Always(folder) | Cache::IfLarge(folder) => {
                let key = format!("{VERSION}\n{content}\n{}\n{identity}", tokenizer.id());
                cache::open(folder, &sha256_hex(key.as_bytes()), build)?
            }
        };
        allowed(&damage, settings.damaged)?;
        if entries.len() < 2 {
            return Err(DataError::TooShort { path: first(), tokens: entries.len() });
        }
        let rows = Rows::new(&entries, settings.packing, sequence)?;
        if rows.trained == 0 {
            return Err(DataError::NothingTrained { path: first() });
        }
        Ok(Self { entries, rows, packing: settings.packing, content, settings: identity, damage })
    }

    /// A stream of tokens, all trained on.
    #[cfg(test)]
    pub(crate) fn from_entries(entries: Vec<u32>, packing: Packing, sequence: usize) -> Self {
        let entries = Entries::Memory(entries);
        let rows = Rows::new(&entries, packing, sequence).unwrap();
        let (content, settings, damage) = Default::default();
        Self { entries, rows, packing, content, settings, damage }
    }

    /// SHA-256 of the files, in hexadecimal: of one file its contents', of several that of theirs in a row.
    pub fn content(&self) -> &str {
        &self.content
    }

    /// What else the tokens depend on, the tokenizer apart, as JSON: stages compare it.
    pub fn settings(&self) -> &str {
        &self.settings
    }

    /// Sequences that an epoch goes through: the places that [`MicroBatch::ids`](crate::MicroBatch::ids) name.
    pub fn samples(&self) -> usize {
        self.rows.count()
    }

    /// Predictions of the longest sequence.
    pub fn longest(&self) -> usize {
        self.rows.longest()
    }

    /// What the files come to.
    pub fn summary(&self) -> Summary {
        Summary {
            documents: self.rows.documents,
            tokens: self.entries.len(),
            trained: self.rows.trained,
            damage: self.damage.clone(),
        }
    }
}

/// `1200 documents, 340000 tokens, 120000 trained on`, and what could not be used.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { documents, tokens, trained, damage } = self;
        write!(f, "{documents} documents, {tokens} tokens, {trained} trained on")?;
        if damage.damaged > 0 { write!(f, "; {damage}") } else { Ok(()) }
    }
}

fn template(
    kind: &Kind,
    settings: &DataSettings,
    tokenizer: &Tokenizer,
) -> Result<Option<ChatTemplate>, DataError> {
    if !kind.is_conversation() {
        return Ok(None);
    }
    ChatTemplate::load(settings.template.as_deref(), tokenizer, &settings.date).map(Some)
}

/// What stands between documents; a single text has nothing to be kept apart from.
fn end_of_text(
    kind: &Kind,
    files: &[PathBuf],
    settings: &DataSettings,
    tokenizer: &Tokenizer,
) -> Result<Option<u32>, DataError> {
    if let Some(token) = &settings.end_of_text {
        let id = tokenizer.token_id(token);
        return id.map(Some).ok_or_else(|| DataError::EndOfText { token: token.clone() });
    }
    if *kind == Kind::Plain && files.len() == 1 {
        return Ok(None);
    }
    let Some((_, texts)) = tokenizer.texts()? else {
        // Bytes: the one that no text has.
        return Ok(Some(0));
    };
    let configured = texts.special_tokens.get("eos_token").map(String::as_str);
    let id = ENDS_OF_TEXT.into_iter().chain(configured).find_map(|token| tokenizer.token_id(token));
    id.map(Some).ok_or_else(|| DataError::EndOfText { token: ENDS_OF_TEXT.join("`, `") })
}

fn identity(
    kind: &Kind,
    settings: &DataSettings,
    end_of_text: Option<u32>,
    template: Option<&ChatTemplate>,
) -> String {
    let template = template.map(|template| {
        let hash = sha256_hex(template.identity.as_bytes());
        format!("sha256:{hash} on {}", settings.date)
    });
    let identity = Identity { kind, packing: settings.packing, end_of_text, template };
    serde_json::to_string(&identity).expect("texts and numbers are JSON")
}

fn allowed(damage: &Damage, share: f64) -> Result<(), DataError> {
    if damage.share() > share {
        return Err(DataError::Damaged { damage: damage.clone(), allowed: share });
    }
    Ok(())
}

fn in_memory(
    build: &mut impl FnMut(&mut Sink<'_>) -> Result<Damage, DataError>,
) -> Result<(Entries, Damage), DataError> {
    let mut entries = Vec::new();
    let damage = build(&mut |piece| {
        entries.extend_from_slice(piece);
        Ok(())
    })?;
    Ok((Entries::Memory(entries), damage))
}

/// Tokenizes every record into `sink`.
fn build(
    files: &[PathBuf],
    encoder: &Encoder<'_>,
    sink: &mut Sink<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Damage, DataError> {
    let mut damage = Damage::default();
    let mut done = Progress { files: 0, all_files: files.len(), records: 0, tokens: 0 };
    let columns = encoder.kind.columns();
    for path in files {
        let mut begins = true;
        let container = encoder.kind.container(path)?;
        source::read(path, container, &columns, &mut |at, content| {
            let mut last = true;
            let entries = match content {
                Ok(Content::Record(record)) => encoder.record(&record),
                Ok(Content::Text(piece, is_last)) => {
                    last = is_last;
                    encoder.piece(&piece).map(|mut entries| {
                        if let Some(first) = entries.first_mut().filter(|_| std::mem::take(&mut begins)) {
                            *first |= START;
                        }
                        if last && !begins {
                            encoder.end(&mut entries);
                        }
                        entries
                    })
                }
                Err(error) => Err(error),
            };
            damage.records += u64::from(last);
            match entries {
                Ok(entries) => {
                    done.tokens += entries.len() as u64;
                    sink(&entries).map_err(|source| DataError::Cache { path: path.clone(), source })?;
                }
                Err(error) => damage.count(Place(path, at), &error),
            }
            done.records = damage.records;
            progress(done);
            Ok(())
        })?;
        done.files += 1;
        progress(done);
    }
    Ok(damage)
}

#[cfg(test)]
mod tests;
