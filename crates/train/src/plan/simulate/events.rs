//! The events of a run, in the order of time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::host::Busy;
use super::program::{Message, Piece, Side, program};
use super::{COUNTED, DirectionLoad, DirectionTiming, STEPS, Simulated, Timing};

/// One direction of a link: 2k carries the activations of link k, 2k + 1 its gradients.
type Direction = usize;

/// Work that a machine does.
#[derive(Clone, Copy, Debug)]
enum Work {
    Compute { stage: usize },
    Encode(Direction),
    Decode(Direction),
}

/// Who begins it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Was {
    /// A thread that has just ended something else.
    Awake,
    /// A thread that has waited, and needs a core first.
    Asleep,
}

/// Work that a thread is to do.
#[derive(Clone, Copy, Debug)]
struct Task {
    host: usize,
    work: Work,
    threads: usize,
    seconds: f64,
}

/// What happens at a time known beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timed {
    Sent(Direction),
    Arrived(Direction),
    /// The thread of this one of the tasks that wait for a core has one.
    Woken(usize),
}

/// A time, compared as the numbers are; the number of the event tells those at one time apart.
#[derive(Clone, Copy, Debug, PartialEq)]
struct At(f64, u64, Timed);

/// A stage's computing thread.
#[derive(Debug)]
struct Thread {
    program: Vec<Piece>,
    next: usize,
    step: usize,
    working: bool,
    /// When each step ended.
    ends: Vec<f64>,
    /// Seconds of the counted step.
    busy: f64,
}

/// A direction with its threads; messages go with the step they belong to.
#[derive(Debug)]
struct Lane {
    timing: DirectionTiming,
    outbox: VecDeque<(Message, usize)>,
    sending: bool,
    /// Whether the thread that sends has to wait for the link.
    held: bool,
    /// The link's time is paid for up to here.
    paid_until: f64,
    arriving: VecDeque<(Message, usize)>,
    arrived: VecDeque<(Message, usize)>,
    decoding: bool,
    inbox: VecDeque<Message>,
    load: DirectionLoad,
}

/// The state of the simulation.
#[derive(Debug)]
pub(super) struct Events<'a> {
    timing: &'a Timing,
    now: f64,
    hosts: Vec<Busy<Work>>,
    threads: Vec<Thread>,
    lanes: Vec<Lane>,
    timed: BinaryHeap<Reverse<At>>,
    /// Tasks that have waited for a core, or still do.
    woken: Vec<Task>,
    count: u64,
}

impl Eq for At {}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for At {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl Lane {
    fn new(timing: DirectionTiming) -> Self {
        Self {
            timing,
            outbox: VecDeque::new(),
            sending: false,
            held: false,
            paid_until: 0.0,
            arriving: VecDeque::new(),
            arrived: VecDeque::new(),
            decoding: false,
            inbox: VecDeque::new(),
            load: DirectionLoad::default(),
        }
    }

    /// When a message that is ready now has left: the throttle's token bucket.
    fn pay(&mut self, now: f64, seconds: f64) -> f64 {
        self.paid_until = self.paid_until.max(now - self.timing.burst) + seconds;
        self.paid_until.max(now)
    }
}

impl<'a> Events<'a> {
    pub(super) fn new(timing: &'a Timing) -> Self {
        let thread = |stage| Thread {
            program: program(timing, stage),
            next: 0,
            step: 0,
            working: false,
            ends: Vec::new(),
            busy: 0.0,
        };
        Self {
            timing,
            now: 0.0,
            hosts: timing.hosts.iter().map(|host| Busy::new(*host)).collect(),
            threads: (0..timing.stages.len()).map(thread).collect(),
            lanes: timing.links.iter().flatten().map(|direction| Lane::new(*direction)).collect(),
            timed: BinaryHeap::new(),
            woken: Vec::new(),
            count: 0,
        }
    }

    pub(super) fn run(mut self) -> Simulated {
        for stage in 0..self.threads.len() {
            self.go_on(stage, Was::Awake);
        }
        while self.threads[0].ends.len() < STEPS {
            self.advance();
        }
        let Self { threads, lanes, .. } = self;
        let ends = &threads[0].ends;
        Simulated {
            step: ends[STEPS - 1] - ends[STEPS - 2],
            stages: threads.iter().map(|thread| thread.busy).collect(),
            links: lanes.chunks(2).map(|pair| [pair[0].load, pair[1].load]).collect(),
        }
    }

    /// Turns to the next event.
    fn advance(&mut self) {
        let ends = self.hosts.iter().enumerate().filter_map(|(at, host)| Some((at, host.next_end()?)));
        let work = ends.min_by(|a, b| a.1.total_cmp(&b.1));
        let timed = self.timed.peek().map(|Reverse(at)| at.0);
        match (work, timed) {
            (Some((host, end)), timed) if timed.is_none_or(|timed| end < timed) => {
                self.now = end;
                let (work, begin) = self.hosts[host].finish(end).expect("it has a next end");
                self.done(work, end - begin);
            }
            (_, Some(_)) => {
                let Reverse(At(time, _, event)) = self.timed.pop().expect("it was there");
                self.now = time;
                match event {
                    Timed::Sent(lane) => self.sent(lane),
                    Timed::Arrived(lane) => self.arrive(lane),
                    Timed::Woken(task) => self.start(self.woken[task]),
                }
            }
            (_, None) => unreachable!("somebody has work until the last step ends"),
        }
    }

