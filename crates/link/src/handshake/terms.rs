//! What both ends must have equal, and how it differs.

use std::fmt;

use crate::text::printable;

use super::Hello;

/// An ordered list of named values that must be the same at both ends: the hash of the model, the layer map, the
/// codecs, and whatever else would make two stages compute different things.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms(Vec<(String, String)>);

/// A term that cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermsError {
    /// The name is there already.
    #[error("the term {name:?} occurs twice")]
    Twice {
        /// The name.
        name: String,
    },
}

impl Terms {
    /// No terms.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a term at the end.
    ///
    /// # Errors
    /// [`TermsError::Twice`].
    pub fn add(&mut self, name: impl Into<String>, value: impl fmt::Display) -> Result<(), TermsError> {
        let name = name.into();
        if self.value(&name).is_some() {
            return Err(TermsError::Twice { name: printable(&name, SHOWN) });
        }
        self.0.push((name, value.to_string()));
        Ok(())
    }

    /// The value of the term with this name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.iter().find_map(|(known, value)| (known == name).then_some(value))
    }

    /// All terms, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// The longest part of a peer's text that is shown, in characters.
const SHOWN: usize = 500;

/// One thing in which two ends differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What.
    pub name: String,
    /// Here; nothing if this end does not have the term.
    pub ours: Option<String>,
    /// At the peer; nothing if it does not have the term. Control characters are escaped.
    pub theirs: Option<String>,
}

/// Everything in which two ends differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differences {
    our_stage: u32,
    their_stage: u32,
    list: Vec<Difference>,
}

impl Differences {
    /// Compares our hello with the peer's.
    pub(crate) fn between(ours: &Hello, theirs: &Hello) -> Self {
        let mut found = Self { our_stage: ours.stage, their_stage: theirs.stage, list: Vec::new() };
        found.compare("stage at this end", Some(ours.stage), Some(theirs.peer_stage));
        found.compare("stage at the other end", Some(ours.peer_stage), Some(theirs.stage));
        found.compare("number of stages", Some(ours.stages), Some(theirs.stages));
        for (name, value) in ours.terms.iter() {
            found.compare(name, Some(value), theirs.terms.value(name));
        }
        for (name, value) in theirs.terms.iter().filter(|(name, _)| ours.terms.value(name).is_none()) {
            found.compare(name, None, Some(value));
        }
        // Engines name a run after its terms: where another difference explains this one, it says nothing more.
        if found.is_empty() {
            found.compare("run", Some(ours.run), Some(theirs.run));
        }
        found
    }

    /// Each one.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Difference> {
        self.list.iter()
    }

    /// Whether the two ends agree.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn compare<T: fmt::Display + PartialEq>(&mut self, name: &str, ours: Option<T>, theirs: Option<T>) {
        if ours == theirs {
            return;
        }
        let shown = |value: T| printable(&value.to_string(), SHOWN);
        self.list.push(Difference {
            name: printable(name, SHOWN),
            ours: ours.map(shown),
            theirs: theirs.map(shown),
        });
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Difference { name, ours, theirs }) in self.list.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            let (ours, theirs) = (ours.as_deref().unwrap_or("none"), theirs.as_deref().unwrap_or("none"));
            let (here, there) = (self.our_stage, self.their_stage);
            write!(f, "{separator}{name}: stage {here} (here) has {ours}, stage {there} has {theirs}")?;
        }
        Ok(())
    }
}
