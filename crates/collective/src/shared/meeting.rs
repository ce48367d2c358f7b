use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use thinwire_link::RunId;

use super::map::Map;
use super::own::{Named, create, is_locked, remove};
use crate::board::{HEADER, Memory, Shape};
use crate::{CollectiveError, Settings};

/// What the first word of a file is, with the version of its layout.
const MAGIC: u64 = u64::from_le_bytes(*b"TWSHARE1");

/// Places in a file's header.
const RANKS: usize = HEADER.start + 1;
const TILE: usize = HEADER.start + 2;
/// Not 0 once this rank has opened the files of all others.
const OPENED: usize = HEADER.start + 3;

/// How long to wait before looking again.
const PAUSE: Duration = Duration::from_millis(1);

/// How long a rank stays that does not fit another one.
const LINGER: Duration = Duration::from_secs(1);

/// The start of a group: every rank makes its file and finds those of the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meeting<'a> {
    pub(super) folder: &'a Path,
    pub(super) run: RunId,
    pub(super) rank: usize,
    pub(super) shape: Shape,
    pub(super) settings: &'a Settings,
}

impl Meeting<'_> {
    /// The files of all ranks, by rank. None of them has a name anymore.
    pub(super) fn hold(&self) -> Result<Vec<Map>, CollectiveError> {
        let start = Instant::now();
        let (own, _named) = self.make_own()?;
        let mut own = Some(own);
        let mut maps = Vec::new();
        for rank in 0..self.shape.ranks {
            maps.push(match own.take_if(|_| rank == self.rank) {
                Some(own) => own,
                None => self.find(rank, start)?,
            });
        }
        maps[self.rank].words()[OPENED].store(1, Ordering::Release);
        for (rank, map) in maps.iter().enumerate() {
            self.wait_until_opened(rank, map, start)?;
        }
        Ok(maps)
    }

    fn make_own(&self) -> Result<(Map, Named), CollectiveError> {
        let path = self.path(self.rank);
        let temporary = path.with_extension("new");
        let made = self.write_own(&temporary, &path);
        let removed = remove(&temporary);
        let made = made.and_then(|made| removed.map(|()| made));
        let failed = |error| self.memory(self.rank, &format!("{error}; {} bytes are needed", self.bytes()));
        match made.map_err(failed)? {
            (own, Some(named)) => Ok((own, named)),
            (_, None) => Err(CollectiveError::Taken { rank: self.rank, path }),
        }
    }

    fn write_own(&self, temporary: &Path, path: &Path) -> io::Result<(Map, Option<Named>)> {
        let own = Map::own(create(temporary, self.bytes())?)?;
        let header = &own.words()[HEADER];
        header[RANKS].store(self.shape.ranks as u64, Ordering::Relaxed);
        header[TILE].store(self.settings.tile as u64, Ordering::Relaxed);
        header[0].store(MAGIC, Ordering::Release);
        let named = Named::publish(temporary, path)?;
        Ok((own, named))
    }

    /// Waits for the file of another rank, in use: one that nobody holds a lock on is about to be replaced.
    fn find(&self, rank: usize, start: Instant) -> Result<Map, CollectiveError> {
        let path = self.path(rank);
        let failed = |error: io::Error| self.memory(rank, &error.to_string());
        loop {
            match OpenOptions::new().read(true).open(&path) {
                Ok(file) if is_locked(&file).map_err(failed)? => return self.open(rank, file),
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => self.pause(rank, start)?,
            }
        }
    }

    /// Maps the file of another rank if it is what this group needs.
    fn open(&self, rank: usize, file: File) -> Result<Map, CollectiveError> {
        let failed = |error: io::Error| self.memory(rank, &error.to_string());
        let metadata = file.metadata().map_err(failed)?;
        let least = (HEADER.len() * size_of::<AtomicU64>()) as u64;
        if !metadata.is_file() || metadata.len() < least {
            return Err(self.memory(rank, &format!("{} bytes, not {}", metadata.len(), self.bytes())));
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(self.memory(rank, "others than its user may write it"));
        }
        let map = Map::other(file).map_err(failed)?;
        let [magic, ranks, tile] =
            [HEADER.start, RANKS, TILE].map(|place| map.words()[place].load(Ordering::Relaxed));
        if magic != MAGIC {
            return Err(self.memory(rank, "not made by this version of Thinwire"));
        }
        let of = |ranks: u64, tile: u64| format!("{ranks} ranks with tiles of {tile} values");
        let (theirs, ours) = (of(ranks, tile), of(self.shape.ranks as u64, self.settings.tile as u64));
        if theirs != ours {
            self.linger(rank);
            return Err(CollectiveError::Setup { rank, theirs, by: self.rank, ours });
        }
        if metadata.len() != self.bytes() {
            return Err(self.memory(rank, &format!("{} bytes, not {}", metadata.len(), self.bytes())));
        }
        Ok(map)
    }

    /// Stays for a moment, so that the other rank finds this one's file and knows why, too.
    fn linger(&self, rank: usize) {
        let start = Instant::now();
        while start.elapsed() < LINGER && self.path(rank).exists() {
            thread::sleep(PAUSE);
        }
    }

    fn wait_until_opened(&self, rank: usize, map: &Map, start: Instant) -> Result<(), CollectiveError> {
        loop {
            let abandoned = map.is_abandoned();
            if map.words()[OPENED].load(Ordering::Relaxed) != 0 {
                fence(Ordering::Acquire);
                return Ok(());
            }
            if abandoned {
                return Err(CollectiveError::Died { rank, by: self.rank });
            }
            self.pause(rank, start)?;
        }
    }

    fn pause(&self, rank: usize, start: Instant) -> Result<(), CollectiveError> {
        let waited = start.elapsed();
        if waited >= self.settings.deadline {
            return Err(CollectiveError::Absent { rank, by: self.rank, path: self.path(rank), waited });
        }
        thread::sleep(PAUSE);
        Ok(())
    }

    fn path(&self, rank: usize) -> PathBuf {
        self.folder.join(format!("thinwire-{}-{rank}", self.run))
    }

    fn bytes(&self) -> u64 {
        (self.shape.words() * size_of::<AtomicU64>()) as u64
    }

    fn memory(&self, rank: usize, reason: &str) -> CollectiveError {
        CollectiveError::Memory { rank, path: self.path(rank), reason: reason.to_owned() }
    }
}
