/// What one rank has done since its group began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Calls that ended well.
    pub calls: u64,
    /// Values quantized in order to be added up elsewhere.
    pub pushed_values: u64,
    /// Values quantized after they were added up, or were to be gathered.
    pub shared_values: u64,
    /// Bytes handed to other ranks, a sum's once for each of them.
    pub sent_bytes: u64,
}
