//! Where activations are compressed, and how.

mod places;

use clap::Args;
use thinwire_codec::CodecSpec;
use thinwire_train::evaluate::{Boundary, EvaluateError, SavedModel};

use self::places::Places;

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
    pub(crate) fn boundaries(&self, model: &SavedModel) -> Result<Vec<Boundary>, EvaluateError> {
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
