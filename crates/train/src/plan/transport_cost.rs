//! What TLS and the system's network code take of a core, measured on a link to this machine itself.

use std::thread;

use thinwire_link::{
    Deadlines, FrameHeader, FrameKind, FrameSender, Hello, Link, LinkConfig, LinkError, RunId, Terms,
    WaitingFor, tcp,
};

use super::stopwatch::on_core;

/// Bytes of a frame, and frames: enough for the system's clock of a thread, which ticks every few milliseconds.
const PAYLOAD: usize = 256 << 10;
const FRAMES: u32 = 256;

/// Seconds on a core for each byte of a link; 0 where the system does not tell as Linux does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TransportCost {
    /// Of the thread that sends it.
    pub(super) send: f64,
    /// Of the one that receives it.
    pub(super) receive: f64,
}

/// Sends some megabytes over TCP and TLS.
///
/// # Errors
/// This machine has no loopback interface, or no port is free.
pub(super) fn transport_cost() -> Result<TransportCost, LinkError> {
    let run = RunId::random();
    let config = |stage| LinkConfig {
        hello: Hello { run, stage, peer_stage: 1 - stage, stages: 2, terms: Terms::new() },
        deadlines: Deadlines::default(),
        rate: None,
    };
    let (mut first, second) = tcp::pair(&config(0), &config(1))?;
    thread::scope(|scope| {
        // An end that fails is closed, so that the other one need not wait for its deadline.
        let receiver = scope.spawn(move || receive(second));
        let sent = send(&mut *first.sender, run);
        let receive = receiver.join().expect("what comes is dropped")?;
        Ok(TransportCost { send: sent?, receive })
    })
}

/// Seconds a byte.
fn send(sender: &mut dyn FrameSender, run: RunId) -> Result<f64, LinkError> {
    let payload = vec![0x5a; PAYLOAD];
    let before = on_core();
    for frame in 0..FRAMES {
        let header = FrameHeader::without_tensor(run, FrameKind::Control, 0, frame, PAYLOAD as u64);
        sender.send(&header, &payload)?;
    }
    Ok(a_byte(before))
}

/// Seconds a byte.
fn receive(mut link: Link) -> Result<f64, LinkError> {
    let mut payload = Vec::new();
    let before = on_core();
    for frame in 0..FRAMES {
        link.receiver
            .receive(&WaitingFor::new(FrameKind::Control, 0, frame, PAYLOAD as u64), &mut payload)?;
    }
    Ok(a_byte(before))
}

fn a_byte(before: u64) -> f64 {
    1e-9 * on_core().saturating_sub(before) as f64 / (f64::from(FRAMES) * PAYLOAD as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_work_for_a_byte() {
        let TransportCost { send, receive } = transport_cost().unwrap();
        // A gigabyte takes more than 10 ms and less than a minute of either.
        for seconds in [send, receive] {
            assert!(!cfg!(target_os = "linux") || seconds > 1e-11, "{seconds}");
            assert!(seconds < 6e-8, "{seconds}");
        }
    }
}
