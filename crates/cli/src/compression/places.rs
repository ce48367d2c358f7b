//! `--boundaries`

use std::num::ParseIntError;
use std::str::FromStr;

/// Boundaries as the user lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places(pub(super) Vec<usize>);

/// A text that is no list of boundaries.
#[derive(Debug, thiserror::Error)]
#[error("`{item}`: expected block numbers with commas between them, or `none`")]
pub(crate) struct PlacesError {
    item: String,
    source: ParseIntError,
}

impl FromStr for Places {
    type Err = PlacesError;

    fn from_str(text: &str) -> Result<Self, PlacesError> {
        if text == "none" {
            return Ok(Self(Vec::new()));
        }
        let place =
            |item: &str| item.trim().parse().map_err(|source| PlacesError { item: item.into(), source });
        text.split(',').map(place).collect::<Result<_, _>>().map(Self)
    }
}
