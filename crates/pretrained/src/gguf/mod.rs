//! GGUF files, versions 2 and 3, little-endian: metadata and tensors in one file.
//!
//! Layout and type numbers: the GGUF specification in ggml's `docs/gguf.md`.

mod config;
mod element;
mod metadata;
mod names;
mod reader;
mod value;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use metadata::Metadata;
pub use value::{Array, Value};

use crate::error::require;
use crate::format::Format;
use crate::pretrained::Source;
use crate::stored::Stored;
use crate::{DecoderConfig, Error};
use reader::Reader;

/// Bounds of counts in a file: far above any model, and small enough to be allocated.
const MAX_TENSORS: u64 = 1 << 20;
const MAX_DIMENSIONS: u32 = 4;
/// Tensors start at multiples of it, in bytes, unless `general.alignment` says otherwise.
const DEFAULT_ALIGNMENT: u64 = 32;

/// Whether a path has the name of a GGUF file.
pub(crate) fn is_gguf(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
}

/// A GGUF file of any architecture, with its own names and layouts.
///
/// [`Pretrained::open`](crate::Pretrained::open) gives the models among them in Hugging Face's terms.
#[derive(Debug)]
pub struct Gguf {
    path: PathBuf,
    metadata: Metadata,
    tensors: BTreeMap<String, Stored>,
}

impl Gguf {
    /// Reads metadata and the table of tensors, and checks that every tensor lies in the file.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, of another version, or has a tensor in a number format that is not
    /// supported.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut reader = Reader::open(path)?;
        let (tensors, pairs) = preamble(path, &mut reader)?;
        let metadata = Metadata::read(path, &mut reader, pairs)?;
        let mut table = Vec::new();
        for _ in 0..tensors {
            table.push(Entry::read(path, &mut reader)?);
        }
        let alignment = match metadata.unsigned("general.alignment")? {
            None => DEFAULT_ALIGNMENT,
            Some(alignment) => {
                let valid = alignment.is_power_of_two() && alignment <= 1 << 20;
                let expected = "a power of two up to 1048576";
                require(valid, path, "metadata `general.alignment`", expected, alignment)?;
                alignment
            }
        };
        let start = reader.position().next_multiple_of(alignment);
        let mut tensors = BTreeMap::new();
        for entry in table {
            let (name, stored) = entry.locate(path, start, alignment, reader.file_bytes())?;
            let what = format_args!("tensor `{name}`");
            require(!tensors.contains_key(&name), path, what, "one of this name", "more")?;
            tensors.insert(name, stored);
        }
        Ok(Self { path: path.into(), metadata, tensors })
    }

    /// Key and value pairs.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Names of all tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Shape of a tensor, row-major (GGUF itself lists the dimensions the other way round).
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|stored| &stored.shape[..])
    }

    /// Number format of a tensor.
    pub fn format(&self, name: &str) -> Option<Format> {
        self.tensors.get(name).map(|stored| stored.format)
    }

    /// Values of a tensor as f32, row-major, in the file's layout.
    ///
    /// # Errors
    /// There is no tensor `name`, or the file cannot be read.
    pub fn read(&self, name: &str) -> Result<Vec<f32>, Error> {
        match self.tensors.get(name) {
            Some(stored) => stored.read(),
            None => Err(Error::mismatch(&self.path, format_args!("tensor `{name}`"), "one", "none")),
        }
    }
}

/// Magic number and version; then the numbers of tensors and of metadata pairs.
fn preamble(path: &Path, reader: &mut Reader) -> Result<(u64, u64), Error> {
    let magic = reader.array::<4>()?;
    require(&magic == b"GGUF", path, "first bytes", "GGUF", magic.escape_ascii())?;
    let version = reader.u32()?;
    if version.swap_bytes() == 2 || version.swap_bytes() == 3 {
        return Err(Error::unsupported(path, "byte order", "big-endian", "little-endian"));
    }
    if version != 2 && version != 3 {
        return Err(Error::unsupported(path, "GGUF version", version, "2, 3"));
    }
    let (tensors, pairs) = (reader.u64()?, reader.u64()?);
    let most = format_args!("at most {MAX_TENSORS}");
    require(tensors <= MAX_TENSORS, path, "number of tensors", most, tensors)?;
    Ok((tensors, pairs))
}

/// A line of the table of tensors.
struct Entry {
    name: String,
    shape: Vec<usize>,
    format: Format,
    /// From the start of the tensors.
    offset: u64,
}

impl Entry {
    fn read(path: &Path, reader: &mut Reader) -> Result<Self, Error> {
        let name = reader.string()?;
        let dimensions = reader.u32()?;
        let what = format_args!("dimensions of tensor `{name}`");
        require(
            dimensions <= MAX_DIMENSIONS,
            path,
            what,
            format_args!("at most {MAX_DIMENSIONS}"),
            dimensions,
        )?;
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            let len = reader.u64()?;
            let len = usize::try_from(len).map_err(|_| {
                Error::mismatch(path, format_args!("shape of tensor `{name}`"), "a size", len)
            })?;
            shape.insert(0, len);
        }
        let format = element::format(path, &name, reader.u32()?)?;
        Ok(Self { name, shape, format, offset: reader.u64()? })
    }

    /// Checks that the tensor is whole blocks within the file.
    fn locate(
        self,
        path: &Path,
        start: u64,
        alignment: u64,
        file_bytes: u64,
    ) -> Result<(String, Stored), Error> {
        let Self { name, shape, format, offset } = self;
        let what = format_args!("tensor `{name}`");
        let multiple = format_args!("an offset that is a multiple of {alignment}");
        require(offset.is_multiple_of(alignment), path, what, multiple, offset)?;
        let found = format_args!("shape {shape:?} in {format:?}");
        let expected = format_args!("rows of whole blocks of {}", format.block_len());
        let bytes = format.bytes(&shape).ok_or_else(|| Error::mismatch(path, what, expected, found))?;
        let end = start.checked_add(offset).and_then(|begin| begin.checked_add(bytes));
        let expected = format_args!("to end within the {file_bytes} bytes of the file");
        let valid = end.is_some_and(|end| end <= file_bytes);
        let found = format_args!("{bytes} bytes at offset {offset} of the tensors, which start at {start}");
        require(valid, path, what, expected, found)?;
        Ok((name, Stored { path: path.into(), offset: start + offset, format, shape }))
    }
}

/// The model in a file: configuration, tensors by Hugging Face name, and the metadata, which hold the tokenizer.
pub(crate) fn open(path: &Path) -> Result<(DecoderConfig, BTreeMap<String, Source>, Metadata), Error> {
    let mut file = Gguf::open(path)?;
    let config = config::read(&file)?;
    if config.rope.is_some() {
        file.tensors.remove(config::ROPE_FACTORS); // in the configuration now
    }
    let mut tensors = BTreeMap::new();
    for tensor in config.tensors() {
        let (name, layout) = names::to_gguf(&config, &tensor.name);
        if let Some(stored) = file.tensors.remove(&name) {
            tensors.insert(tensor.name, Source { stored, layout });
        }
    }
    // What is left keeps its name: the model does not know it, and the check of names says so.
    tensors.extend(file.tensors.into_iter().map(|(name, stored)| (name, Source::plain(stored))));
    Ok((config, tensors, file.metadata))
}
