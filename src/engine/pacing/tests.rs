//! The queues on a simulated clock: what every arrival experiences is then exact.

use super::*;
use crate::engine::job::Tables;
use crate::engine::job::tests::{TABLES, a_plan};
use crate::plan::{self, Spread, Step, StopAt};
use crate::workload::random::Stream;

const S: Ns = 1_000_000_000;
const MS: Ns = 1_000_000;

/// An arrival as it was served.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Served {
    client: usize,
    arrival: DueOp,
    issued: Ns,
    completed: Ns,
}

struct Simulation {
    queues: Queues,
    clients: usize,
    served: Vec<Served>,
}

fn job(clients: u32, tables: u32, spread: Spread, rate: f64, arrival: plan::Arrival) -> Job {
    let mut plan = a_plan(0, clients, StopAt::Time(Duration::from_secs(1)));
    plan.arrival = arrival;
    let step = Step { number: 1, place: 1, of: 1, clients, rate: Some(rate), repeat: 1 };
    Job::new(&plan, spread, Tables { count: tables, ..TABLES }, &step)
}

fn simulation(job: &Job, clients: u32, window: Window, warmup: Ns) -> Simulation {
    let all: Vec<u32> = (0..clients).collect();
    let queues = Queues::new(job, &all, 1, window, warmup);
    Simulation { queues, clients: clients as usize, served: Vec::new() }
}

impl Simulation {
    /// Serves until all clients have ended, or until an instant; `done` says when an op that is
    /// issued at an instant completes, `tick` is called at every event.
    fn run(
        &mut self,
        until: Ns,
        mut done: impl FnMut(Ns) -> Ns,
        mut tick: impl FnMut(Ns, &mut Queues),
    ) -> Ns {
        let mut busy: Vec<Ns> = vec![0; self.clients];
        let mut over = vec![false; self.clients];
        let mut now = 0;
        while now < until {
            tick(now, &mut self.queues);
            self.queues.wake_due(now);
            // Again and again, because one that takes an arrival may wake another one.
            let mut again = true;
            while std::mem::take(&mut again) {
                for client in 0..self.clients {
                    if over[client] || busy[client] > now || self.queues.places[client].1 {
                        continue;
                    }
                    match self.queues.take(client, now, Waker::noop()) {
                        Poll::Pending => {}
                        Poll::Ready(None) => over[client] = true,
                        Poll::Ready(Some(arrival)) => {
                            let completed = done(now);
                            busy[client] = completed.max(now + 1);
                            self.served.push(Served { client, arrival, issued: now, completed });
                        }
                    }
                    again = true;
                }
            }
            let returning = busy.iter().zip(&over).filter(|(at, over)| !**over && **at > now);
            let returning = returning.map(|(at, _)| *at).min();
            let due = self.queues.due.first().map(|(due, _)| *due);
            match returning.into_iter().chain(due).min() {
                // Time passes for ticks.
                Some(next) => now = next.max(now + 1).min(now + 20 * MS),
                None if over.iter().all(|over| *over) => break,
                None => now += 20 * MS,
            }
        }
        now
    }

    fn responses(&self) -> Vec<Ns> {
        let mut all: Vec<Ns> =
            self.served.iter().map(|s| s.completed - s.arrival.intended).collect();
        all.sort_unstable();
        all
    }

    fn mean_wait_s(&self) -> f64 {
        let waits = self.served.iter().map(|s| (s.issued - s.arrival.intended) as f64 / 1e9);
        waits.sum::<f64>() / self.served.len() as f64
    }
}

fn open(end: Ns) -> Window {
    Window { start: 0, end, early: false }
}

#[test]
fn arrivals_are_served_in_their_order_none_is_skipped_and_the_longest_idle_takes_the_next() {
    let job = job(4, 1, Spread::Random, 1000.0, plan::Arrival::Uniform);
    let mut simulation = simulation(&job, 4, open(S), 0);
    simulation.run(2 * S, |now| now + 100_000, |_, _| {});
    let intended: Vec<Ns> = simulation.served.iter().map(|s| s.arrival.intended).collect();
    assert_eq!(intended, (0..1000).map(|n| n * MS).collect::<Vec<_>>());
    assert!(simulation.served.iter().all(|s| s.issued == s.arrival.intended));
    let clients: Vec<usize> = simulation.served.iter().take(8).map(|s| s.client).collect();
    assert_eq!(clients, [0, 1, 2, 3, 0, 1, 2, 3]);
    let counts = simulation.queues.counts;
    assert_eq!(counts, PacingCounts { intended: 1000, ..PacingCounts::default() });
}

