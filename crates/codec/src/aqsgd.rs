mod blocks;
mod codec;
mod end;
mod settings;

pub use settings::AqsgdSettings;
