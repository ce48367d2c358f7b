use std::fmt;
use std::str::FromStr;

use crate::SpecError;

/// A setting that `fixed` and `tah` share.
pub(crate) const RAW_BELOW: &str = "raw_below";

/// The setting at the end of a spec's text, which older builds read as long as it is 0.
pub(crate) fn write_raw_below(f: &mut fmt::Formatter<'_>, raw_below: usize) -> fmt::Result {
    if raw_below == 0 { Ok(()) } else { write!(f, ",{RAW_BELOW}={raw_below}") }
}

/// The `key=value` pairs of a spec, each key known and given once: for every kind of spec that is written as a codec's is.
#[derive(Debug)]
pub struct Fields<'a> {
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Fields<'a> {
    /// Splits `text`, what follows the colon of the spec of a `codec`; `None` if there was no colon.
    ///
    /// # Errors
    /// No pair, an unknown key, or one given twice.
    pub fn parse(codec: &str, known: &[&str], text: Option<&'a str>) -> Result<Self, SpecError> {
        let mut pairs = Vec::new();
        for pair in text.into_iter().flat_map(|text| text.split(',')) {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(SpecError::Syntax { text: pair.to_owned() });
            };
            if !known.contains(&key) {
                return Err(SpecError::unknown(format!("setting of {codec}"), key, known));
            }
            if pairs.iter().any(|&(earlier, _)| earlier == key) {
                return Err(SpecError::Duplicate { key: key.to_owned() });
            }
            pairs.push((key, value));
        }
        Ok(Self { pairs })
    }

    /// The value given for `key`.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.pairs.iter().find(|&&(given, _)| given == key).map(|&(_, value)| value)
    }

    /// The value given for [`RAW_BELOW`], or 0.
    pub(crate) fn raw_below(&self) -> Result<usize, SpecError> {
        self.number(RAW_BELOW, 0, "a whole number of values")
    }

    /// The value given for `key` as a number, or `default`. `range` says what is allowed, for the error.
    ///
    /// # Errors
    /// The value is no such number.
    pub fn number<T: FromStr>(&self, key: &'static str, default: T, range: &str) -> Result<T, SpecError> {
        self.text(key)
            .map_or(Ok(default), |text| text.parse().map_err(|_| SpecError::value(key, &text, range)))
    }
}
