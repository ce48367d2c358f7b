//! Starts ranks and hears what became of them.

use std::env;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// How the ranks of a test meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Between {
    Shared,
    Links,
}

/// What a rank is told: [`Order::put`] on its environment, [`Order::take`] from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order<'a> {
    pub(crate) between: Between,
    pub(crate) folder: &'a Path,
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    /// The most values of a tile.
    pub(crate) tile: usize,
    pub(crate) deadline_ms: u64,
    /// The rank that stops in the middle of its second call.
    pub(crate) stops: Option<usize>,
}

const VARIABLE: &str = "THINWIRE_TEST_RANK";

impl<'a> Order<'a> {
    fn put(&self) -> String {
        let Self { between, folder, rank, ranks, tile, deadline_ms, stops } = self;
        let stops = stops.unwrap_or(*ranks);
        format!("{between:?}|{}|{rank}|{ranks}|{tile}|{deadline_ms}|{stops}", folder.display())
    }

    pub(crate) fn text() -> Option<String> {
        env::var(VARIABLE).ok()
    }

    pub(crate) fn take(text: &'a str) -> Self {
        let fields: Vec<&str> = text.split('|').collect();
        let [between, folder, rank, ranks, tile, deadline_ms, stops] = fields[..] else { panic!("{text}") };
        let number = |text: &str| text.parse::<usize>().unwrap();
        let ranks = number(ranks);
        Self {
            between: if between == "Shared" { Between::Shared } else { Between::Links },
            folder: Path::new(folder),
            rank: number(rank),
            ranks,
            tile: number(tile),
            deadline_ms: number(deadline_ms) as u64,
            stops: Some(number(stops)).filter(|&stops| stops < ranks),
        }
    }

    pub(crate) fn start(&self) -> Rank {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["rank::rank", "--exact", "--ignored", "--nocapture"])
            .env(VARIABLE, self.put())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Rank { child, lines }
    }
}

/// A process; it is killed when it is dropped.
pub(crate) struct Rank {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Rank {
    /// What the rank says next. The runner of tests says things too, in front of the rank's own words.
    pub(crate) fn says(&mut self) -> String {
        self.lines.find_map(|line| Some(line.unwrap().split_once("> ")?.1.to_owned())).expect("a last word")
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
