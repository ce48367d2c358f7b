//! The numbers of ggml's types.

use std::path::Path;

use crate::Error;
use crate::format::Format;

/// Formats of the file and their numbers.
const SUPPORTED: [(u32, Format); 10] = [
    (0, Format::F32),
    (1, Format::F16),
    (2, Format::Q4_0),
    (3, Format::Q4_1),
    (6, Format::Q5_0),
    (8, Format::Q8_0),
    (12, Format::Q4_K),
    (13, Format::Q5_K),
    (14, Format::Q6_K),
    (30, Format::BF16),
];

/// Names of the others, for messages.
const OTHERS: [(u32, &str); 21] = [
    (7, "Q5_1"),
    (9, "Q8_1"),
    (10, "Q2_K"),
    (11, "Q3_K"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (34, "TQ1_0"),
    (39, "MXFP4"),
];

/// The format with this number, of tensor `name`.
pub(super) fn format(path: &Path, name: &str, number: u32) -> Result<Format, Error> {
    if let Some((_, format)) = SUPPORTED.iter().find(|(other, _)| *other == number) {
        return Ok(*format);
    }
    let known = OTHERS.iter().find(|(other, _)| *other == number);
    let found = known.map_or_else(|| format!("of type {number}"), |(_, name)| (*name).to_owned());
    let supported = Format::ALL.map(|format| format!("{format:?}")).join(", ");
    Err(Error::unsupported(path, format_args!("tensor {name}"), found, supported))
}
