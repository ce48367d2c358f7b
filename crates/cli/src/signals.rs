//! Being asked to end: Ctrl-C and `kill`.

use std::fmt;
use std::process;

use crate::error::say;

/// A request to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT, Ctrl-C.
    Interrupt,
    /// SIGTERM, what `kill` sends.
    Terminate,
}

impl Signal {
    /// What a shell reports for a process that a signal has ended: 128 and its number.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }

    /// Ends the process without waiting for anything but its line.
    pub(crate) fn end_at_once(self) -> ! {
        say(format!("stopped at once by {self}\n"));
        process::exit(self.exit_code().into())
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        })
    }
}

#[cfg(unix)]
pub(crate) use unix::{Signals, ignore_interrupt};

#[cfg(unix)]
mod unix {
    use std::io;
    use std::sync::{Arc, Mutex, PoisonError};
    use std::{fmt, thread};

    use signal_hook::consts::{SIGINT, SIGTERM};

    use super::Signal;

    type Act = Box<dyn FnOnce(Signal) + Send>;

    /// The process's watch for signals, kept to its end.
    #[derive(Clone, Default)]
    pub(crate) struct Signals(Arc<Mutex<Option<Act>>>);

    impl fmt::Debug for Signals {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Signals").finish_non_exhaustive()
        }
    }

    impl Signals {
        /// Watches SIGINT and SIGTERM from now on. What nobody [takes](Self::first_to) ends the process.
        pub(crate) fn watch() -> io::Result<Self> {
            Self::watch_for(&[SIGINT, SIGTERM])
        }

        /// Watches SIGTERM alone.
        pub(crate) fn watch_terminate() -> io::Result<Self> {
            Self::watch_for(&[SIGTERM])
        }

        fn watch_for(numbers: &[i32]) -> io::Result<Self> {
            let mut arriving = signal_hook::iterator::Signals::new(numbers)?;
            let signals = Self::default();
            let watched = signals.clone();
            thread::spawn(move || {
                for number in arriving.forever() {
                    let signal = if number == SIGINT { Signal::Interrupt } else { Signal::Terminate };
                    match watched.replace(None) {
                        Some(act) => act(signal),
                        None => signal.end_at_once(),
                    }
                }
            });
            Ok(signals)
        }

        /// Gives the next signal to `act`; one after it ends the process.
        pub(crate) fn first_to(&self, act: impl FnOnce(Signal) + Send + 'static) {
            self.replace(Some(Box::new(act)));
        }

        /// Gives no signal away any more: the next one ends the process.
        pub(crate) fn release(&self) {
            self.replace(None);
        }

        fn replace(&self, act: Option<Act>) -> Option<Act> {
            std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), act)
        }
    }

    /// Lets Ctrl-C pass by. It reaches every process of a terminal's foreground; that of the launcher counts.
    pub(crate) fn ignore_interrupt() -> io::Result<()> {
        signal_hook::flag::register(SIGINT, Arc::default()).map(drop)
    }
}

#[cfg(not(unix))]
pub(crate) use elsewhere::{Signals, ignore_interrupt};

/// Where there are no signals, the system ends the process.
#[cfg(not(unix))]
mod elsewhere {
    use std::io;

    use super::Signal;

    #[derive(Clone, Debug)]
    pub(crate) struct Signals;

    impl Signals {
        pub(crate) fn watch() -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) fn watch_terminate() -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) fn first_to(&self, _: impl FnOnce(Signal) + Send + 'static) {}

        pub(crate) fn release(&self) {}
    }

    pub(crate) fn ignore_interrupt() -> io::Result<()> {
        Ok(())
    }
}
