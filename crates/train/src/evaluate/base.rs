//! The model that a run's adapters are for.

use thinwire_pretrained::Pretrained;

use super::EvaluateError;
use crate::model::Architecture;
use crate::pretrained::fingerprint;
use crate::run::FoundCheckpoint;

/// Opens the model that the run's configuration names; `None` if the checkpoint has all weights itself.
///
/// # Errors
/// The configuration is not there, or the model is not, or is another one than in training.
pub(super) fn open(found: &FoundCheckpoint) -> Result<Option<Pretrained>, EvaluateError> {
    let facts = &found.manifest.run;
    let Some(lora) = &facts.architecture.lora else { return Ok(None) };
    let path = found.config.as_ref().and_then(|config| config.model.pretrained.as_deref());
    let path = path.ok_or(EvaluateError::NoBase)?;
    let base = Pretrained::open(path)?;
    // The files of the base are as large as its parameters, so nothing is allocated for a model that is only claimed.
    let expected = Architecture { lora: Some(lora.clone()), ..Architecture::from(base.config()) };
    expected.validate()?;
    facts.check_architecture(&expected, &found.folder())?;
    let fingerprint =
        fingerprint(path).map_err(|source| EvaluateError::Base { path: path.into(), source })?;
    facts.check_base(Some(&fingerprint), &found.folder())?;
    Ok(Some(base))
}
