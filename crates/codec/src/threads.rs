use std::num::NonZero;
use std::thread;

/// Values that are worth a thread: some fifty microseconds of work, several times what starting one takes.
pub(crate) const WORTH_A_THREAD: usize = 1 << 16;

/// How many of `threads` a message part of this many values is shared by.
pub(crate) fn worth(threads: NonZero<usize>, values: usize) -> usize {
    threads.get().min(values / WORTH_A_THREAD).max(1)
}

/// Does `work` on every item, each but the first on a thread of its own. A single item starts none.
///
/// # Panics
/// If `work` panics.
pub(crate) fn for_each<T: Send>(mut items: impl Iterator<Item = T>, work: impl Fn(T) + Sync) {
    let Some(first) = items.next() else { return };
    let Some(second) = items.next() else { return work(first) };
    let work = &work;
    thread::scope(|scope| {
        for item in [second].into_iter().chain(items) {
            scope.spawn(move || work(item));
        }
        work(first);
    });
}
