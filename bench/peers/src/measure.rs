//! Interleaved rounds and medians: what disturbs the machine disturbs every library alike.

use std::fmt::Write;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

const ROUNDS: usize = 41;
const ROUND: Duration = Duration::from_millis(8);

/// Makes one call of the operation that is measured; the number tells which call it is.
pub type Operation = Box<dyn FnMut(u64)>;

/// Does so many calls, and says how long they took.
pub type Timed = Box<dyn FnMut(u64) -> Duration>;

pub enum Runner {
    One(Operation),
    /// The calls are made on each of two threads.
    Two(Timed),
    /// Knows itself what of its time counts.
    Timed(Timed),
}

/// One operation on every library, Sessile first.
pub struct Row {
    pub name: &'static str,
    pub runners: Vec<Runner>,
}

impl Row {
    /// The row of the table: Sessile's time, and how many times longer the others take.
    pub fn measure(mut self) -> String {
        let calls: Vec<u64> = self.runners.iter_mut().map(Runner::calls_in_a_round).collect();
        let mut times = vec![Vec::with_capacity(ROUNDS); self.runners.len()];
        for _ in 0..ROUNDS {
            for ((runner, times), calls) in self.runners.iter_mut().zip(&mut times).zip(&calls) {
                times.push(runner.nanoseconds_per_call(*calls));
            }
        }
        let medians: Vec<f64> = times.into_iter().map(median).collect();
        let mut line = format!("| {} | {} |", self.name, time(medians[0]));
        for peer in &medians[1..] {
            let ratio = peer / medians[0];
            let digits = if ratio < 10.0 { 1 } else { 0 };
            write!(line, " {} = {ratio:.digits$}× |", time(*peer)).expect("a String takes all");
        }
        line
    }
}

impl Runner {
    fn run(&mut self, calls: u64) -> Duration {
        match self {
            Self::One(operation) => {
                let start = Instant::now();
                for call in 0..calls {
                    operation(black_box(call));
                }
                start.elapsed()
            }
            Self::Two(run) | Self::Timed(run) => run(calls),
        }
    }

    fn nanoseconds_per_call(&mut self, calls: u64) -> f64 {
        let threads = if matches!(self, Self::Two(_)) { 2.0 } else { 1.0 };
        self.run(calls).as_nanos() as f64 / (calls as f64 * threads)
    }

    fn calls_in_a_round(&mut self) -> u64 {
        let mut calls = 1;
        while self.run(calls) < ROUND / 4 {
            calls *= 2;
        }
        calls * 4
    }
}

/// Runs `call(state, thread, number)` on two threads at once, each round on a new state: where
/// keys land in a hash table is a matter of luck, and the median should not be.
pub fn on_two_threads<S: Sync + 'static>(
    new: impl Fn() -> S + 'static,
    call: impl Fn(&S, usize, u64) + Sync + 'static,
) -> Runner {
    Runner::Two(Box::new(move |calls| {
        let state = new();
        let start = Instant::now();
        thread::scope(|scope| {
            for number in 0..2 {
                let (call, state) = (&call, &state);
                scope.spawn(move || (0..calls).for_each(|step| call(state, number, black_box(step))));
            }
        });
        start.elapsed()
    }))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        n if n < 1_000.0 => format!("{n:.0} ns"),
        n if n < 100_000.0 => format!("{:.1} µs", n / 1_000.0),
        n => format!("{:.0} µs", n / 1_000.0),
    }
}
