//! A machine whose threads share its cores.

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// Cores: as soon as more threads than these are busy, each gets its share. Infinite where threads never meet.
    pub cores: f64,
    /// How many times longer work takes when all cores are busy than when its thread is alone: memory and caches are
    /// shared, and clocks sink. At least 1.
    pub slowdown: f64,
    /// Seconds until a thread that was asleep has a core, where all are busy: those that compute are not interrupted at
    /// once.
    pub wake: f64,
}

impl Host {
    /// A machine on which nothing holds anything up.
    pub const UNSHARED: Self = Self { cores: f64::INFINITY, slowdown: 1.0, wake: 0.0 };

    /// Of its speed alone, what work of `threads` threads has while `busy` are busy, itself included.
    fn share(&self, threads: f64, busy: f64) -> f64 {
        let time_on_cores = (self.cores / busy).min(1.0);
        let spare = self.cores - threads;
        let crowd = if spare > 0.0 { ((busy - threads) / spare).min(1.0) } else { 0.0 };
        time_on_cores / (1.0 + (self.slowdown - 1.0) * crowd)
    }
}

/// Work that is being done.
#[derive(Clone, Debug)]
struct Task<T> {
    what: T,
    threads: f64,
    begin: f64,
    /// Seconds left, alone, at time `since`.
    left: f64,
    since: f64,
    /// Current share of the speed alone.
    share: f64,
}

impl<T> Task<T> {
    fn end(&self) -> f64 {
        self.since + self.left / self.share
    }
}

/// A machine at work.
#[derive(Clone, Debug)]
pub(super) struct Busy<T> {
    host: Host,
    tasks: Vec<Task<T>>,
}

impl<T> Busy<T> {
    pub(super) fn new(host: Host) -> Self {
        Self { host, tasks: Vec::new() }
    }

    /// Begins `seconds` of work, alone, of `threads` threads.
    pub(super) fn begin(&mut self, now: f64, what: T, threads: usize, seconds: f64) {
        let threads = threads as f64;
        self.tasks.push(Task { what, threads, begin: now, left: seconds, since: now, share: 1.0 });
        self.reshare(now);
    }

    /// How long a thread that was asleep waits for a core: not at all while there is a free one.
    pub(super) fn wake(&self, now: f64) -> Option<f64> {
        let busy: f64 = self.tasks.iter().filter(|task| task.end() > now).map(|task| task.threads).sum();
        (busy >= self.host.cores && self.host.wake > 0.0).then_some(self.host.wake)
    }

    /// When the first task ends, if there is one.
    pub(super) fn next_end(&self) -> Option<f64> {
        self.tasks.iter().map(Task::end).min_by(f64::total_cmp)
    }

    /// Ends the first task to end: what it was, and since when it was done.
    pub(super) fn finish(&mut self, now: f64) -> Option<(T, f64)> {
        let ends = self.tasks.iter().enumerate().map(|(at, task)| (at, task.end()));
        let (first, _) = ends.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let Task { what, begin, .. } = self.tasks.remove(first);
        self.reshare(now);
        Some((what, begin))
    }

    /// A task whose share stays keeps its end to the bit.
    fn reshare(&mut self, now: f64) {
        let busy = self.tasks.iter().map(|task| task.threads).sum();
        for task in &mut self.tasks {
            let share = self.host.share(task.threads, busy);
            if share != task.share {
                task.left = (task.left - (now - task.since) * task.share).max(0.0);
                (task.since, task.share) = (now, share);
            }
        }
    }
}