    /// Lets a computing thread begin its next piece, if it can.
    fn go_on(&mut self, stage: usize, was: Was) {
        let thread = &self.threads[stage];
        if thread.working || thread.step == STEPS {
            return;
        }
        let piece = thread.program[thread.next];
        if let Some(side) = piece.wait
            && self.lanes[incoming(stage, side)].inbox.pop_front().is_none()
        {
            return;
        }
        self.threads[stage].working = true;
        let own = &self.timing.stages[stage];
        let (host, threads) = (own.host, own.threads);
        self.begin(was, Task { host, work: Work::Compute { stage }, threads, seconds: piece.seconds });
    }

    /// A thread that was asleep on a machine that is full is let in after others.
    fn begin(&mut self, was: Was, task: Task) {
        match self.hosts[task.host].wake(self.now) {
            Some(wake) if was == Was::Asleep => {
                self.at(self.now + wake, Timed::Woken(self.woken.len()));
                self.woken.push(task);
            }
            _ => self.start(task),
        }
    }

    fn start(&mut self, Task { host, work, threads, seconds }: Task) {
        self.hosts[host].begin(self.now, work, threads, seconds);
    }

    fn done(&mut self, work: Work, seconds: f64) {
        match work {
            Work::Compute { stage } => self.computed(stage, seconds),
            Work::Encode(lane) => self.encoded(lane, seconds),
            Work::Decode(lane) => self.decoded(lane, seconds),
        }
    }

    fn computed(&mut self, stage: usize, seconds: f64) {
        let thread = &mut self.threads[stage];
        let (piece, step) = (thread.program[thread.next], thread.step);
        if step == COUNTED {
            thread.busy += seconds;
        }
        thread.working = false;
        thread.next += 1;
        if thread.next == thread.program.len() {
            (thread.next, thread.step) = (0, step + 1);
            thread.ends.push(self.now);
        }
        if let Some((side, message)) = piece.send {
            let lane = outgoing(stage, side);
            let queue = &mut self.lanes[lane];
            queue.outbox.push_back((message, step));
            queue.load.outgoing = queue.load.outgoing.max(tensors(queue.outbox.iter().map(|sent| sent.0)));
            self.encode_next(lane, Was::Asleep);
        }
        self.go_on(stage, Was::Awake);
    }

    /// A message stays in the outbox until it has left.
    fn encode_next(&mut self, lane: Direction, was: Was) {
        let queue = &mut self.lanes[lane];
        let Some(&(message, _)) = queue.outbox.front().filter(|_| !queue.sending) else { return };
        queue.sending = true;
        let seconds = if message == Message::Tensor { queue.timing.encode } else { 0.0 };
        let (threads, host) = (queue.timing.codec_threads, self.timing.stages[sender(lane)].host);
        self.begin(was, Task { host, work: Work::Encode(lane), threads, seconds });
    }

    fn encoded(&mut self, lane: Direction, seconds: f64) {
        let queue = &mut self.lanes[lane];
        let (message, step) = queue.outbox[0];
        let transfer = if message == Message::Tensor { queue.timing.send } else { queue.timing.control };
        if step == COUNTED {
            queue.load.encode += seconds;
            queue.load.send += transfer;
        }
        let left = queue.pay(self.now, transfer);
        queue.held = left > self.now;
        self.at(left, Timed::Sent(lane));
    }

    fn sent(&mut self, lane: Direction) {
        let queue = &mut self.lanes[lane];
        let message = queue.outbox.pop_front().expect("it was being sent");
        queue.sending = false;
        queue.arriving.push_back(message);
        let latency = queue.timing.latency;
        let was = if queue.held { Was::Asleep } else { Was::Awake };
        self.at(self.now + latency, Timed::Arrived(lane));
        self.encode_next(lane, was);
    }

    fn arrive(&mut self, lane: Direction) {
        let queue = &mut self.lanes[lane];
        let message = queue.arriving.pop_front().expect("it was on its way");
        queue.arrived.push_back(message);
        self.decode_next(lane, Was::Asleep);
    }

    fn decode_next(&mut self, lane: Direction, was: Was) {
        let queue = &mut self.lanes[lane];
        let Some(&(message, _)) = queue.arrived.front().filter(|_| !queue.decoding) else { return };
        queue.decoding = true;
        let seconds = if message == Message::Tensor { queue.timing.decode } else { 0.0 };
        let (threads, host) = (queue.timing.codec_threads, self.timing.stages[receiver(lane)].host);
        self.begin(was, Task { host, work: Work::Decode(lane), threads, seconds });
    }

    fn decoded(&mut self, lane: Direction, seconds: f64) {
        let queue = &mut self.lanes[lane];
        let (message, step) = queue.arrived.pop_front().expect("it was being decoded");
        queue.decoding = false;
        if step == COUNTED {
            queue.load.decode += seconds;
        }
        queue.inbox.push_back(message);
        queue.load.incoming = queue.load.incoming.max(tensors(queue.inbox.iter().copied()));
        self.decode_next(lane, Was::Awake);
        self.go_on(receiver(lane), Was::Asleep);
    }

    fn at(&mut self, time: f64, event: Timed) {
        self.timed.push(Reverse(At(time, self.count, event)));
        self.count += 1;
    }
}

fn tensors(messages: impl Iterator<Item = Message>) -> usize {
    messages.filter(|message| *message == Message::Tensor).count()
}

fn outgoing(stage: usize, side: Side) -> Direction {
    if side == Side::Next { 2 * stage } else { 2 * (stage - 1) + 1 }
}

fn incoming(stage: usize, side: Side) -> Direction {
    if side == Side::Next { 2 * stage + 1 } else { 2 * (stage - 1) }
}

fn sender(lane: Direction) -> usize {
    lane / 2 + lane % 2
}

fn receiver(lane: Direction) -> usize {
    lane / 2 + (lane + 1) % 2
}
