//! Measures the all-reduce: exact, in 8 and 4 bits, and in 4 bits with compensation, taking turns.
//!
//! ```text
//! cargo run --release -p thinwire-collective --example all_reduce_bench -- [memory | shared | links [RATE]] [RANKS [VALUES [VARIANT]]]
//! ```
//!
//! `memory` joins threads by memory, `shared` by files in /dev/shm as processes are, `links` joins them by TCP and TLS over loopback,
//! where RATE, such as `1Gbit/s`, is what each rank may send to all others together. Algorithm bandwidth is the bytes of one rank's
//! f32 tensor over the seconds of a call. The variant `copy` is what memory allows: every rank reads its tensor and writes the
//! result, at the same time. Stages are those of rank 0, on average.
#![expect(clippy::print_stdout, reason = "the table is the program's result")]

use std::env;
use std::error::Error;
use std::path::Path;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use thinwire_codec::CodecSpec;
use thinwire_collective::{
    Coefficients, CollectiveError, Compensator, Group, Settings, Statistics, Times, links, memory, shared,
};
use thinwire_link::{Deadlines, Hello, LinkConfig, Rate, RunId, Terms, tcp};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const RANKS: [usize; 2] = [2, 4];
const VALUES: [usize; 3] = [1 << 14, 1 << 20, 1 << 24];
/// Name, codec if it is no copy, whether it is compensated.
type Variant = (&'static str, Option<&'static str>, bool);
const VARIANTS: [Variant; 6] = [
    ("copy", None, false),
    ("f32", Some("f32"), false),
    ("bf16", Some("bf16"), false),
    ("8 bits", Some("group:bits=8"), false),
    ("4 bits", Some("group"), false),
    ("4 bits, compensated", Some("group"), true),
];
const TURNS: usize = 9;

/// What carries the messages.
#[derive(Clone, Copy)]
enum Between {
    Memory,
    Shared,
    Links(Option<Rate>),
}

fn main() -> Outcome<()> {
    let mut arguments = env::args().skip(1).peekable();
    let between = match arguments.next().as_deref() {
        None | Some("memory") => Between::Memory,
        Some("shared") => Between::Shared,
        Some("links") => {
            let rate = arguments.next_if(|text| text.parse::<usize>().is_err());
            Between::Links(rate.map(|rate| rate.parse()).transpose()?)
        }
        Some(other) => return Err(format!("`{other}` is none of memory, shared and links").into()),
    };
    let mut number = || arguments.next().map(|text| text.parse::<usize>()).transpose();
    let ranks = number()?.map_or(RANKS.to_vec(), |ranks| vec![ranks]);
    let values = number()?.map_or(VALUES.to_vec(), |values| vec![values]);
    let only = arguments.next();
    let variants: Vec<Variant> =
        VARIANTS.into_iter().filter(|(name, ..)| only.as_ref().is_none_or(|only| name == only)).collect();
    println!("{} processors available\n", thread::available_parallelism()?);
    println!(
        "| ranks | values | variant | ms a call, median of {TURNS} | GB/s | push | reduce | share | tail | waiting | update |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for ranks in ranks {
        for &values in &values {
            let samples = measure(group(between, ranks)?, values, &variants)?;
            for ((name, ..), samples) in variants.iter().zip(samples) {
                let call = median(samples.iter().map(|sample| sample.call));
                let update = median(samples.iter().map(|sample| sample.update));
                let speed = (4 * values) as f64 / call.as_secs_f64() / 1e9;
                print!("| {ranks} | {values} | {name} | {:.3} | {speed:.2} |", milliseconds(call));
                let stages = samples.last().map(|sample| sample.stages).unwrap_or_default();
                for stage in [stages.push, stages.reduce, stages.share, stages.tail, stages.waiting] {
                    print!(" {:.1} |", milliseconds(stage) / (TURNS + 1) as f64);
                }
                println!(" {:.3} |", milliseconds(update));
            }
        }
    }
    Ok(())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times[times.len() / 2]
}

const RUN: RunId = RunId([1; 16]);

