//! Models as lists of units: what they compute, whole and in parts.

mod families;
mod fixture;
mod lora;
mod parts;
mod split;
