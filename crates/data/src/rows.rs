//! Which pieces of the tokens are sequences.

use crate::entry::{is_start, is_trained};
use crate::store::Entries;
use crate::{DataError, Packing};

/// A sequence: `targets` predictions from the token at `start` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) start: u64,
    pub(crate) targets: usize,
}

/// The sequences of a data set. Each has something to train on, and each token to train on is predicted in one.
#[derive(Debug)]
pub(crate) struct Rows {
    full: Full,
    /// The end of a packed stream, shorter than the others.
    pub(crate) tail: Option<Row>,
    /// Predictions that are trained on.
    pub(crate) trained: u64,
    /// Documents.
    pub(crate) documents: u64,
}

/// The sequences that are shuffled.
#[derive(Debug)]
enum Full {
    /// All of the stream, one after the other.
    Even { count: usize, sequence: usize },
    /// Those that have something to train on.
    Listed(Vec<Row>),
}

impl Rows {
    /// Finds the sequences of at most `sequence` predictions.
    pub(crate) fn new(entries: &Entries, packing: Packing, sequence: usize) -> Result<Self, DataError> {
        let mut finder = Finder::new(packing, sequence);
        entries.scan(|piece| piece.iter().for_each(|&entry| finder.take(entry)))?;
        Ok(finder.finish())
    }

    /// How many are shuffled.
    pub(crate) fn len(&self) -> usize {
        match &self.full {
            Full::Even { count, .. } => *count,
            Full::Listed(rows) => rows.len(),
        }
    }

    /// All of them, the tail included.
    pub(crate) fn count(&self) -> usize {
        self.len() + usize::from(self.tail.is_some())
    }

    /// Predictions of the longest.
    pub(crate) fn longest(&self) -> usize {
        match &self.full {
            Full::Even { count, sequence } if *count > 0 => *sequence,
            Full::Even { .. } => self.tail.map_or(0, |tail| tail.targets),
            Full::Listed(rows) => rows.iter().chain(&self.tail).map(|row| row.targets).max().unwrap_or(0),
        }
    }

    /// One of those that are shuffled.
    pub(crate) fn get(&self, index: usize) -> Row {
        match &self.full {
            Full::Even { sequence, .. } => Row { start: index as u64 * *sequence as u64, targets: *sequence },
            Full::Listed(rows) => rows[index],
        }
    }
}

/// Goes through the tokens once.
struct Finder {
    packing: Packing,
    sequence: usize,
    rows: Vec<Row>,
    /// As long as no sequence was left out or short, they need no list.
    even: Option<usize>,
    /// The row in the making.
    row: Row,
    row_trained: bool,
    position: u64,
    trained: u64,
    documents: u64,
}

impl Finder {
    fn new(packing: Packing, sequence: usize) -> Self {
        Self {
            packing,
            sequence,
            rows: Vec::new(),
            even: (packing == Packing::Full).then_some(0),
            row: Row { start: 0, targets: 0 },
            row_trained: false,
            position: 0,
            trained: 0,
            documents: 0,
        }
    }

    fn take(&mut self, entry: u32) {
        self.documents += u64::from(is_start(entry));
        let begins = self.position == 0 || self.packing == Packing::Pad && is_start(entry);
        if begins {
            self.end_row();
            self.row.start = self.position;
        } else {
            self.row.targets += 1;
            self.row_trained |= is_trained(entry);
            self.trained += u64::from(is_trained(entry));
            if self.row.targets == self.sequence {
                self.end_row();
                // The last token of a sequence is the first one of the next.
                self.row.start = self.position;
            }
        }
        self.position += 1;
    }

    fn end_row(&mut self) {
        let row = Row { targets: std::mem::take(&mut self.row.targets), ..self.row };
        let trained = std::mem::take(&mut self.row_trained);
        match &mut self.even {
            Some(count) if trained => *count += 1,
            Some(_) if row.targets == 0 => {}
            Some(count) => {
                let sequence = self.sequence;
                let rows = 0..*count as u64;
                self.rows = rows.map(|at| Row { start: at * sequence as u64, targets: sequence }).collect();
                self.even = None;
            }
            None if trained => self.rows.push(row),
            None => {}
        }
    }

    fn finish(mut self) -> Rows {
        let short = self.row.targets > 0 && self.row.targets < self.sequence;
        let tail = (self.packing == Packing::Full && short).then_some(self.row).filter(|_| self.row_trained);
        if self.packing == Packing::Pad {
            self.end_row();
        }
        let full = match self.even {
            Some(count) => Full::Even { count, sequence: self.sequence },
            None => Full::Listed(self.rows),
        };
        Rows { full, tail, trained: self.trained, documents: self.documents }
    }
}
