//! `thinwire eval`: perplexity of a text or accuracy on multiple-choice questions, with compression at the boundaries.

mod choices;
mod report;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{ArgGroup, Args, value_parser};
use thinwire_train::choices::{Format, Questions};
use thinwire_train::config::TokenizerSource;
use thinwire_train::data::{WindowSize, evaluation};
use thinwire_train::evaluate::{Boundary, Pipeline, SavedModel, Sharing};

use self::report::{Report, Uncompressed};
use crate::compression::Compression;
use crate::error::CommandError;
use crate::output::Output;
use crate::progress;
use crate::tensor_parallel::{Sums, TensorParallel};

/// Perplexity of a text, or accuracy on multiple-choice questions.
///
/// Runs in one process without links. The activations at the boundaries are encoded and decoded as in training, so a
/// run's own boundaries and codecs give the perplexity that the run itself reports.
///
/// Boundary K lies in front of block K, counted from 0: 0 is behind the embedding, the number of blocks is in front of
/// the head.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("task").required(true).args(["text", "choices"])))]
pub(crate) struct Eval {
    /// A run's folder, for its newest complete checkpoint, a checkpoint's folder (step-00000100), a Hugging Face folder
    /// or a .gguf file.
    #[arg(long, value_name = "PATH")]
    model: PathBuf,
    /// The text whose perplexity is wanted.
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Multiple-choice questions, as JSON lines.
    #[arg(long, value_name = "FILE")]
    choices: Option<PathBuf>,
    /// What the questions are: auto (by their fields), generic, hellaswag, piqa, arc, mmlu or boolq.
    #[arg(long, value_name = "NAME", default_value = "auto", requires = "choices")]
    format: Format,
    /// The first N questions only [default: all].
    #[arg(long, value_name = "N", requires = "choices")]
    limit: Option<NonZeroUsize>,
    /// Evaluate on the first N tokens of the text only; all but the first of them are predicted [default: the whole
    /// text].
    #[arg(long, value_name = "N", requires = "text", value_parser = value_parser!(u64).range(2..))]
    tokens: Option<u64>,
    #[command(flatten)]
    compression: Compression,
    #[command(flatten)]
    tensor_parallel: TensorParallel,
    /// Tokens in a sequence [default: the run's; 1024 for a model of others].
    #[arg(long, value_name = "N", requires = "text")]
    sequence: Option<NonZeroUsize>,
    /// Tokens from the start of a sequence to that of the next; in overlapping ones only the tokens count that no
    /// sequence before has predicted [default: as many as a sequence has].
    #[arg(long, value_name = "N", requires = "text")]
    stride: Option<NonZeroUsize>,
    /// Sequences in a micro-batch [default: the run's `eval.micro_batch`; 1 for a model
    /// of others].
    #[arg(long, value_name = "N", requires = "text")]
    micro_batch: Option<NonZeroUsize>,
    /// The tokenizer of training: `byte`, a tokenizer.json, or a model that brings it [default: where the run had it, or
    /// the model's].
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<TokenizerSource>,
}

impl Eval {
    pub(crate) fn run(self, output: Output) -> Result<(), CommandError> {
        let model = SavedModel::open(&self.model, self.tokenizer.as_ref())?;
        match (&self.text, &self.choices) {
            (Some(text), _) => output.print(&self.perplexity(&model, text)?)?,
            (None, Some(questions)) => {
                let limit = self.limit.map(NonZeroUsize::get);
                let questions = Questions::read(questions, self.format, limit)?;
                let sharing = self.tensor_parallel.sharing(&model)?;
                let mut pipeline = self.load(&model, sharing)?;
                let report = choices::accuracy(&model, questions, &mut pipeline)?;
                let all_reduce = Sums::of(&pipeline, sharing);
                let step = model.step();
                output.print(&choices::Report { model: self.model, step, all_reduce, ..report })?;
            }
            (None, None) => unreachable!("one of the two is required"),
        }
        Ok(())
    }

    fn load(&self, model: &SavedModel, sharing: Sharing) -> Result<Pipeline, CommandError> {
        let boundaries = self.compression.boundaries(model)?;
        Ok(model.load_shared(boundaries, sharing)?)
    }

    fn perplexity(
        &self,
        model: &SavedModel,
        text: &Path,
    ) -> Result<Report, CommandError> {
        let sequence = self.sequence.map_or(model.sequence(), NonZeroUsize::get);
        let stride = self.stride.map_or(sequence, NonZeroUsize::get);
        let micro_batch = self.micro_batch.map_or(model.micro_batch(), NonZeroUsize::get);
        let size = WindowSize { sequence, stride, micro_batch };
        let text = model.read_text(text, size)?;
        let sharing = self.tensor_parallel.sharing(model)?;
        let mut pipeline = self.load(model, sharing)?;
        let predicted = self.tokens.map_or(0, |tokens| usize::try_from(tokens - 1).unwrap_or(usize::MAX));
        let batches = evaluation(&text, size, predicted);

        let start = Instant::now();
        let progress = progress::bar(batches.len() as u64, "micro-batches");
        let result = pipeline.evaluate(batches, || progress.inc(1));
        progress.finish_and_clear();
        let result = result?;
        let boundaries = pipeline.boundaries();
        Ok(Report {
            perplexity: result.compressed,
            tokens: result.tokens,
            bits_per_element: boundaries.iter().map(Boundary::bits_per_element).collect(),
            rel_sq_error: boundaries.iter().map(Boundary::rel_sq_error).collect(),
            messages: boundaries.iter().map(|boundary| boundary.messages().0).collect(),
            raw_messages: boundaries.iter().map(|boundary| boundary.messages().1).collect(),
            uncompressed: Uncompressed { perplexity: result.uncompressed },
            boundaries: boundaries.iter().map(Boundary::before).collect(),
            codec: boundaries.iter().map(Boundary::codec).collect(),
            all_reduce: Sums::of(&pipeline, sharing),
            model: self.model.clone(),
            step: model.step(),
            sequence,
            stride,
            micro_batch,
            seconds: start.elapsed().as_secs_f64(),
        })
    }
}
