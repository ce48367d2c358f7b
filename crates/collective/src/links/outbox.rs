use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use thinwire_link::{FrameHeader, FrameKind, FrameSender, LinkError, RunId};

use crate::error::with_causes;
use crate::{Part, WINDOW};

/// What a link's sending thread is to do.
enum Order {
    Send(Part, u64, Vec<u8>),
    Abort(String),
}

/// The sending half of the link with one rank, and its thread.
#[derive(Debug)]
pub(super) struct Outbox {
    /// None once it is closing.
    orders: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<OnceLock<String>>,
}

impl Outbox {
    /// Starts the thread.
    pub(super) fn start(run: RunId, sender: Box<dyn FrameSender>) -> Self {
        let (orders, received) = sync_channel(2 * WINDOW as usize);
        let failure = Arc::new(OnceLock::new());
        let told = failure.clone();
        let work = move || {
            if let Err(error) = send_all(run, sender, &received) {
                told.get_or_init(|| with_causes(&error));
            }
        };
        Self { orders: Some(orders), thread: Some(thread::spawn(work)), failure }
    }

    /// Why nothing is sent anymore.
    pub(super) fn failure(&self) -> &str {
        self.failure.get().map_or("its sending thread has ended", String::as_str)
    }

    /// Whether the message will be sent: not if the link has failed.
    pub(super) fn send(&self, part: Part, tile: u64, message: &[u8]) -> bool {
        self.order(Order::Send(part, tile, message.to_owned()))
    }

    pub(super) fn abort(&self, reason: &str) {
        self.order(Order::Abort(reason.to_owned()));
    }

    fn order(&self, order: Order) -> bool {
        self.orders.as_ref().is_some_and(|orders| orders.send(order).is_ok())
    }
}

impl Drop for Outbox {
    /// Sends what is left, and a goodbye.
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has ended the link, which the other end sees.
            let _ = thread.join();
        }
    }
}

fn send_all(run: RunId, mut sender: Box<dyn FrameSender>, orders: &Receiver<Order>) -> Result<(), LinkError> {
    for order in orders {
        match order {
            Order::Send(part, tile, message) => {
                let length = message.len() as u64;
                let header =
                    FrameHeader::without_tensor(run, FrameKind::Control, tile + 1, part as u32, length);
                sender.send(&header, &message)?;
            }
            Order::Abort(reason) => sender.abort(run, &reason)?,
        }
    }
    sender.close()
}
