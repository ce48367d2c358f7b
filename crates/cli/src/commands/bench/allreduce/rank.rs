//! `thinwire bench allreduce-rank`: one rank as a process, as `thinwire bench allreduce` starts it.

use std::io::{self, BufRead as _, Read as _, Write as _};
#[cfg(unix)]
use std::path::Path;
use std::{process, thread};

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;
use thinwire_collective::{Group, Settings, links};
use thinwire_link::tcp::{Listener, connect};
use thinwire_link::{Deadlines, Hello, Link, LinkConfig, PublicKey, RunId, SecretKey, Terms};

use super::case::Plan;
use super::measure::measure;
use crate::error::{CommandError, one_line};
use crate::output::Output;

/// Be one rank of `thinwire bench allreduce`, which says what to do on standard input. Ends when that closes.
#[derive(Debug, Args)]
pub(in super::super) struct Rank {
    rank: usize,
}

/// The first line that a rank is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) ranks: usize,
    pub(super) run: RunId,
    pub(super) carrier: Carrier,
    pub(super) plan: Plan,
}

/// What carries its messages.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Carrier {
    /// Memory that all ranks share.
    Shared,
    /// Links; it listens at this host.
    Links(String),
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Listening {
    pub(super) key: PublicKey,
    /// A port for each rank behind it, by rank; none for the others.
    pub(super) addresses: Vec<Option<String>>,
}

impl Rank {
    pub(in super::super) fn run(self, _: Output) -> Result<(), CommandError> {
        work(self.rank).map_err(|error| {
            let _ = say(&json!({ "failed": one_line(&*error) })); // whoever listened is gone
            error
        })
    }
}

fn work(rank: usize) -> Result<(), CommandError> {
    let order: Order = hear()?;
    let mut group = match &order.carrier {
        Carrier::Shared => {
            end_with_input();
            sharing(rank, &order)?
        }
        Carrier::Links(host) => linked(rank, &order, host)?,
    };
    measure::<CommandError>(&mut group, &order.plan, |measured| Ok(say(&measured)?))
}

#[cfg(unix)]
fn sharing(rank: usize, order: &Order) -> Result<Group, CommandError> {
    use thinwire_collective::shared;
    let folder = Path::new(shared::FOLDER);
    Ok(shared::group(folder, order.run, rank, order.ranks, &Settings::default())?)
}

#[cfg(not(unix))]
fn sharing(_: usize, _: &Order) -> Result<Group, CommandError> {
    Err("processes cannot share memory on this system".into())
}

/// Tells where it listens, hears where the others do, and joins them.
fn linked(rank: usize, order: &Order, host: &str) -> Result<Group, CommandError> {
    let key = SecretKey::generate();
    let listeners = (0..order.ranks)
        .map(|other| (other > rank).then(|| Listener::bind(&format!("{host}:0"))).transpose())
        .collect::<Result<Vec<_>, _>>()?;
    let addresses = listeners.iter().map(|l| Some(l.as_ref()?.local_addr().to_string())).collect();
    say(&Listening { key: key.public(), addresses })?;
    let others: Vec<Listening> = hear()?;
    end_with_input();
    let links = join(rank, order, &key, &listeners, &others)?;
    Ok(links::group(rank, order.run, links, &Settings::default())?)
}

/// Whoever started this process holds the other end of its input: when that one dies, however it dies, so does this one.
fn end_with_input() {
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        process::exit(1);
    });
}

/// A link with each other rank. Pairs of ranks are joined in the same order everywhere, so that none waits in vain.
fn join(
    rank: usize,
    order: &Order,
    key: &SecretKey,
    listeners: &[Option<Listener>],
    others: &[Listening],
) -> Result<Vec<(usize, Link)>, CommandError> {
    let mut links = Vec::new();
    for (other, (listener, theirs)) in listeners.iter().zip(others).enumerate() {
        if other == rank {
            continue;
        }
        let stage = |rank: usize| rank as u32;
        let config = LinkConfig {
            hello: Hello {
                run: order.run,
                stage: stage(rank),
                peer_stage: stage(other),
                stages: stage(order.ranks),
                terms: Terms::new(),
            },
            deadlines: Deadlines::default(),
            rate: None,
        };
        let link = match (listener, theirs.addresses.get(rank)) {
            (Some(listener), _) => listener.accept(key, &theirs.key, &config)?,
            (None, Some(Some(address))) => connect(address, key, &theirs.key, &config)?,
            (None, _) => return Err(format!("rank {other} does not listen for rank {rank}").into()),
        };
        links.push((other, link));
    }
    Ok(links)
}

fn hear<T: for<'de> Deserialize<'de>>() -> Result<T, CommandError> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

fn say(what: &impl Serialize) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    serde_json::to_writer(&mut stdout, what)?;
    writeln!(stdout).and_then(|()| stdout.flush())
}
