//! Ranks that are processes on one or more machines, each linked with each other one.
//!
//! Every link has two threads at each end, so that encoding goes on while messages travel both ways. No more frames are under way
//! than [the windows](crate#windows) allow; a peer that sends more finds that nobody reads. Once the longest messages have passed,
//! the memory of all of them is used again.

mod buffers;
mod inbox;
mod outbox;
mod wire;

use std::mem;
use std::sync::mpsc::sync_channel;

use thinwire_link::{LONGEST_REASON, Link, RunId};

use self::buffers::Buffers;
use self::inbox::Inbox;
use self::outbox::Outbox;
use self::wire::Content;
use crate::codecs::kernels;
use crate::{CollectiveError, Group, Part, Settings, Transport, WINDOW};

/// The end of rank `rank` of a group, given a link with each other rank and its number.
///
/// The links' own deadlines hold for a message under way; [`Settings::deadline`] for one that is waited for.
///
/// # Errors
/// [`CollectiveError::Links`] if they are not those with ranks `0..=links.len()` but `rank`, each once;
/// [`CollectiveError::Kernels`] if there are no kernels of the name in `THINWIRE_ISA`.
pub fn group(
    rank: usize,
    run: RunId,
    links: Vec<(usize, Link)>,
    settings: &Settings,
) -> Result<Group, CollectiveError> {
    let ranks = links.len() + 1;
    let mut with: Vec<usize> = links.iter().map(|&(other, _)| other).chain([rank]).collect();
    with.sort_unstable();
    if ranks < 2 || with.iter().enumerate().any(|(expected, &rank)| expected != rank) {
        return Err(CollectiveError::Links { rank, with });
    }
    let buffers = Buffers::default();
    let (events, received) = sync_channel(ranks * 2 * WINDOW as usize);
    let inbox = Inbox::new(rank, ranks, settings.deadline, received);
    let mut outboxes: Vec<Option<Outbox>> = (0..ranks).map(|_| None).collect();
    for (other, Link { sender, receiver, .. }) in links {
        outboxes[other] = Some(Outbox::start(run, sender, buffers.clone()));
        let longest = settings.longest_message() as u64;
        inbox::listen(other, receiver, longest, events.clone(), inbox.listens(), buffers.clone());
    }
    Ok(Group::new(Box::new(End { rank, inbox, outboxes, buffers }), settings.tile, kernels()?))
}

#[derive(Debug)]
struct End {
    rank: usize,
    inbox: Inbox,
    /// By rank; none to this one.
    outboxes: Vec<Option<Outbox>>,
    buffers: Buffers,
}

impl Transport for End {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.outboxes.len()
    }

    fn push(&mut self, to: usize, tile: u64, message: &[u8]) -> Result<(), CollectiveError> {
        let outbox = self.outboxes[to].as_ref().expect("a rank pushes nothing to itself");
        if outbox.send(Content::Message(Part::Push, tile), message) {
            return Ok(());
        }
        Err(self.inbox.why_gone(to, tile, outbox.failure()))
    }

    fn share(&mut self, tile: u64, message: &[u8]) -> Result<(), CollectiveError> {
        for (to, outbox) in self.outboxes.iter().enumerate() {
            if let Some(outbox) = outbox
                && !outbox.send(Content::Message(Part::Share, tile), message)
            {
                return Err(self.inbox.why_gone(to, tile, outbox.failure()));
            }
        }
        Ok(())
    }

    fn receive(
        &mut self,
        from: usize,
        part: Part,
        tile: u64,
        message: &mut Vec<u8>,
    ) -> Result<(), CollectiveError> {
        let received = self.inbox.wait(from, part, tile)?;
        self.buffers.give(mem::replace(message, received));
        Ok(())
    }

    fn give_up(&mut self, tile: u64, reason: &str) {
        let reason = &reason[..reason.floor_char_boundary(LONGEST_REASON)];
        for outbox in self.outboxes.iter().flatten() {
            outbox.send(Content::GaveUp(tile), reason.as_bytes());
        }
    }
}