fn group(between: Between, ranks: usize) -> Outcome<Vec<Group>> {
    let settings = Settings::default();
    match between {
        Between::Memory => Ok(memory::group(ranks, &settings)?),
        Between::Shared => thread::scope(|scope| {
            let join = |rank| shared::group(Path::new(shared::FOLDER), RUN, rank, ranks, &settings);
            let joined: Vec<_> = (0..ranks).map(|rank| scope.spawn(move || join(rank))).collect();
            Ok(joined.into_iter().map(|rank| rank.join().expect("no panic")).collect::<Result<_, _>>()?)
        }),
        Between::Links(rate) => linked(rate, ranks, &settings),
    }
}

fn linked(rate: Option<Rate>, ranks: usize, settings: &Settings) -> Outcome<Vec<Group>> {
    // A rank's links share what it may send.
    let rate = rate.and_then(|rate| Rate::bits(rate.bits_per_second() / (ranks as u64 - 1)));
    let config = |rank: usize, other: usize| {
        let (stage, peer_stage) = (rank as u32, other as u32);
        let hello = Hello { run: RUN, stage, peer_stage, stages: ranks as u32, terms: Terms::new() };
        LinkConfig { hello, deadlines: Deadlines::default(), rate }
    };
    let mut joined: Vec<Vec<_>> = (0..ranks).map(|_| Vec::new()).collect();
    for first in 0..ranks {
        for second in first + 1..ranks {
            let (to_second, to_first) = tcp::pair(&config(first, second), &config(second, first))?;
            joined[first].push((second, to_second));
            joined[second].push((first, to_first));
        }
    }
    let groups = joined.into_iter().enumerate();
    Ok(groups.map(|(rank, links)| links::group(rank, RUN, links, settings)).collect::<Result<_, _>>()?)
}

#[derive(Clone, Copy)]
struct Sample {
    call: Duration,
    /// Of the compensator.
    update: Duration,
    /// Of all calls so far.
    stages: Times,
}

/// Of each variant the times of rank 0.
fn measure(
    groups: Vec<Group>,
    values: usize,
    variants: &[Variant],
) -> Result<Vec<Vec<Sample>>, CollectiveError> {
    let (barrier, samples) = (Barrier::new(groups.len()), Mutex::new(vec![Vec::new(); variants.len()]));
    let rank = |mut group: Group| -> Result<(), CollectiveError> {
        let mut tensors = Tensors::new(values, group.rank());
        let mut stages = vec![Statistics::default(); variants.len()];
        // The first turn sizes everyone's memory.
        for turn in 0..=TURNS {
            for (i, variant) in variants.iter().enumerate() {
                let [call, update] = tensors.call(&mut group, variant, &barrier)?;
                stages[i].merge(&group.take_statistics());
                if turn > 0 && group.rank() == 0 {
                    let sample = Sample { call, update, stages: stages[i].times };
                    samples.lock().expect("no rank has panicked")[i].push(sample);
                }
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = groups.into_iter().map(|group| scope.spawn(|| rank(group))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no rank panics"))
    })?;
    Ok(samples.into_inner().expect("no rank has panicked"))
}

struct Tensors {
    x: Vec<f32>,
    y: Vec<f32>,
    compensator: Compensator,
}

impl Tensors {
    fn new(values: usize, rank: usize) -> Self {
        let compensator = Compensator::new(Coefficients::default(), values);
        Self { x: noise(values, rank as u32), y: vec![0.0; values], compensator }
    }

    /// The times of all ranks' call and of this one's update.
    fn call(
        &mut self,
        group: &mut Group,
        &(_, codec, compensated): &Variant,
        barrier: &Barrier,
    ) -> Result<[Duration; 2], CollectiveError> {
        let Self { x, y, compensator } = self;
        let codec: Option<CodecSpec> = codec.map(|codec| codec.parse().expect("a codec"));
        barrier.wait();
        let start = Instant::now();
        match &codec {
            None => y.copy_from_slice(x),
            Some(codec) if compensated => group.all_reduce(codec, &compensator.apply(x), y)?,
            Some(codec) => group.all_reduce(codec, &x[..], y)?,
        }
        barrier.wait();
        let call = start.elapsed();
        let start = Instant::now();
        if compensated {
            compensator.update(x, y, group.ranks());
        }
        Ok([call, start.elapsed()])
    }
}

fn noise(values: usize, mut state: u32) -> Vec<f32> {
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 - 8e6
    };
    (0..values).map(|_| next()).collect()
}
