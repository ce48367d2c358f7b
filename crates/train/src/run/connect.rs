//! A stage's links over TCP.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use thinwire_link::tcp::{self, Listener};
use thinwire_link::{Link, LinkError, PeerAddress, PublicKey, RunId, SecretKey};

use super::train::Emit;
use super::{Links, RunError, Setup};
use crate::metrics::Event;
use crate::pipeline::PipelineError;

/// Where a stage's neighbours are and how all three prove who they are.
#[derive(Debug)]
pub struct Neighborhood {
    /// This stage's key.
    pub identity: SecretKey,
    /// The stage before, which connects to us.
    pub previous: Option<Previous>,
    /// The stage after, to which we connect.
    pub next: Option<Next>,
}

/// How the stage before reaches this one.
#[derive(Debug)]
pub struct Previous {
    /// `host:port` to listen on; port 0 takes a free one.
    pub listen: String,
    /// The key it must show.
    pub key: PublicKey,
}

/// How this stage reaches the one after.
#[derive(Debug)]
pub struct Next {
    /// Its `host:port`.
    pub address: String,
    /// The key it must show.
    pub key: PublicKey,
}

/// Listens, connects, and compares the terms, with both neighbours at the same time.
///
/// # Errors
/// The first link that cannot be made; the other is given up, and its peer told why if it is there.
///
/// # Panics
/// When a thread that makes a link panics.
pub fn connect(
    setup: &Setup,
    stage: usize,
    neighborhood: Neighborhood,
    resume: bool,
    emit: &mut Emit<'_>,
) -> Result<Links, RunError> {
    let Neighborhood { identity, previous, next } = neighborhood;
    let identity = Arc::new(identity);
    let (sender, made) = channel();
    let mut expected = 0;
    if let Some(Previous { listen, key }) = previous {
        let listener = Listener::bind(&listen).map_err(PipelineError::from)?;
        tell(emit, Event::Listening { stage, address: listener.local_addr().to_string() })?;
        let config = setup.link_config(stage, stage - 1, resume)?;
        let identity = identity.clone();
        make(&sender, move || listener.accept(&identity, &key, &config));
        expected += 1;
    }
    if let Some(Next { address, key }) = next {
        let config = setup.link_config(stage, stage + 1, resume)?;
        let identity = identity.clone();
        make(&sender, move || tcp::connect(&address, &identity, &key, &config));
        expected += 1;
    }
    let mut links = Links::default();
    for _ in 0..expected {
        let link: Link = match made.recv().expect("each thread sends once") {
            Ok(link) => link,
            Err(error) => {
                give_up(links, setup.run_id()?, &format!("stage {stage}: {}", crate::text::chain(&error)));
                return Err(PipelineError::from(error).into());
            }
        };
        let peer = link.peer.stage() as usize;
        let bandwidth = setup.boundary(stage.min(peer)).bandwidth;
        tell(
            emit,
            Event::Connected {
                stage,
                peer,
                address: match link.peer.address() {
                    PeerAddress::Tcp(address) => address.to_string(),
                    PeerAddress::Memory => "memory".to_owned(),
                },
                bandwidth: bandwidth.map(|bandwidth| bandwidth.rate().bits_per_second()),
            },
        )?;
        *if peer < stage { &mut links.previous } else { &mut links.next } = Some(link);
    }
    Ok(links)
}

/// Runs `attempt` beside the other; each has its own deadlines, so neither thread outlives them.
fn make(
    sender: &Sender<Result<Link, LinkError>>,
    attempt: impl FnOnce() -> Result<Link, LinkError> + Send + 'static,
) {
    let sender = sender.clone();
    thread::spawn(move || {
        // Nobody listens any more when the other link has failed.
        let _ = sender.send(attempt());
    });
}

/// Tells the neighbours that have come why nothing follows.
fn give_up(links: Links, run: RunId, reason: &str) {
    for mut link in [links.previous, links.next].into_iter().flatten() {
        // One that does not take it finds the link closed.
        let _ = link.sender.abort(run, reason);
    }
}

fn tell(emit: &mut Emit<'_>, event: Event) -> Result<(), RunError> {
    emit(event).map_err(RunError::Events)
}