#[test]
fn a_stall_is_in_the_response_time_of_all_that_it_kept_waiting() {
    // 10 s at 1000/s on 8 clients, a call takes 100 us, and from 3 s to 4 s nothing is answered.
    let job = job(8, 1, Spread::Random, 1000.0, plan::Arrival::Uniform);
    let mut simulation = simulation(&job, 8, open(10 * S), 0);
    let done = |now: Ns| {
        let free = now + 100_000;
        if (3 * S..4 * S).contains(&free) { 4 * S + 100_000 } else { free }
    };
    simulation.run(20 * S, done, |_, _| {});
    let responses = simulation.responses();
    assert_eq!(responses.len(), 10_000);
    // 1000 arrivals, 1 ms apart, wait for the rest of the second and for the catching up: 8 a
    // call's time, while others arrive.
    let at = |p: f64| responses[(responses.len() as f64 * p / 100.0).ceil() as usize - 1] as f64;
    for (p, arrival) in [(90.5, 950.0), (95.0, 500.0), (99.0, 100.0), (99.9, 10.0)] {
        let expected = 1e9 - arrival * 1e6 + arrival / 8.0 * 1e5;
        let error = at(p) / expected - 1.0;
        assert!(error.abs() < 0.01, "p{p}: {} instead of {expected}", at(p));
    }
    // The service time has it once a client.
    let slow = simulation.served.iter().filter(|s| s.completed - s.issued > 500 * MS).count();
    assert_eq!(slow, 8);
}

/// Erlang's C formula: the mean wait with `c` servers, seconds.
fn erlang_wait(c: u32, rate: f64, service: f64) -> f64 {
    let load = rate * service;
    // Erlang's B, recursively.
    let blocked = (1..=c).fold(1.0, |b, n| load * b / (f64::from(n) + load * b));
    let full = load / f64::from(c);
    let waits = blocked / (1.0 - full * (1.0 - blocked));
    waits * service / (f64::from(c) - load)
}

#[test]
fn eight_clients_wait_as_a_queue_with_eight_servers_does() {
    assert!((erlang_wait(1, 0.5, 1.0) - 1.0).abs() < 1e-12, "M/M/1 at half load waits 1");
    let (rate, service) = (6000.0, 0.001);
    let job = job(8, 1, Spread::Random, rate, plan::Arrival::Poisson);
    let mut simulation = simulation(&job, 8, open(400 * S), 0);
    let mut stream = Stream::new(4711);
    let draw = |now: Ns| now + (-libm::log1p(-stream.unit()) * service * 1e9) as Ns;
    simulation.run(Ns::MAX, draw, |_, _| {});
    let (wait, theory) = (simulation.mean_wait_s(), erlang_wait(8, rate, service));
    assert!((wait / theory - 1.0).abs() < 0.05, "{wait} instead of {theory}");
}

#[test]
fn pinned_clients_have_a_queue_a_table_and_share_the_rate() {
    let job = job(8, 4, Spread::Pinned, 800.0, plan::Arrival::Uniform);
    let mut simulation = simulation(&job, 8, open(S), 0);
    assert_eq!(simulation.queues.all.len(), 4);
    simulation.run(2 * S, |now| now + 100_000, |_, _| {});
    let intended: Vec<Ns> = simulation.served.iter().map(|s| s.arrival.intended).collect();
    // The queues interleave evenly.
    assert_eq!(intended, (0..800).map(|n| n * 1_250_000).collect::<Vec<_>>());
    for served in &simulation.served {
        let table = served.arrival.intended / 1_250_000 % 4;
        assert_eq!(served.client as u64 % 4, table);
    }
}

#[test]
fn what_waits_at_the_end_is_counted_and_served_unless_the_step_is_cut_short() {
    // One client that can do 100/s is asked for 1000/s.
    let job = job(1, 1, Spread::Random, 1000.0, plan::Arrival::Uniform);
    let mut simulation = simulation(&job, 1, open(S), 0);
    let slow = |now| now + 10 * MS;
    let ended = simulation.run(100 * S, slow, |_, _| {});
    let counts = simulation.queues.counts;
    assert_eq!((counts.intended, counts.backlog, counts.unissued), (1000, 900, 0));
    assert_eq!((simulation.served.len(), ended), (1000, 10 * S));

    let mut cut = super::tests::simulation(&job, 1, open(S), 0);
    let early = Window { start: 0, end: 500 * MS, early: true };
    cut.run(100 * S, slow, |_, queues| {
        queues.set_window(early);
    });
    assert_eq!(cut.served.len(), 50, "nothing is issued after an early end");
}

