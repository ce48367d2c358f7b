//! A model on disk, whatever its file format.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::require;
use crate::layout::Layout;
use crate::stored::Stored;
use crate::tokenizer::{TOKENIZER, TokenizerFiles};
use crate::{DecoderConfig, Error, folder, gguf, tokenizer};

/// A language model on disk: its configuration, and its tensors by Hugging Face name and in Hugging Face layout.
///
/// Opening reads the configuration and the headers of the weight files, and checks that they hold exactly the tensors
/// of the configured model. [`read`](Self::read) reads one tensor, so a pipeline stage reads its own alone.
///
/// ```no_run
/// # fn main() -> Result<(), thinwire_pretrained::Error> {
/// let model = thinwire_pretrained::Pretrained::open("SmolLM2-135M")?;
/// let hidden = model.config().hidden;
/// let norm = model.read("model.norm.weight", &[hidden])?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Pretrained {
    path: PathBuf,
    config: DecoderConfig,
    tensors: BTreeMap<String, Source>,
    tokenizer: tokenizer::Source,
}

/// Where a tensor is, and how it differs there from Hugging Face's layout.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) stored: Stored,
    pub(crate) layout: Layout,
}

impl Source {
    pub(crate) fn plain(stored: Stored) -> Self {
        Self { stored, layout: Layout::Same }
    }
}

impl Pretrained {
    /// Opens a Hugging Face folder or a `.gguf` file.
    ///
    /// # Errors
    /// Nothing of the kind is at `path`, a file is damaged, the model is of a kind that is not supported, or the
    /// tensors are not those of the configuration: one missing, unexpected or of another shape.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let no_model = |found| Error::NoModel { path: path.into(), found };
        let model = if path.is_dir() {
            if !path.join(folder::CONFIG).is_file() {
                return Err(no_model("a folder without config.json"));
            }
            let (config, tensors) = folder::open(path)?;
            Self { path: path.into(), config, tensors, tokenizer: tokenizer::Source::Folder }
        } else if gguf::is_gguf(path) {
            let (config, tensors, metadata) = gguf::open(path)?;
            Self {
                path: path.into(),
                config,
                tensors,
                tokenizer: tokenizer::Source::Gguf(Box::new(metadata)),
            }
        } else {
            let exists = path.try_exists().map_err(Error::io("open", path))?;
            return Err(no_model(if exists { "a file of another kind" } else { "nothing" }));
        };
        model.check()?;
        Ok(model)
    }

    /// The folder or file it was opened from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the model computes.
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// Names of all tensors, sorted: those of [`DecoderConfig::tensors`].
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Whether there is a tensor of this name. `lm_head.weight` exists only in a model that is not tied.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// The values of a tensor as f32, row-major, in Hugging Face's layout.
    ///
    /// # Errors
    /// There is no tensor `name`, its shape is not `shape`, or the file cannot be read.
    pub fn read(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        let what = || format!("tensor `{name}`");
        let Some(source) = self.tensors.get(name) else {
            return Err(Error::mismatch(&self.path, what(), format_args!("shape {shape:?}"), "none"));
        };
        let found = source.shape();
        let file = &source.stored.path;
        require(found == shape, file, what(), format_args!("shape {shape:?}"), format_args!("{found:?}"))?;
        Ok(source.layout.to_hugging_face(source.stored.read()?, &source.stored.shape))
    }

    /// The tokenizer that came with the model.
    ///
    /// # Errors
    /// There is none, it cannot be read, is of a kind that is not supported, or has more tokens than the model.
    pub fn tokenizer(&self) -> Result<TokenizerFiles, Error> {
        let (path, files) = match &self.tokenizer {
            tokenizer::Source::Folder => {
                let path = self.path.join(TOKENIZER);
                let expected = format_args!("`{TOKENIZER}`");
                require(path.is_file(), &self.path, "tokenizer", expected, "none")?;
                let files = TokenizerFiles::read(&path)?;
                (path, files)
            }
            tokenizer::Source::Gguf(metadata) => {
                (self.path.clone(), tokenizer::from_gguf(&self.path, metadata)?)
            }
        };
        let (most, found) = (self.config.vocab, files.vocab_size);
        let expected = format_args!("at most {most} tokens, as the model has");
        require(found <= most, &path, "tokenizer", expected, found)?;
        Ok(files)
    }

    /// Compares the tensors with those of the configuration.
    fn check(&self) -> Result<(), Error> {
        let expected: BTreeMap<_, _> =
            self.config.tensors().into_iter().map(|tensor| (tensor.name, tensor.shape)).collect();
        let missing: Vec<_> = expected.keys().filter(|name| !self.has(name)).cloned().collect();
        let unexpected: Vec<_> =
            self.tensors.keys().filter(|name| !expected.contains_key(*name)).cloned().collect();
        if !missing.is_empty() || !unexpected.is_empty() {
            return Err(Error::Tensors { path: self.path.clone(), missing, unexpected });
        }
        for (name, source) in &self.tensors {
            let (expected, found) = (&expected[name], source.shape());
            let what = format_args!("shape of tensor `{name}`");
            require(
                found == *expected,
                &source.stored.path,
                what,
                format_args!("{expected:?}"),
                format_args!("{found:?}"),
            )?;
        }
        Ok(())
    }
}

impl Source {
    /// In Hugging Face's layout.
    fn shape(&self) -> Vec<usize> {
        self.layout.shape(&self.stored.shape)
    }
}
