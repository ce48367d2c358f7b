//! Measures a link on the loopback: throughput beside a plain TCP copy, bytes of overhead, latency, throttle.
//!
//! ```text
//! cargo run --release -p thinwire-link --example link_bench
//! ```
//!
//! Prints the tables of `docs/bench/link.md`.
#![expect(clippy::print_stdout, reason = "the tables are the program's result")]

use std::{
    error::Error,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use thinwire_link::{
    Deadlines, FrameHeader, FrameKind, Hello, Link, LinkConfig, Rate, RunId, Terms, WaitingFor, memory, tcp,
};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const MIB: usize = 1 << 20;
const FRAME: usize = 4 * MIB;
const FRAMES: usize = 64;
const REPEATS: usize = 12;

fn main() -> Outcome<()> {
    println!("{} processors available\n", thread::available_parallelism()?);
    throughput()?;
    overhead()?;
    latency()?;
    throttle()
}

/// One pass over a connection.
type Pass = fn() -> Outcome<Duration>;

const PASSES: [(&str, Pass); 5] = [
    ("plain TCP copy, one way", plain_copy),
    ("plain TCP copy, both ways", plain_copy_both_ways),
    ("link over TLS, one way", || one_way(tls_link(None)?)),
    ("link over TLS, both ways", || both_ways(tls_link(None)?)),
    ("link in memory, one way", || one_way(memory_link()?)),
];

/// The passes take turns, so that whatever else the machine does meets all of them.
fn throughput() -> Outcome<()> {
    let mut shortest = [Duration::MAX; PASSES.len()];
    for _ in 0..REPEATS {
        for ((_, pass), shortest) in PASSES.into_iter().zip(&mut shortest) {
            *shortest = pass()?.min(*shortest);
        }
    }
    println!("| {FRAMES} frames of {} MiB, best of {REPEATS} | GB/s each way |\n|---|---|", FRAME / MIB);
    for ((name, _), time) in PASSES.into_iter().zip(shortest) {
        println!("| {name} | {:.2} |", (FRAME * FRAMES) as f64 / time.as_secs_f64() / 1e9);
    }
    println!();
    Ok(())
}

fn plain_pair() -> Outcome<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let first = TcpStream::connect(listener.local_addr()?)?;
    Ok((first, listener.accept()?.0))
}

fn plain_copy() -> Outcome<Duration> {
    let (out, input) = plain_pair()?;
    let start = Instant::now();
    join([thread::spawn(move || write_plain(out)), thread::spawn(move || read_plain(input))])?;
    Ok(start.elapsed())
}

fn plain_copy_both_ways() -> Outcome<Duration> {
    let (first, second) = plain_pair()?;
    let (first_too, second_too) = (first.try_clone()?, second.try_clone()?);
    let start = Instant::now();
    join([
        thread::spawn(move || write_plain(first)),
        thread::spawn(move || write_plain(second)),
        thread::spawn(move || read_plain(first_too)),
        thread::spawn(move || read_plain(second_too)),
    ])?;
    Ok(start.elapsed())
}

fn write_plain(mut out: TcpStream) -> Outcome<()> {
    let frame = vec![1; FRAME];
    for _ in 0..FRAMES {
        out.write_all(&frame)?;
    }
    Ok(())
}

fn read_plain(mut input: TcpStream) -> Outcome<()> {
    let mut frame = vec![0; FRAME];
    for _ in 0..FRAMES {
        input.read_exact(&mut frame)?;
    }
    Ok(())
}

fn one_way((first, second): (Link, Link)) -> Outcome<Duration> {
    let start = Instant::now();
    // The halves that are not used stay open to the end.
    let (_first_receiver, _second_sender) = (first.receiver, second.sender);
    join([
        thread::spawn(move || send(first.sender, FRAME, FRAMES)),
        thread::spawn(move || receive(second.receiver, FRAMES)),
    ])?;
    Ok(start.elapsed())
}

fn both_ways((first, second): (Link, Link)) -> Outcome<Duration> {
    let start = Instant::now();
    join([
        thread::spawn(move || send(first.sender, FRAME, FRAMES)),
        thread::spawn(move || send(second.sender, FRAME, FRAMES)),
        thread::spawn(move || receive(first.receiver, FRAMES)),
        thread::spawn(move || receive(second.receiver, FRAMES)),
    ])?;
    Ok(start.elapsed())
}

fn send(mut sender: Box<dyn thinwire_link::FrameSender>, size: usize, frames: usize) -> Outcome<()> {
    let payload = vec![1; size];
    for _ in 0..frames {
        sender.send(&header(size), &payload)?;
    }
    Ok(())
}

