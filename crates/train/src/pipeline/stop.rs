//! Ending a stage from outside.

use std::sync::{Arc, Mutex, PoisonError};

use super::error::PipelineError;
use super::frames::Arrival;
use super::inbox::Mailbox;

/// Asks a stage to end in order, from any thread. A stage looks before each forward and backward, and hears it at once
/// while it waits for a neighbour.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Mutex<Request>>);

#[derive(Debug, Default)]
enum Request {
    #[default]
    Idle,
    Running(Mailbox),
    Asked {
        by: String,
    },
}

impl Stop {
    /// Asks for the end; `by` is who does, as in "stopped by …". Neighbours are told, and the links closed. `false` when
    /// no stage is at work that could do so.
    pub fn ask(&self, by: &str) -> bool {
        let mut request = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Request::Running(mailbox) = &*request {
            mailbox.tell(Arrival::Failed(PipelineError::Stopped { by: by.to_owned() }));
            *request = Request::Asked { by: by.to_owned() };
        }
        matches!(*request, Request::Asked { .. })
    }

    /// Brings the request to the stage with this mailbox.
    pub(super) fn attach(&self, mailbox: &Mailbox) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Request::Running(mailbox.clone());
    }

    /// The request as an error, once it is there.
    pub(super) fn check(&self) -> Result<(), PipelineError> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Request::Asked { by } => Err(PipelineError::Stopped { by: by.clone() }),
            Request::Idle | Request::Running(_) => Ok(()),
        }
    }
}
