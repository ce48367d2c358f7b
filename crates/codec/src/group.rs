mod codec;
mod settings;

pub(crate) use codec::Group;
pub use settings::{GroupSettings, Quantizer};
