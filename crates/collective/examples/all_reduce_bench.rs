//! Measures the all-reduce between threads: exact, in 8 and 4 bits, and in 4 bits with compensation, taking turns.
//!
//! ```text
//! cargo run --release -p thinwire-collective --example all_reduce_bench
//! ```
//!
//! Algorithm bandwidth is the bytes of one rank's f32 tensor over the seconds of a call. It says nothing of links.
#![expect(clippy::print_stdout, reason = "the table is the program's result")]

use std::error::Error;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use thinwire_codec::CodecSpec;
use thinwire_collective::{Coefficients, CollectiveError, Compensator, Group, Settings, memory};

const RANKS: [usize; 2] = [2, 4];
const VALUES: [usize; 3] = [1 << 14, 1 << 20, 1 << 24];
const VARIANTS: [(&str, &str, bool); 5] = [
    ("f32", "f32", false),
    ("bf16", "bf16", false),
    ("8 bits", "group:bits=8", false),
    ("4 bits", "group", false),
    ("4 bits, compensated", "group", true),
];
const TURNS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    println!("{} processors available\n", thread::available_parallelism()?);
    println!("| ranks | values | variant | ms a call, median of {TURNS} | GB/s | update, ms |");
    println!("|---|---|---|---|---|---|");
    for ranks in RANKS {
        for values in VALUES {
            let times = measure(ranks, values)?;
            for ((name, ..), [call, update]) in VARIANTS.iter().zip(times) {
                let speed = (4 * values) as f64 / call.as_secs_f64() / 1e9;
                let [call, update] = [call, update].map(|time| time.as_secs_f64() * 1e3);
                println!("| {ranks} | {values} | {name} | {call:.3} | {speed:.2} | {update:.3} |");
            }
        }
    }
    Ok(())
}

/// Of each variant the median times of a call and of a compensator's update.
fn measure(ranks: usize, values: usize) -> Result<Vec<[Duration; 2]>, CollectiveError> {
    let (barrier, times) = (Barrier::new(ranks), Mutex::new(vec![Vec::new(); VARIANTS.len()]));
    let groups = memory::group(ranks, &Settings::default())?;
    let rank = |mut group: Group| -> Result<(), CollectiveError> {
        let x: Vec<f32> = (0..values).map(|i| ((i * 7 + group.rank()) as f32 * 0.37).sin()).collect();
        let mut y = vec![0.0; values];
        let mut compensator = Compensator::new(Coefficients::default(), values);
        // The first turn sizes everyone's memory.
        for turn in 0..=TURNS {
            for (variant, (_, spec, compensated)) in VARIANTS.into_iter().enumerate() {
                let spec: CodecSpec = spec.parse().expect("a codec");
                barrier.wait();
                let start = Instant::now();
                if compensated {
                    group.all_reduce(&spec, &compensator.apply(&x), &mut y)?;
                } else {
                    group.all_reduce(&spec, &x[..], &mut y)?;
                }
                barrier.wait();
                let call = start.elapsed();
                let start = Instant::now();
                if compensated {
                    compensator.update(&x, &y, ranks);
                }
                if turn > 0 && group.rank() == 0 {
                    times.lock().expect("no rank has panicked")[variant].push([call, start.elapsed()]);
                }
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = groups.into_iter().map(|group| scope.spawn(|| rank(group))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no rank panics"))
    })?;
    let times = times.into_inner().expect("no rank has panicked");
    let median = |times: &[[Duration; 2]], which: usize| {
        let mut times: Vec<Duration> = times.iter().map(|pair| pair[which]).collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    Ok(times.iter().map(|times| [median(times, 0), median(times, 1)]).collect())
}
