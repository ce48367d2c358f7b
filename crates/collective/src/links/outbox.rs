use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use thinwire_link::{FrameHeader, FrameKind, FrameSender, LinkError, RunId};

use super::inbox::Event;
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
}

impl Outbox {
    /// Starts the thread. Where the link fails, `events` hear of it.
    pub(super) fn start(
        to: usize,
        run: RunId,
        sender: Box<dyn FrameSender>,
        events: SyncSender<(usize, Event)>,
    ) -> Self {
        let (orders, received) = sync_channel(2 * WINDOW as usize);
        let work = move || {
            if let Err(error) = send_all(run, sender, &received) {
                // A full channel has an event that ends the group already.
                let _ = events.try_send((to, Event::Failed(with_causes(&error))));
            }
        };
        Self { orders: Some(orders), thread: Some(thread::spawn(work)) }
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
