//! The weights of some units.

use burn::tensor::Device;
use thinwire_pretrained::{Error, Pretrained};

use crate::config::Unit;
use crate::model::{Architecture, Parameter, Part, Shard, Start};

/// The units `units` of `model` on `device` (without autodiff); of the files only their tensors are read.
///
/// # Errors
/// A tensor cannot be read.
pub fn load_part(model: &Pretrained, units: &[Unit], device: &Device) -> Result<Part, Error> {
    load_shard(model, units, Shard::WHOLE, device)
}

/// One rank's share of them.
///
/// # Errors
/// As [`load_part`].
pub fn load_shard(model: &Pretrained, units: &[Unit], shard: Shard, device: &Device) -> Result<Part, Error> {
    let architecture = Architecture::from(model.config());
    let mut part = Part::of_shard(&architecture, units, Start::Empty, shard, device);
    load_into(&mut part, model)?;
    Ok(part)
}

/// Sets the parameters of `part` to the weights of `model`, but for adapters. Of a tied model's matrix a head that is not
/// tied gets a copy.
///
/// # Errors
/// A tensor cannot be read, or has another shape.
pub fn load_into(part: &mut Part, model: &Pretrained) -> Result<(), Error> {
    let adapted = part.architecture().lora.is_some();
    let read = |parameter: &Parameter| {
        if adapted && parameter.trainable {
            return Ok(parameter.value.clone());
        }
        let name = part.name_in(model.config().tied, parameter);
        let values = model.read(name, parameter.slice.whole())?;
        Ok(part.params().upload(parameter.slice.take(values)))
    };
    let tensors = part.params().iter().map(read).collect::<Result<Vec<_>, Error>>()?;
    part.params_mut().iter_mut().zip(tensors).for_each(|(parameter, tensor)| parameter.value = tensor);
    Ok(())
}
