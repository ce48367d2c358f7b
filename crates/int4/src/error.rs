use thiserror::Error;

/// What was wrong with an argument. Where a function has an output, it is unchanged then.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Int4Error {
    /// The processor lacks what `THINWIRE_ISA` or a caller asks for.
    #[error("instruction set `{name}`: this processor has {available}")]
    UnknownIsa {
        /// What was asked for.
        name: String,
        /// What there is, separated by commas.
        available: String,
    },
    /// A slice is not as long as its shape says.
    #[error("{what} of shape {shape:?}: {got} elements, expected {expected}")]
    Length {
        /// The argument.
        what: &'static str,
        /// Rows and columns, or batch, rows and columns.
        shape: Vec<usize>,
        /// The slice's length; bytes for packed codes and masks.
        got: usize,
        /// The length that the shape takes.
        expected: usize,
    },
    /// The element count of a shape is beyond `usize`.
    #[error("{what}: shape {shape:?} has more elements than memory can")]
    TooLarge {
        /// The argument.
        what: &'static str,
        /// As in [`Int4Error::Length`].
        shape: Vec<usize>,
    },
    /// Two arguments disagree about a dimension.
    #[error("{what}: {left} on the left, {right} on the right")]
    Mismatch {
        /// The dimension.
        what: &'static str,
        /// Its size in the first argument.
        left: usize,
        /// Its size in the second.
        right: usize,
    },
    /// A sum of this many products may not fit in 32 bits.
    #[error("a product over {depth} elements may overflow 32 bits, at most {most} are allowed")]
    TooDeep {
        /// Elements that each output sums over.
        depth: usize,
        /// The largest depth at these widths.
        most: usize,
    },
    /// A code outside `-8..=7`.
    #[error("code {code} at element {index} does not fit in 4 bits")]
    Code {
        /// The code.
        code: i8,
        /// Its place, row-major.
        index: usize,
    },
    /// A row that a selection names is not there.
    #[error("row {row} of a matrix with {rows} rows")]
    Row {
        /// The row's number.
        row: usize,
        /// How many there are.
        rows: usize,
    },
    /// A Hadamard block that is no power of two up to 1024, or does not divide the row.
    #[error(
        "Hadamard blocks of {block} in rows of {columns}: expected a power of two up to 1024 that divides the row"
    )]
    Block {
        /// The block's length.
        block: usize,
        /// The row's length.
        columns: usize,
    },
    /// A step that is not positive and finite.
    #[error("quantization step {0} is not a positive number")]
    Step(String),
}
