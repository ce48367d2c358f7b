//! All measurements of a run, in order.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::thread;

use thinwire_lab::network::Network;
use thinwire_train::config::ByteSize;
use thinwire_train::plan::available_memory;

use super::case::Plan;
use super::measure::Measured;
use super::medium::{Local, Medium};
use super::memory::{self, TooLarge};
use super::peers::{Missing, Peer, PeerCase, PeerName, PeerPlan};
use super::place::Place;
use super::ranks::{linked, sharing, threads};
use super::report::{LinkRates, Report};
use super::row::Row;
use crate::error::{CommandError, one_line, say};

/// What is asked for.
pub(super) struct Session {
    pub(super) media: Vec<Medium>,
    pub(super) ranks: Vec<usize>,
    pub(super) plan: Plan,
    pub(super) peers: Vec<PeerName>,
    pub(super) python: PathBuf,
}

impl Session {
    pub(super) fn run(self) -> Result<Report, CommandError> {
        let folder = tempfile::tempdir()?;
        // What cannot be had is said before anything is measured.
        let found = self
            .peers
            .iter()
            .map(|&name| Peer::find(name, &self.python, folder.path()).map(|peer| (name, peer)));
        let (peers, missing): (Vec<_>, Vec<_>) = found.partition(Result::is_ok);
        let peers: Vec<_> = peers.into_iter().flatten().collect();
        let missing: Vec<Missing> = missing.into_iter().filter_map(Result::err).collect();
        for Missing { peer, reason } in &missing {
            say(format!("{peer} cannot be measured: {reason}\n"));
        }
        self.check_memory(&peers)?;
        if let Some(rate) = self.media.iter().find_map(|medium| medium.rate()) {
            Network::star(0, rate)?;
        }
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let Plan { warmup, repeats, .. } = self.plan;
        let mut report = Report { processors, warmup, repeats, rows: Vec::new(), links: Vec::new(), missing };
        for &medium in &self.media {
            for &ranks in &self.ranks {
                self.measure(medium, ranks, &peers, &mut report)?;
            }
        }
        report.compare();
        Ok(report)
    }

    fn check_memory(&self, peers: &[(PeerName, Peer)]) -> Result<(), TooLarge> {
        let available = available_memory();
        for &ranks in &self.ranks {
            for case in &self.plan.cases {
                let of_peers = peers.iter().map(|(_, peer)| peer.numbers_a_value()).max();
                let numbers = case.compensation.numbers_a_value().max(of_peers.unwrap_or(0));
                memory::check(ranks, ByteSize(4 * case.values as u64), numbers, available)?;
            }
        }
        Ok(())
    }

    fn measure(
        &self,
        medium: Medium,
        ranks: usize,
        peers: &[(PeerName, Peer)],
        report: &mut Report,
    ) -> Result<(), CommandError> {
        match medium {
            Medium::Local(Local::Memory) => {
                threads(ranks, &self.plan, |found| self.add(medium, &found, &mut report.rows))
            }
            Medium::Local(Local::Shared) => {
                sharing(ranks, &self.plan, |found| self.add(medium, &found, &mut report.rows))
            }
            Medium::Local(Local::Loopback) => self.measure_at(Place::Here, medium, ranks, peers, report),
            Medium::Links(rate) => {
                let network = Network::star(ranks, rate)?;
                let probe: Vec<OsString> = vec![env::current_exe()?.into_os_string(), "probe".into()];
                // Shown as it is: what the machine has no time to carry is part of the result.
                let carried = || network.measure(&probe, f64::INFINITY);
                let before = carried()?;
                self.measure_at(Place::Star(&network), medium, ranks, peers, report)?;
                report.links.push(LinkRates { rate, ranks, before, after: carried()? });
                Ok(())
            }
        }
    }

    fn measure_at(
        &self,
        place: Place<'_>,
        medium: Medium,
        ranks: usize,
        peers: &[(PeerName, Peer)],
        report: &mut Report,
    ) -> Result<(), CommandError> {
        let first = report.rows.len();
        linked(place, ranks, &self.plan, |found| self.add(medium, &found, &mut report.rows))?;
        for (name, peer) in peers {
            let plan = self.plan_of(peer, place);
            let measured = peer.run(place, ranks, &plan, |found| {
                let row = Row::of_peer(medium, *name, plan.cases[found[0].case], &found);
                told(&row);
                report.rows.push(row);
                Ok(())
            });
            if let Err(error) = measured {
                let reason = format!("{ranks} ranks, {medium}: {}", one_line(&*error));
                say(format!("{name} failed: {reason}\n"));
                report.missing.push(Missing { peer: *name, reason });
            }
        }
        // Those of one size belong together; the order of the others stays.
        let sizes = |row: &Row| self.plan.cases.iter().position(|case| case.values == row.values);
        report.rows[first..].sort_by_key(sizes);
        Ok(())
    }

    /// A peer's part of the same sizes.
    fn plan_of(&self, peer: &Peer, place: Place<'_>) -> PeerPlan {
        let mut sizes: Vec<usize> = self.plan.cases.iter().map(|case| case.values).collect();
        sizes.dedup();
        let wires = |&values: &usize| peer.wires().iter().map(move |&wire| PeerCase { values, wire });
        PeerPlan {
            cases: sizes.iter().flat_map(wires).collect(),
            warmup: self.plan.warmup,
            repeats: self.plan.repeats,
            patience: self.plan.patience(place.rate()),
        }
    }

    fn add(&self, medium: Medium, found: &[Measured], rows: &mut Vec<Row>) -> Result<(), CommandError> {
        let row = Row::of_case(medium, &self.plan.cases[found[0].case], found)?;
        told(&row);
        rows.push(row);
        Ok(())
    }
}

fn told(row: &Row) {
    let (medium, ranks, values) = row.place();
    let (size, Row { by, label, median_seconds, .. }) = (ByteSize(4 * values as u64), row);
    let compensation = row.compensation.name();
    say(format!(
        "{ranks} ranks, {medium}, {size}: {by}, {label}, compensation {compensation}: {:.3} ms\n",
        1e3 * median_seconds
    ));
}
