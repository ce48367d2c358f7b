use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use thinwire_link::{FrameSender, LinkError, RunId};

use super::buffers::Buffers;
use super::wire::Content;
use crate::WINDOW;
use crate::error::with_causes;

/// The sending half of the link with one rank, and its thread.
#[derive(Debug)]
pub(super) struct Outbox {
    /// None once it is closing.
    messages: Option<SyncSender<(Content, Vec<u8>)>>,
    buffers: Buffers,
    thread: Option<JoinHandle<()>>,
    failure: Arc<OnceLock<String>>,
}

impl Outbox {
    /// Starts the thread.
    pub(super) fn start(run: RunId, sender: Box<dyn FrameSender>, buffers: Buffers) -> Self {
        let (messages, received) = sync_channel(2 * WINDOW as usize);
        let failure = Arc::new(OnceLock::new());
        let (told, sent) = (failure.clone(), buffers.clone());
        let work = move || {
            if let Err(error) = send_all(run, sender, &received, &sent) {
                told.get_or_init(|| with_causes(&error));
            }
        };
        Self { messages: Some(messages), buffers, thread: Some(thread::spawn(work)), failure }
    }

    /// Why nothing is sent anymore.
    pub(super) fn failure(&self) -> &str {
        self.failure.get().map_or("its sending thread has ended", String::as_str)
    }

    /// Whether the bytes will be sent: not if the link has failed.
    pub(super) fn send(&self, content: Content, bytes: &[u8]) -> bool {
        let mut buffer = self.buffers.take();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        self.messages.as_ref().is_some_and(|messages| messages.send((content, buffer)).is_ok())
    }
}

impl Drop for Outbox {
    /// Sends what is left, and a goodbye.
    fn drop(&mut self) {
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has ended the link, which the other end sees.
            let _ = thread.join();
        }
    }
}

fn send_all(
    run: RunId,
    mut sender: Box<dyn FrameSender>,
    messages: &Receiver<(Content, Vec<u8>)>,
    buffers: &Buffers,
) -> Result<(), LinkError> {
    for (content, bytes) in messages {
        sender.send(&content.header(run, bytes.len()), &bytes)?;
        buffers.give(bytes);
    }
    sender.close()
}
