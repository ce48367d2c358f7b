//! `thinwire eval`: perplexity of a text, with and without compression at the boundaries.

mod boundaries;
mod report;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, value_parser};
use thinwire_codec::CodecSpec;
use thinwire_train::config::TokenizerSource;
use thinwire_train::data::evaluation;
use thinwire_train::evaluate::{Boundary, EvaluateError, SavedModel};

use self::boundaries::Places;
use self::report::{Report, Uncompressed};
use crate::error::CommandError;
use crate::output::Output;
use crate::progress;

/// Perplexity of a text, with and without compression at the boundaries.
///
/// Runs in one process without links. The activations at the boundaries are encoded and decoded as in training, so a
/// run's own boundaries and codecs give the perplexity that the run itself reports.
///
/// Boundary K lies in front of block K, counted from 0: 0 is behind the embedding, the number of blocks is in front of
/// the head.
#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// A run's folder, for its newest complete checkpoint, a checkpoint's folder (step-00000100), a Hugging Face folder
    /// or a .gguf file.
    #[arg(long, value_name = "PATH")]
    model: PathBuf,
    /// The text.
    #[arg(long, value_name = "FILE")]
    text: PathBuf,
    /// Evaluate on the first N tokens of the text only; all but the first of them are predicted [default: the whole
    /// text].
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(2..))]
    tokens: Option<u64>,
    /// Where activations are compressed, as in 1,3, or none [default: the run's].
    #[arg(long, value_name = "K,..")]
    boundaries: Option<Places>,
    /// Codec of all boundaries, as in tah:p=0.5 or f32 [default: the run's, for each boundary].
    #[arg(long, value_name = "SPEC")]
    codec: Option<CodecSpec>,
    /// Tokens in a sequence [default: the run's; 1024 for a model of others].
    #[arg(long, value_name = "N")]
    sequence: Option<NonZeroUsize>,
    /// Sequences in a micro-batch [default: the run's `eval.micro_batch`; 1 for a model
    /// of others].
    #[arg(long, value_name = "N")]
    micro_batch: Option<NonZeroUsize>,
    /// The tokenizer of training: `byte`, a tokenizer.json, or a model that brings it [default: where the run had it, or
    /// the model's].
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<TokenizerSource>,
}

impl Eval {
    pub(crate) fn run(self, output: Output) -> Result<(), CommandError> {
        if self.codec.is_some() && self.boundaries.as_ref().is_some_and(|places| places.0.is_empty()) {
            return Err("--boundaries none leaves nothing for --codec to compress: give one of the two".into());
        }
        let model = SavedModel::open(&self.model, self.tokenizer.as_ref())?;
        let sequence = self.sequence.map_or(model.sequence(), NonZeroUsize::get);
        let micro_batch = self.micro_batch.map_or(model.micro_batch(), NonZeroUsize::get);
        let text = model.read_text(&self.text, sequence)?;
        let mut pipeline = model.load(self.boundaries(&model)?)?;
        let predicted = self.tokens.map_or(0, |tokens| usize::try_from(tokens - 1).unwrap_or(usize::MAX));
        let batches = evaluation(&text, sequence, predicted, micro_batch);

        let start = Instant::now();
        let progress = progress::bar(batches.len() as u64, "micro-batches");
        let result = pipeline.evaluate(batches, || progress.inc(1));
        progress.finish_and_clear();
        let result = result?;
        let boundaries = pipeline.boundaries();
        output.print(&Report {
            perplexity: result.compressed,
            tokens: result.tokens,
            bits_per_element: boundaries.iter().map(Boundary::bits_per_element).collect(),
            rel_sq_error: boundaries.iter().map(Boundary::rel_sq_error).collect(),
            messages: boundaries.iter().map(|boundary| boundary.messages().0).collect(),
            raw_messages: boundaries.iter().map(|boundary| boundary.messages().1).collect(),
            uncompressed: Uncompressed { perplexity: result.uncompressed },
            boundaries: boundaries.iter().map(Boundary::before).collect(),
            codec: boundaries.iter().map(Boundary::codec).collect(),
            model: self.model,
            step: model.step(),
            sequence,
            micro_batch,
            seconds: start.elapsed().as_secs_f64(),
        })?;
        Ok(())
    }

    fn boundaries(&self, model: &SavedModel) -> Result<Vec<Boundary>, EvaluateError> {
        let places = match &self.boundaries {
            Some(places) => places.0.clone(),
            None => model.boundaries()?,
        };
        let boundary = |before| {
            let codec = self.codec.map_or_else(|| model.codec(before), Ok)?;
            Ok(Boundary::new(before, &codec)?)
        };
        places.into_iter().map(boundary).collect()
    }
}
