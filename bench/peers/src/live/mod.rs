//! What a live session costs: the same frames, callbacks and declarations for both libraries.

mod peer;
mod script;
mod sessile;

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

use crate::measure::{Row, Runner};
use script::{Probe, Script, script};

const VARIABLES: u64 = 20;
const WATCHES: u64 = 50;
const PHASES: u64 = 10;

/// So many frames come at once: a second of sound.
const BURST: u64 = 50;

/// A row by name; its sessions begin when it is measured, so that none waits for long.
type Named = (&'static str, fn() -> Row);

pub const ROWS: [Named; 5] = [
    (LATENCY, || row(LATENCY, latency::<Sessile>(&one_thread()), latency::<Peer>(&one_thread()))),
    (LATENCY_TWO, || row(LATENCY_TWO, latency::<Sessile>(&two_threads()), latency::<Peer>(&two_threads()))),
    (HEARD, || row(HEARD, heard::<Sessile>(), heard::<Peer>())),
    (SPOKEN, || row(SPOKEN, spoken::<Sessile>(), spoken::<Peer>())),
    (TURN_END, || row(TURN_END, turn_end::<Sessile>(), turn_end::<Peer>())),
];

const LATENCY: &str = "frame received to callback called";
const LATENCY_TWO: &str = "the same, runtime of two threads";
const HEARD: &str = "20 ms of the model's voice, 960 bytes";
const SPOKEN: &str = "20 ms of the user's voice, 640 bytes";
const TURN_END: &str = "turn end: 50 watches, 20 computed variables, 10 phases";

type Sessile = sessile_live::LiveHandle;
type Peer = gemini_adk_40::live::LiveHandle;

fn row(name: &'static str, sessile: Runner, peer: Runner) -> Row {
    Row { name, runners: vec![sessile, peer] }
}

/// What a session is for.
#[derive(Clone, Copy)]
enum Kind {
    /// A callback hears of the model's text.
    Text,
    /// A callback hears the model's voice.
    Voice,
    /// Everything follows from the inputs, and a callback hears of the end of a turn. Each watch
    /// acts in every turn, and every turn goes to the next phase, whose instruction the model is
    /// sent.
    Reactive,
}

trait Contestant: Sized + 'static {
    async fn begin(kind: Kind, script: Script, probe: Arc<Probe>) -> Self;
    fn set(&self, key: &str, value: u64);
    async fn speak(&self, samples: &Bytes);
}

/// Whether the turn with this number belongs to the phase.
fn is_in(turn: Option<u64>, phase: u64) -> bool {
    turn.is_some_and(|turn| turn % PHASES == phase)
}

struct Running<C> {
    session: C,
    frames: mpsc::UnboundedSender<Vec<u8>>,
    probe: Arc<Probe>,
    runtime: Rc<Runtime>,
}

impl<C: Contestant> Running<C> {
    fn begin(kind: Kind, runtime: &Rc<Runtime>) -> Self {
        let (script, frames, probe) = script();
        let session = runtime.block_on(C::begin(kind, script, probe.clone()));
        Self { session, frames, probe, runtime: runtime.clone() }
    }

    fn send(&self, frame: Vec<u8>) {
        self.frames.send(frame).expect("the session is there");
    }
}

/// One frame at a time, from the moment it is handed to the library to the moment its callback is
/// called.
fn latency<C: Contestant>(runtime: &Rc<Runtime>) -> Runner {
    let frame = br#"{"serverContent":{"modelTurn":{"role":"model","parts":[{"text":"Hello"}]}}}"#;
    let running = Running::<C>::begin(Kind::Text, runtime);
    Runner::Timed(Box::new(move |calls| {
        running.runtime.block_on(async {
            for _ in 0..calls {
                let next = running.probe.calls().now() + 1;
                running.send(frame.to_vec());
                running.probe.calls().reach(next).await;
            }
        });
        running.probe.take_latency()
    }))
}

/// Frames of sound, until the last callback was called.
fn heard<C: Contestant>() -> Runner {
    let data = "AAEC".repeat(320); // 960 bytes in base64
    let part = format!(r#"{{"inlineData":{{"mimeType":"audio/pcm;rate=24000","data":"{data}"}}}}"#);
    let frame =
        format!(r#"{{"serverContent":{{"modelTurn":{{"role":"model","parts":[{part}]}}}}}}"#).into_bytes();
    let running = Running::<C>::begin(Kind::Voice, &one_thread());
    in_bursts(move |burst| {
        let frames: Vec<_> = (0..burst).map(|_| frame.clone()).collect();
        let last = running.probe.calls().now() + burst;
        running.runtime.block_on(async {
            let start = Instant::now();
            frames.into_iter().for_each(|frame| running.send(frame));
            running.probe.calls().reach(last).await;
            start.elapsed()
        })
    })
}

/// Pieces of the user's voice, until the transport has the last.
fn spoken<C: Contestant>() -> Runner {
    let samples = Bytes::from(vec![7; 640]);
    let running = Running::<C>::begin(Kind::Voice, &one_thread());
    in_bursts(move |burst| {
        let running = &running; // all of it: without its frames the session would be over
        let last = running.probe.sent().now() + burst;
        running.runtime.block_on(async {
            let start = Instant::now();
            for _ in 0..burst {
                running.session.speak(&samples).await;
            }
            running.probe.sent().reach(last).await;
            start.elapsed()
        })
    })
}

fn in_bursts(mut run: impl FnMut(u64) -> Duration + 'static) -> Runner {
    Runner::Timed(Box::new(move |calls| {
        let bursts = calls / BURST;
        let rest = calls % BURST;
        (0..bursts).map(|_| BURST).chain((rest > 0).then_some(rest)).map(&mut run).sum()
    }))
}

/// One turn at a time, from its last frame until nothing is left to do.
fn turn_end<C: Contestant>() -> Runner {
    let frame = br#"{"serverContent":{"turnComplete":true}}"#;
    let running = Running::<C>::begin(Kind::Reactive, &one_thread());
    let mut turn = 0;
    Runner::Timed(Box::new(move |calls| {
        running.runtime.block_on(async {
            let mut spent = Duration::ZERO;
            for _ in 0..calls {
                turn += 1;
                for number in 0..VARIABLES {
                    running.session.set(&format!("input{number}"), turn);
                }
                let next = running.probe.calls().now() + 1;
                running.send(frame.to_vec());
                running.probe.calls().reach(next).await;
                // On one thread this task goes on when the session has nothing left to do.
                spent += running.probe.received_at().elapsed();
            }
            spent
        })
    }))
}

fn one_thread() -> Rc<Runtime> {
    Rc::new(Builder::new_current_thread().enable_time().build().expect("a runtime can be made"))
}

fn two_threads() -> Rc<Runtime> {
    Rc::new(
        Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime can be made"),
    )
}
