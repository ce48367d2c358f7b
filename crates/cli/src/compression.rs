//! Where activations are compressed, and how.

mod places;

use clap::Args;
use thinwire_codec::CodecSpec;
use thinwire_train::evaluate::{Boundary, EvaluateError, SavedModel};

use self::places::Places;
use crate::error::CommandError;

/// The boundaries of a model in one process.
#[derive(Debug, Args)]
pub(crate) struct Compression {
    /// Where activations are compressed, as in 1,3, or none [default: the run's].
    #[arg(long, value_name = "K,..")]
    boundaries: Option<Places>,
    /// Codec of all boundaries, as in tah:p=0.5 or f32 [default: the run's, for each boundary].
    #[arg(long, value_name = "SPEC")]
    codec: Option<CodecSpec>,
}

impl Compression {
    /// The boundaries that were chosen, or those of the run.
    ///
    /// # Errors
    /// A codec without boundaries; as [`SavedModel::boundaries`], [`SavedModel::codec`] and [`Boundary::new`].
    pub(crate) fn boundaries(&self, model: &SavedModel) -> Result<Vec<Boundary>, CommandError> {
        if self.codec.is_some() && self.boundaries.as_ref().is_some_and(|places| places.0.is_empty()) {
            return Err(
                "--boundaries none leaves nothing for --codec to compress: give one of the two".into()
            );
        }
        let places = match &self.boundaries {
            Some(places) => places.0.clone(),
            None => model.boundaries()?,
        };
        let boundary = |before| {
            let codec = self.codec.map_or_else(|| model.codec(before), Ok)?;
            Ok(Boundary::new(before, &codec)?)
        };
        let boundaries: Result<_, EvaluateError> = places.into_iter().map(boundary).collect();
        Ok(boundaries?)
    }
}