fn receive(mut receiver: Box<dyn thinwire_link::FrameReceiver>, frames: usize) -> Outcome<()> {
    let mut payload = Vec::new();
    for _ in 0..frames {
        receiver.receive(&waiting(), &mut payload)?;
    }
    Ok(())
}

fn join<const N: usize>(threads: [thread::JoinHandle<Outcome<()>>; N]) -> Outcome<()> {
    threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
}

fn overhead() -> Outcome<()> {
    println!("| payload, bytes | on the wire, bytes | more, bytes | share of the wire |\n|---|---|---|---|");
    for size in [0, 1_000, 10_000, 100_000, 1_000_000, 10_000_000] {
        let (mut first, second) = tls_link(None)?;
        let handshake = first.counters.sent.traffic().wire_bytes;
        let receiver = thread::spawn(move || receive(second.receiver, 1));
        first.sender.send(&header(size), &vec![1; size])?;
        let wire = first.counters.sent.traffic().wire_bytes - handshake;
        let extra = wire - size as u64;
        println!("| {size} | {wire} | {extra} | {:.3} % |", extra as f64 / wire as f64 * 100.0);
        join([receiver])?;
    }
    let (first, _second) = tls_link(None)?;
    let (sent, received) = (first.counters.sent.traffic(), first.counters.received.traffic());
    println!("\nHandshake and hello: {} bytes out, {} in, once.\n", sent.wire_bytes, received.wire_bytes);
    Ok(())
}

fn latency() -> Outcome<()> {
    const TURNS: usize = 5000;
    let (mut first, mut second) = tls_link(None)?;
    let echo = thread::spawn(move || -> Outcome<()> {
        let mut payload = Vec::new();
        for _ in 0..TURNS {
            let header = second.receiver.receive(&waiting(), &mut payload)?;
            second.sender.send(&header, &payload)?;
        }
        Ok(())
    });
    let mut times = Vec::new();
    let mut payload = Vec::new();
    for _ in 0..TURNS {
        let start = Instant::now();
        first.sender.send(&header(1000), &[1; 1000])?;
        first.receiver.receive(&waiting(), &mut payload)?;
        times.push(start.elapsed());
    }
    join([echo])?;
    times.sort_unstable();
    println!(
        "A frame of 1,000 bytes there and back: {:.0} µs median, {:.0} µs at the 99th percentile.\n",
        times[TURNS / 2].as_secs_f64() * 1e6,
        times[TURNS * 99 / 100].as_secs_f64() * 1e6
    );
    Ok(())
}

fn throttle() -> Outcome<()> {
    println!("| rate set | bytes on the wire | seconds | rate measured | off by |\n|---|---|---|---|---|");
    for megabits in [1, 10, 100, 1000] {
        let rate = Rate::bits(megabits * 1_000_000).expect("not zero");
        let (mut first, second) = tls_link(Some(rate))?;
        // Two seconds' worth, in frames of a tenth of a second.
        let (size, frames) = ((megabits * 1_000_000 / 8 / 10) as usize, 20);
        let receiver = thread::spawn(move || receive(second.receiver, frames));
        let before = first.counters.sent.traffic().wire_bytes;
        let start = Instant::now();
        let payload = vec![1; size];
        for _ in 0..frames {
            first.sender.send(&header(size), &payload)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        join([receiver])?;
        let bytes = first.counters.sent.traffic().wire_bytes - before;
        let measured = bytes as f64 * 8.0 / seconds;
        let error = measured / rate.bits_per_second() as f64 - 1.0;
        println!(
            "| {rate} | {bytes} | {seconds:.3} | {:.2} Mbit/s | {:+.2} % |",
            measured / 1e6,
            error * 100.0
        );
    }
    Ok(())
}

fn config(stage: u32, rate: Option<Rate>) -> LinkConfig {
    let hello = Hello { run: RunId([1; 16]), stage, peer_stage: 1 - stage, stages: 2, terms: Terms::new() };
    LinkConfig { hello, deadlines: Deadlines::default(), rate }
}

/// Two ends on the loopback; the first sends at `rate`.
fn tls_link(rate: Option<Rate>) -> Outcome<(Link, Link)> {
    Ok(tcp::pair(&config(0, rate), &config(1, None))?)
}

fn memory_link() -> Outcome<(Link, Link)> {
    Ok(memory::pair(&config(0, None), &config(1, None))?)
}

fn header(payload: usize) -> FrameHeader {
    FrameHeader::without_tensor(RunId([1; 16]), FrameKind::Forward, 0, 0, payload as u64)
}

fn waiting() -> WaitingFor {
    WaitingFor::new(FrameKind::Forward, 0, 0, 64 * MIB as u64)
}