/// A warm-up of a second after which `serve` decides; the instant that the window began at.
fn warmed_up(rate: f64, serve: impl FnMut(Ns) -> Ns) -> (Simulation, Ns) {
    let job = job(1, 1, Spread::Random, rate, plan::Arrival::Uniform);
    let unknown = Window { start: NEVER, end: NEVER, early: false };
    let mut simulation = simulation(&job, 1, unknown, S);
    let mut start = NEVER;
    simulation.run(10 * S, serve, |now, queues| {
        if start == NEVER && now >= S - 400 * MS && (queues.is_warm(now) || now >= 2 * S) {
            start = (now + 400 * MS).max(S);
            queues.set_window(Window { start, end: start + S, early: false });
        }
    });
    (simulation, start)
}

#[test]
fn a_warm_up_without_backlog_passes_into_the_window() {
    let (simulation, start) = warmed_up(1000.0, |now| now + 500_000);
    assert_eq!(start, S);
    assert!(simulation.served.windows(2).all(|w| w[1].issued - w[0].issued == MS));
    let measured = simulation.served.iter().filter(|s| s.arrival.measured).count();
    assert_eq!((simulation.served.len(), measured), (2000, 1000));
}

#[test]
fn what_still_waits_when_the_window_begins_is_counted_with_its_age() {
    // Nothing is answered in the last 100 ms of the warm-up, when its end is decided.
    let stalled = (S - 100 * MS)..(S + MS);
    let serve = |now: Ns| {
        let free = now + 500_000;
        if stalled.contains(&free) { stalled.end } else { free }
    };
    let (simulation, start) = warmed_up(1000.0, serve);
    assert_eq!(start, S, "arrivals go on");
    let counts = simulation.queues.counts;
    assert!((98..=100).contains(&counts.warmup_left), "{counts:?}");
    assert!((98 * MS..=100 * MS).contains(&counts.warmup_late), "{counts:?}");
    let first = simulation.served.iter().find(|s| s.arrival.measured).expect("a window");
    assert!(first.issued > first.arrival.intended + 40 * MS, "it waited behind them");
}

#[test]
fn the_backlog_of_a_warm_up_is_served_before_the_window_begins() {
    // Cold for half a second: then there are 500 to catch up with, at twice the rate.
    let (simulation, start) = warmed_up(1000.0, |now| (now + 500_000).max(500 * MS));
    let warmup: Vec<&Served> = simulation.served.iter().filter(|s| !s.arrival.measured).collect();
    assert_eq!(warmup.len(), 1000, "all of its arrivals, and none after its planned end");
    assert!(warmup.iter().all(|s| s.completed <= start));
    assert!((1300 * MS..1500 * MS).contains(&start), "{start}");
    assert_eq!(simulation.queues.counts.warmup_left, 0);
    let first = simulation.served.iter().find(|s| s.arrival.measured).expect("a window");
    assert_eq!((first.arrival.intended, first.issued), (start, start));
}

#[test]
fn a_warm_up_that_cannot_be_drained_leaves_its_backlog_to_the_window() {
    let (simulation, start) = warmed_up(1000.0, |now| now + 5 * MS);
    assert_eq!(start, 2 * S + 400 * MS);
    // 200/s: 480 were issued by then.
    let left = simulation.queues.counts.warmup_left;
    assert!((515..=520).contains(&left), "{left}");
    assert_eq!(simulation.queues.counts.intended, 1000);
}

#[test]
fn ops_are_split_over_the_queues() {
    let mut plan = a_plan(0, 6, StopAt::Ops(1001));
    plan.arrival = plan::Arrival::Poisson;
    let step = Step { number: 1, place: 1, of: 1, clients: 6, rate: Some(1000.0), repeat: 1 };
    let tables = Tables { count: 3, ..TABLES };
    let job = Job::new(&plan, Spread::Pinned, tables, &step);
    let mut simulation = simulation(&job, 6, open(NEVER), 0);
    let ended = simulation.run(100 * S, |now| now + MS, |_, _| {});
    assert_eq!(simulation.served.len(), 1001);
    assert!(ended < 2 * S, "every client ends: {ended}");
}

#[test]
fn one_turn_that_a_clock_made_short_makes_no_work_of_the_idle_ones() {
    let mut spin = Spin::new();
    let mut now = 5 * MS;
    let mut turn = |length: Ns| {
        now += length;
        spin.idle(now)
    };
    assert_eq!(turn(1_000), 0, "the first one after a park has no start");
    assert_eq!([turn(1_000), turn(1_100)], [0, 1_100], "two tell how long an idle one takes");
    assert_eq!(turn(20_000), 0, "work");
    assert_eq!(turn(3), 3);
    assert_eq!([turn(1_000), turn(20_000), turn(3_000)], [1_000, 0, 3_000]);
}
