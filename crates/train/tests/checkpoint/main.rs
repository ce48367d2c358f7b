//! Checkpoints: round trips between any groupings of units, damaged and hostile files, crashes, a full disk.

mod crash;
mod full_disk;
mod hostile;
mod removal;
mod round_trip;
mod support;
