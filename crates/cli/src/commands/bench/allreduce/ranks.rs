//! Thinwire's ranks: threads of this process, or processes joined by links or by memory.

use std::env;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use thinwire_collective::{Group, Settings, memory};
use thinwire_link::RunId;

use super::case::Plan;
use super::collect::{Collected, follow};
use super::measure::{Measured, measure};
use super::place::Place;
use super::rank::{Carrier, Listening, Order};
use super::workers::{Start, Workers};
use crate::error::CommandError;

/// Gives each case of `plan` to `done`, as `ranks` threads of this process found it.
pub(super) fn threads(
    ranks: usize,
    plan: &Plan,
    mut done: impl FnMut(Vec<Measured>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let groups = memory::group(ranks, &Settings::default())?;
    let work = |mut group: Group, sender: Sender<Measured>| {
        measure::<CommandError>(&mut group, plan, |measured| Ok(sender.send(measured)?))
    };
    thread::scope(|scope| {
        let (sender, received) = channel();
        let threads: Vec<_> = groups
            .into_iter()
            .map(|group| (group, sender.clone()))
            .map(|(group, sender)| scope.spawn(move || work(group, sender)))
            .collect();
        drop(sender);
        let mut collected = Collected::new(ranks);
        for measured in received {
            if let Some(case) = collected.add(measured) {
                done(case)?; // the ranks end when nobody listens any more
            }
        }
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a rank has panicked")?)
    })
}

/// The same for processes at `place`, joined by links.
pub(super) fn linked(
    place: Place<'_>,
    ranks: usize,
    plan: &Plan,
    done: impl FnMut(Vec<Measured>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let mut workers = start(place, ranks, plan, |rank| Carrier::Links(place.address(rank)))?;
    let patience = plan.patience(place.rate());
    let mut listening: Vec<Option<Listening>> = (0..ranks).map(|_| None).collect();
    while listening.iter().any(Option::is_none) {
        let (rank, line) = workers.next(patience)?.ok_or("the ranks ended without a result")?;
        listening[rank] = Some(serde_json::from_str(&line).map_err(|_| workers.nonsense(rank, &line))?);
    }
    let everyone = serde_json::to_string(&listening)?;
    for rank in 0..ranks {
        workers.tell(rank, &everyone);
    }
    follow(&mut workers, ranks, patience, done)
}

/// The same for processes that share memory.
pub(super) fn sharing(
    ranks: usize,
    plan: &Plan,
    done: impl FnMut(Vec<Measured>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let mut workers = start(Place::Here, ranks, plan, |_| Carrier::Shared)?;
    follow(&mut workers, ranks, plan.patience(None), done)
}

fn start(
    place: Place<'_>,
    ranks: usize,
    plan: &Plan,
    carrier: impl Fn(usize) -> Carrier,
) -> Result<Workers, CommandError> {
    let (program, run) = (env::current_exe()?, RunId::random());
    let start = |rank: usize| {
        let mut command = place.command(rank, &program);
        command.args(["bench", "allreduce-rank", &rank.to_string()]);
        let order = Order { ranks, run, carrier: carrier(rank), plan: plan.clone() };
        Ok(Start { name: format!("rank {rank}"), command, order: Some(serde_json::to_string(&order)?) })
    };
    let all = (0..ranks).map(start).collect::<Result<Vec<_>, CommandError>>()?;
    Ok(Workers::start(all)?)
}
