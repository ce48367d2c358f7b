use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use thinwire_link::{FrameHeader, FrameKind, FrameReceiver, LinkError, WaitingFor};

use super::buffers::Buffers;
use super::wire::Content;
use crate::error::with_causes;
use crate::{CollectiveError, Part};

/// How much longer a rank waits for a sum than for an addend. A sum is late if its owner waits for someone's addend: then the
/// owner should be the one that notices, and name the right rank.
const GRACE: Duration = Duration::from_secs(1);

/// What comes from one rank.
#[derive(Debug)]
pub(super) enum Event {
    Message(Part, u64, Vec<u8>),
    /// It has told why, and from which tile on.
    GaveUp(u64, String),
    /// It closed the link.
    Left,
    /// The link is broken.
    Failed(String),
}

/// What has come from all ranks.
#[derive(Debug)]
pub(super) struct Inbox {
    by: usize,
    deadline: Duration,
    events: Receiver<(usize, Event)>,
    senders: Vec<Sender>,
    listens: Arc<()>,
}

/// What has come from one rank and was not asked for yet.
#[derive(Debug, Default)]
struct Sender {
    /// By part.
    messages: [VecDeque<(u64, Vec<u8>)>; 2],
    gave_up: Option<(u64, String)>,
    left: bool,
}

impl Inbox {
    pub(super) fn new(by: usize, ranks: usize, deadline: Duration, events: Receiver<(usize, Event)>) -> Self {
        let senders = (0..ranks).map(|_| Sender::default()).collect();
        Self { by, deadline, events, senders, listens: Arc::new(()) }
    }

    /// Dead once nobody asks for messages anymore.
    pub(super) fn listens(&self) -> Weak<()> {
        Arc::downgrade(&self.listens)
    }

    /// Waits for a message.
    pub(super) fn wait(&mut self, from: usize, part: Part, tile: u64) -> Result<Vec<u8>, CollectiveError> {
        let (by, start) = (self.by, Instant::now());
        let patience = self.deadline + if part == Part::Share { GRACE } else { Duration::ZERO };
        loop {
            if let Some((got, message)) = self.senders[from].messages[part as usize].pop_front() {
                return if got == tile {
                    Ok(message)
                } else {
                    Err(CollectiveError::Order { rank: from, part, expected: tile, got })
                };
            }
            self.check_given_up(tile)?;
            if self.senders[from].left {
                return Err(CollectiveError::Left { rank: from, by, part, tile });
            }
            let waited = start.elapsed();
            let Some(left) = patience.checked_sub(waited).filter(|left| !left.is_zero()) else {
                return Err(CollectiveError::Late { rank: from, by, part, tile, waited });
            };
            if let Ok((rank, event)) = self.events.recv_timeout(left) {
                self.note(rank, event)?;
            }
        }
    }

    /// Why nothing of `tile` can be sent to `rank`: what it or another rank says of it, which may have to come first, or else
    /// `reason`.
    pub(super) fn why_gone(&mut self, rank: usize, tile: u64, reason: &str) -> CollectiveError {
        let start = Instant::now();
        while let Some(left) = GRACE.checked_sub(start.elapsed())
            && let Ok((rank, event)) = self.events.recv_timeout(left)
        {
            if let Err(error) = self.note(rank, event).and_then(|()| self.check_given_up(tile)) {
                return error;
            }
        }
        CollectiveError::Link { rank, reason: reason.to_owned() }
    }

    /// A rank that gave up in a later call has done its part of this tile.
    fn check_given_up(&self, tile: u64) -> Result<(), CollectiveError> {
        for (rank, sender) in self.senders.iter().enumerate() {
            if let Some((from, reason)) = &sender.gave_up
                && *from <= tile
            {
                return Err(CollectiveError::GaveUp { rank, reason: reason.clone() });
            }
        }
        Ok(())
    }

    fn note(&mut self, rank: usize, event: Event) -> Result<(), CollectiveError> {
        let sender = &mut self.senders[rank];
        match event {
            Event::Message(part, tile, message) => {
                sender.messages[part as usize].push_back((tile, message));
            }
            Event::GaveUp(tile, reason) => sender.gave_up = Some((tile, reason)),
            Event::Left => sender.left = true,
            Event::Failed(reason) => return Err(CollectiveError::Link { rank, reason }),
        }
        Ok(())
    }
}

/// Starts the thread that hands what comes from `from` to `events`, messages of up to `longest` bytes. It ends with the link, or
/// when nobody `listens` anymore and nothing comes.
pub(super) fn listen(
    from: usize,
    mut receiver: Box<dyn FrameReceiver>,
    longest: u64,
    events: SyncSender<(usize, Event)>,
    listens: Weak<()>,
    buffers: Buffers,
) {
    let waiting_for = WaitingFor::new(FrameKind::Collective, 0, 0, longest);
    thread::spawn(move || {
        loop {
            let mut payload = buffers.take();
            let event = match receiver.receive(&waiting_for, &mut payload) {
                Ok(header) => received(&header, payload),
                // Between two calls there is nothing to say.
                Err(LinkError::Silent { progress, .. })
                    if progress.done == 0 && listens.strong_count() > 0 =>
                {
                    continue;
                }
                Err(LinkError::Closed { .. }) => Event::Left,
                Err(error) => Event::Failed(with_causes(&error)),
            };
            let last = matches!(event, Event::Left | Event::Failed(_));
            // Where nobody listens anymore, the rest is read and dropped, so that the peer's goodbye comes through.
            let _ = events.send((from, event));
            if last {
                break;
            }
        }
    });
}

fn received(header: &FrameHeader, payload: Vec<u8>) -> Event {
    match Content::of(header) {
        Some(Content::Message(part, tile)) => Event::Message(part, tile, payload),
        Some(Content::GaveUp(tile)) => {
            // It ends up on a terminal.
            Event::GaveUp(tile, String::from_utf8_lossy(&payload).replace(char::is_control, " "))
        }
        None => Event::Failed(format!("a frame that is no part of a collective came: {}", header.name())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    /// Rank 2 is through with the call of tile 4 and fails in the next one; rank 1's part of tile 4 comes after that.
    #[test]
    fn who_gave_up_in_a_later_call_holds_nobody_up_in_this_one() {
        let (events, received) = sync_channel(8);
        let mut inbox = Inbox::new(0, 3, Duration::from_secs(20), received);
        events.send((2, Event::GaveUp(5, "a NaN".to_owned()))).unwrap();
        events.send((2, Event::Left)).unwrap();
        events.send((1, Event::Message(Part::Share, 4, vec![7]))).unwrap();
        assert_eq!(inbox.wait(1, Part::Share, 4), Ok(vec![7]));
        let gave_up = CollectiveError::GaveUp { rank: 2, reason: "a NaN".to_owned() };
        assert_eq!(inbox.wait(1, Part::Push, 5), Err(gave_up));
        let left = CollectiveError::Left { rank: 2, by: 0, part: Part::Push, tile: 4 };
        assert_eq!(inbox.wait(2, Part::Push, 4), Err(left));
    }

    #[test]
    fn a_message_that_is_not_the_next_one_is_refused() {
        let (events, received) = sync_channel(8);
        let mut inbox = Inbox::new(0, 2, Duration::from_secs(20), received);
        events.send((1, Event::Message(Part::Push, 3, Vec::new()))).unwrap();
        let order = CollectiveError::Order { rank: 1, part: Part::Push, expected: 2, got: 3 };
        assert_eq!(inbox.wait(1, Part::Push, 2), Err(order));
    }
}
