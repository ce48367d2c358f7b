//! What a rank does.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use thinwire_codec::CodecSpec;
use thinwire_collective::{CollectiveError, Contribution, Group, Settings, links, shared};
use thinwire_link::{Deadlines, Hello, Link, LinkConfig, PublicKey, RunId, SecretKey, Terms, tcp};

use crate::group::{Between, Order};

pub(crate) const RUN: RunId = RunId([9; 16]);
pub(crate) const VALUES: usize = 40_000;

pub(crate) fn codec() -> CodecSpec {
    "group:group=64".parse().unwrap()
}

pub(crate) fn tensor(rank: usize) -> Vec<f32> {
    (0..VALUES).map(|i| ((i * 31 + rank * 7) as f32 * 0.1).sin()).collect()
}

/// Tells the process that started this one.
#[expect(clippy::print_stdout, reason = "where the other process listens")]
fn say(text: &str) {
    println!("> {text}");
}

/// Two calls. Says the sum of the first one as the bits of a few of its values, then how the second one ended and when.
#[test]
#[ignore = "a rank that other tests start"]
fn rank() {
    let Some(text) = Order::text() else { return };
    let order = Order::take(&text);
    let joined = join(&order);
    let mut group = match joined {
        Ok(group) => group,
        Err(error) => return say(&format!("error: {error}")),
    };
    let (x, mut y) = (tensor(order.rank), vec![0.0; VALUES]);
    group.all_reduce(&codec(), &x[..], &mut y).unwrap();
    say(&some_bits(&y));
    let start = Instant::now();
    let ended = if order.stops == Some(order.rank) {
        group.all_reduce(&codec(), &Stops, &mut y)
    } else {
        group.all_reduce(&codec(), &x[..], &mut y)
    };
    match ended {
        Ok(()) => say(&some_bits(&y)),
        Err(error) => say(&format!("error after {} ms: {error}", start.elapsed().as_millis())),
    }
}

pub(crate) fn some_bits(y: &[f32]) -> String {
    let some: Vec<String> = y.iter().step_by(97).map(|y| format!("{:08x}", y.to_bits())).collect();
    some.concat()
}

/// Says so and stops in the middle of a call, for ever.
struct Stops;

impl Contribution for Stops {
    fn values(&self) -> usize {
        VALUES
    }

    fn piece<'a>(&'a self, range: Range<usize>, scratch: &'a mut [f32]) -> &'a [f32] {
        if range.contains(&(VALUES / 5)) {
            say("stopped");
            loop {
                thread::park();
            }
        }
        scratch.fill(1.0);
        scratch
    }
}

fn join(order: &Order<'_>) -> Result<Group, CollectiveError> {
    let settings = Settings { tile: order.tile, deadline: Duration::from_millis(order.deadline_ms) };
    match order.between {
        Between::Shared => shared::group(order.folder, RUN, order.rank, order.ranks, &settings),
        Between::Links => {
            let links = (0..order.ranks).filter(|&other| other != order.rank);
            let links = links.map(|other| (other, link(order, other))).collect();
            links::group(order.rank, RUN, links, &settings)
        }
    }
}

/// The link with `other`. The lower rank listens, and leaves its address and both keys in the folder.
fn link(order: &Order<'_>, other: usize) -> Link {
    let (low, high) = (order.rank.min(other), order.rank.max(other));
    let hello = Hello {
        run: RUN,
        stage: order.rank as u32,
        peer_stage: other as u32,
        stages: order.ranks as u32,
        terms: Terms::new(),
    };
    let config = LinkConfig { hello, deadlines: Deadlines::default(), rate: None };
    let file = |what: &str, rank: usize| order.folder.join(format!("{what}-{low}-{high}-{rank}"));
    let key = SecretKey::generate();
    leave(&file("key", order.rank), &key.public().to_string());
    let listener = (order.rank == low).then(|| tcp::Listener::bind("127.0.0.1:0").unwrap());
    if let Some(listener) = &listener {
        leave(&file("address", low), &listener.local_addr().to_string());
    }
    let theirs: PublicKey = find(&file("key", other)).parse().unwrap();
    match listener {
        Some(listener) => listener.accept(&key, &theirs, &config).unwrap(),
        None => tcp::connect(&find(&file("address", low)), &key, &theirs, &config).unwrap(),
    }
}

/// Writes a file that is there as a whole or not at all.
fn leave(path: &Path, text: &str) {
    let temporary = path.with_extension("new");
    fs::write(&temporary, text).unwrap();
    fs::rename(&temporary, path).unwrap();
}

fn find(path: &Path) -> String {
    loop {
        match fs::read_to_string(path) {
            Ok(text) => return text,
            Err(_) => thread::sleep(Duration::from_millis(2)),
        }
    }
}
