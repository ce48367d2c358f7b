use std::sync::{Arc, Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::{DecodeError, Execution, Isa, SpecError};

/// Values that are worth a thread: some fifty microseconds of work, several times what waking one takes.
const WORTH_A_THREAD: usize = 1 << 16;

/// An [`Execution`] whose threads have been started. They live as long as the codec and sleep between messages.
#[derive(Debug, Clone)]
pub(crate) struct Workers {
    pub(crate) isa: Isa,
    /// `None` where the caller's thread works alone.
    pool: Option<Arc<ThreadPool>>,
}

impl Workers {
    const MAX: usize = 1024;

    pub(crate) fn start(Execution { isa, threads }: Execution) -> Result<Self, SpecError> {
        let threads = threads.get();
        if threads > Self::MAX {
            return Err(SpecError::value("threads", &threads, format!("from 1 to {}", Self::MAX)));
        }
        if threads == 1 {
            return Ok(Self { isa, pool: None });
        }
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("codec {i}"))
            .build()
            .map_err(|error| SpecError::Threads { threads, reason: error.to_string() })?;
        Ok(Self { isa, pool: Some(Arc::new(pool)) })
    }

    /// How many threads a message, or a part of one, of this many values is shared by.
    pub(crate) fn worth(&self, values: usize) -> usize {
        let threads = self.pool.as_ref().map_or(1, |pool| pool.current_num_threads());
        threads.min(values / WORTH_A_THREAD).max(1)
    }

    /// Does `work` on a message of this many values where [`Workers::for_each`] reaches all threads it is worth.
    pub(crate) fn enter<R: Send>(&self, values: usize, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) if self.worth(values) > 1 => pool.install(work),
            _ => work(),
        }
    }

    /// Does `work` on every item: in parallel inside [`Workers::enter`], one after another elsewhere. Allocates
    /// nothing but the pool's queue, a block for some sixty items.
    ///
    /// # Panics
    /// If `work` panics.
    pub(crate) fn for_each<T: Send>(
        &self,
        items: impl Iterator<Item = T> + Send,
        work: impl Fn(T) + Send + Sync,
    ) {
        if self.pool.as_ref().is_some_and(|pool| pool.current_thread_index().is_some()) {
            share(items, &work);
        } else {
            items.for_each(work);
        }
    }
}

/// Offers every item to the other threads before it begins with the last.
fn share<T: Send>(mut items: impl Iterator<Item = T> + Send, work: &(impl Fn(T) + Sync)) {
    if let Some(item) = items.next() {
        rayon::join(|| share(items, work), || work(item));
    }
}

/// Of the errors in the parts of a message that of the first part, whichever thread was first to find one.
#[derive(Debug, Default)]
pub(crate) struct FirstError(Mutex<Option<(usize, DecodeError)>>);

impl FirstError {
    /// Takes the result of a part. Parts are numbered in the order of the message.
    pub(crate) fn note(&self, part: usize, result: Result<(), DecodeError>) {
        let Err(error) = result else { return };
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|(earlier, _)| part < *earlier) {
            *first = Some((part, error));
        }
    }

    pub(crate) fn into_result(self) -> Result<(), DecodeError> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), |(_, error)| Err(error))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;
    use std::sync::Barrier;

    use super::*;

    fn workers(threads: usize) -> Workers {
        let threads = NonZero::new(threads).unwrap();
        Workers::start(Execution { isa: Isa::PORTABLE, threads }).unwrap()
    }

    #[test]
    fn items_are_worked_on_at_the_same_time() {
        let workers = workers(4);
        let all_there = Barrier::new(4);
        let mut done = [0; 4];
        workers.enter(4 * WORTH_A_THREAD, || {
            workers.for_each(done.iter_mut().enumerate(), |(i, done)| {
                all_there.wait();
                *done = i + 1;
            });
        });
        assert_eq!(done, [1, 2, 3, 4]);
    }

    #[test]
    fn small_messages_stay_on_the_callers_thread() {
        let (workers, caller) = (workers(4), std::thread::current().id());
        workers.enter(2 * WORTH_A_THREAD - 1, || {
            workers.for_each(0..9, |_| assert_eq!(std::thread::current().id(), caller));
        });
    }

    #[test]
    fn the_error_of_the_first_part_counts() {
        let error = |got| Err(DecodeError::Length { expected: 1, got });
        let first = FirstError::default();
        for (part, result) in [(5, error(5)), (2, error(2)), (3, error(3)), (0, Ok(()))] {
            first.note(part, result);
        }
        assert_eq!(first.into_result(), error(2));
        assert_eq!(FirstError::default().into_result(), Ok(()));
    }

    #[test]
    fn too_many_threads_are_refused() {
        let threads = NonZero::new(Workers::MAX + 1).unwrap();
        let error = Workers::start(Execution { isa: Isa::PORTABLE, threads }).unwrap_err();
        assert!(error.to_string().contains("from 1 to 1024"), "{error}");
    }
}
