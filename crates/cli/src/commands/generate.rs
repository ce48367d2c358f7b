//! `thinwire generate`: text from a prompt.

mod report;

use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use thinwire_train::config::TokenizerSource;
use thinwire_train::data::DataError;
use thinwire_train::evaluate::SavedModel;
use thinwire_train::generate::{Generation, Request, Sampling, TextStream};

use self::report::Report;
use crate::compression::Compression;
use crate::error::CommandError;
use crate::output::Output;
use crate::tensor_parallel::{Sums, TensorParallel};

/// Tokens that are generated at most, where the user does not say.
const MAX_TOKENS: usize = 256;

/// Text that continues a prompt, or answers a message.
///
/// The text goes to standard output as it comes, figures to standard error. Runs in one process without links; the
/// activations at the boundaries are encoded and decoded as in training, the prompt as one message and every further
/// token as one of its own.
#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// A run's folder, for its newest complete checkpoint, a checkpoint's folder (step-00000100), a Hugging Face folder
    /// or a .gguf file.
    #[arg(long, value_name = "PATH")]
    model: PathBuf,
    #[command(flatten)]
    prompt: Prompt,
    /// The prompt is a message to the model, which answers it: in its chat template, until its turn ends.
    #[arg(long)]
    chat: bool,
    /// What the model is told before the message.
    #[arg(long, value_name = "TEXT", requires = "chat")]
    system: Option<String>,
    /// Tokens to generate at most [default: 256, or what the prompt leaves of the context].
    #[arg(long, value_name = "N")]
    max_tokens: Option<usize>,
    /// Divides the logits before a token is drawn; 0 takes the most likely token.
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    temperature: f64,
    /// Draw from the fewest tokens that together have this probability.
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    top_p: f64,
    /// Draw from the K most likely tokens [default: all].
    #[arg(long, value_name = "K")]
    top_k: Option<NonZeroUsize>,
    /// Decides what is drawn.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    compression: Compression,
    #[command(flatten)]
    tensor_parallel: TensorParallel,
    /// The tokenizer of training: `byte`, a tokenizer.json, or a model that brings it [default: where the run had it, or
    /// the model's].
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<TokenizerSource>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Prompt {
    /// What the text continues.
    #[arg(long = "prompt", value_name = "TEXT")]
    text: Option<String>,
    /// A file that holds it.
    #[arg(long = "prompt-file", value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Generate {
    pub(crate) fn run(self, output: Output) -> Result<(), CommandError> {
        let model = SavedModel::open(&self.model, self.tokenizer.as_ref())?;
        let (prompt, stop) = self.begin(&model)?;
        let left = model.architecture().context.saturating_sub(prompt.len());
        let sampling = Sampling {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            seed: self.seed,
        };
        let request = Request {
            max_tokens: self.max_tokens.unwrap_or(MAX_TOKENS.min(left)),
            stop,
            prompt: prompt.clone(),
            sampling,
        };
        let sharing = self.tensor_parallel.sharing(&model)?;
        let mut pipeline = model.load_shared(self.compression.boundaries(&model)?, sharing)?;
        let mut generation = Generation::start(&mut pipeline, request)?;
        let text = print(&mut generation, TextStream::after(model.tokenizer(), &prompt), output)?;
        let (end, statistics) = (generation.end(), generation.statistics());
        let report = Report::new(text, end, statistics, pipeline.boundaries());
        let all_reduce = Sums::of(&pipeline, sharing);
        output.end_of_text(&Report { model: self.model, step: model.step(), all_reduce, ..report })?;
        Ok(())
    }

    /// The tokens in front of the text, and those that end it.
    fn begin(&self, model: &SavedModel) -> Result<(Vec<u32>, Vec<u32>), CommandError> {
        let text = self.prompt.read()?;
        let mut stop = model.stop().to_vec();
        if self.chat {
            let prompt = model.chat(self.system.as_deref(), &text)?;
            stop.extend(prompt.end_of_turn);
            return Ok((prompt.tokens, stop));
        }
        let tokens = model.tokenizer().encode(&text)?;
        Ok((model.first().into_iter().chain(tokens).collect(), stop))
    }
}

impl Prompt {
    fn read(&self) -> Result<Vec<u8>, DataError> {
        match (&self.text, &self.file) {
            (Some(text), _) => Ok(text.clone().into_bytes()),
            (None, Some(path)) => {
                fs::read(path).map_err(|source| DataError::Read { path: path.clone(), source })
            }
            (None, None) => unreachable!("one of the two is required"),
        }
    }
}

/// Prints the text as it comes, until its end or until nobody reads on; all of it.
fn print(
    generation: &mut Generation<'_>,
    mut stream: TextStream<'_>,
    output: Output,
) -> Result<String, CommandError> {
    let mut text = String::new();
    for id in generation {
        let piece = stream.push(id?)?;
        text.push_str(&piece);
        if !output.piece(&piece)? {
            return Ok(text);
        }
    }
    let rest = stream.finish()?;
    output.piece(&rest)?;
    Ok(text + &rest)
}
