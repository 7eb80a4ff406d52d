//! What a live session costs, over frames in memory: `cargo bench -p sessile-bench --bench live`.
//!
//! - `frame_to_callback`: from a frame received to its callback called, one at a time;
//! - `audio_frame`: a frame of 20 ms of the model's voice, as fast as they come;
//! - `turn_end`: everything that follows from a turn, with 50 watches, 20 computed variables and 10
//!   phases.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sessile_live::{
    Connection, FrameReceiver, FrameSender, KeyWatch, Live, LiveBuilder, LiveHandle, Phase, Platform,
    Received, Transport, TransportError,
};
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, mpsc};

/// A connection whose frames come from a channel.
struct Memory {
    platform: Platform,
    frames: Mutex<Option<mpsc::UnboundedReceiver<Bytes>>>,
}

struct Frames(mpsc::UnboundedReceiver<Bytes>);

/// Takes whatever is sent.
struct Nowhere;

#[async_trait]
impl Transport for Memory {
    fn platform(&self) -> &Platform {
        &self.platform
    }

    async fn connect(&self) -> Result<Connection, TransportError> {
        let frames = self.frames.lock().await.take();
        let reason =
            || TransportError::Address { address: "memory".to_owned(), reason: "it is used up".to_owned() };
        let frames = frames.ok_or_else(reason)?;
        Ok(Connection { sender: Box::new(Nowhere), receiver: Box::new(Frames(frames)) })
    }
}

#[async_trait]
impl FrameReceiver for Frames {
    async fn receive(&mut self) -> Result<Received, TransportError> {
        Ok(match self.0.recv().await {
            Some(frame) => Received::Frame(frame),
            None => Received::Closed { code: Some(1000), reason: String::new() },
        })
    }
}

#[async_trait]
impl FrameSender for Nowhere {
    async fn send(&mut self, _: &str) -> Result<(), TransportError> {
        Ok(())
    }

    async fn ping(&mut self) -> Result<(), TransportError> {
        Ok(())
    }

    async fn close(&mut self) -> Result<(), TransportError> {
        Ok(())
    }
}

/// A session, where its frames come from, and where its callback is heard of.
struct Running {
    session: LiveHandle,
    frames: mpsc::UnboundedSender<Bytes>,
    called: mpsc::UnboundedReceiver<()>,
}

async fn begin(describe: impl FnOnce(LiveBuilder, mpsc::UnboundedSender<()>) -> LiveBuilder) -> Running {
    let (frames, receiver) = mpsc::unbounded_channel();
    let (call, called) = mpsc::unbounded_channel();
    frames.send(Bytes::from_static(br#"{"setupComplete":{}}"#)).expect("the receiver is held");
    let transport = Memory { platform: Platform::GoogleAi, frames: Mutex::new(Some(receiver)) };
    let session = describe(Live::builder(), call).connect(transport).await.expect("memory is always there");
    Running { session, frames, called }
}

impl Running {
    fn send(&self, frame: &Bytes) {
        self.frames.send(frame.clone()).expect("the session is there");
    }

    async fn wait(&mut self, calls: u64) {
        for _ in 0..calls {
            self.called.recv().await.expect("the session is there");
        }
    }
}

fn tell(call: &mpsc::UnboundedSender<()>) {
    call.send(()).expect("the benchmark listens");
}

fn frame_to_callback(criterion: &mut Criterion) {
    let frame =
        Bytes::from_static(br#"{"serverContent":{"modelTurn":{"role":"model","parts":[{"text":"Hello"}]}}}"#);
    let runtime = runtime();
    let mut running =
        runtime.block_on(begin(|live, call| live.transcription(false, false).on_text(move |_| tell(&call))));
    criterion.bench_function("frame_to_callback", |bencher| {
        bencher.iter_custom(|times| {
            runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..times {
                    running.send(&frame);
                    running.wait(1).await;
                }
                start.elapsed()
            })
        });
    });
}

fn audio_frame(criterion: &mut Criterion) {
    // 20 ms at 24 kHz and 16 bits are 960 bytes, which are 1280 in base64.
    let data = "AAEC".repeat(320);
    let part = format!(r#"{{"inlineData":{{"mimeType":"audio/pcm;rate=24000","data":"{data}"}}}}"#);
    let frame =
        Bytes::from(format!(r#"{{"serverContent":{{"modelTurn":{{"role":"model","parts":[{part}]}}}}}}"#));
    let runtime = runtime();
    let mut running = runtime.block_on(begin(|live, call| live.on_audio(move |_| tell(&call))));
    let mut group = criterion.benchmark_group("audio_frame");
    group.throughput(Throughput::Bytes(960));
    group.bench_function("20ms", |bencher| {
        bencher.iter_custom(|times| {
            runtime.block_on(async {
                let start = Instant::now();
                (0..times).for_each(|_| running.send(&frame));
                running.wait(times).await;
                start.elapsed()
            })
        });
    });
    group.finish();
}

fn turn_end(criterion: &mut Criterion) {
    let frame = Bytes::from_static(br#"{"serverContent":{"turnComplete":true}}"#);
    let runtime = runtime();
    let mut running = runtime.block_on(begin(|live, call| {
        let live = (0..20).fold(live, |live, number| {
            live.computed(format!("double{number}"), [format!("input{number}")], move |state| {
                Some(state.get::<u64>(&format!("input{number}"))? * 2)
            })
        });
        let live = (0..50).fold(live, |live, number| {
            live.watch(KeyWatch::on(format!("derived:double{}", number % 20)).then(|_| async {}))
        });
        let live = (0..10).fold(live, |live, number| {
            let next = format!("phase{}", (number + 1) % 10);
            live.phase(Phase::new(format!("phase{number}")).with_transition(next, |_| true))
        });
        let call = Arc::new(call);
        live.on_turn_complete(move |_, _| {
            let call = call.clone();
            async move { tell(&call) }
        })
    }));
    criterion.bench_function("turn_end", |bencher| {
        let mut round = 0_u64;
        bencher.iter_custom(|times| {
            runtime.block_on(async {
                let mut spent = Duration::ZERO;
                for _ in 0..times {
                    round += 1;
                    for number in 0..20 {
                        running.session.state().set(format!("input{number}"), round);
                    }
                    let start = Instant::now();
                    running.send(&frame);
                    running.wait(1).await;
                    spent += start.elapsed();
                }
                spent
            })
        });
    });
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
}

criterion_group!(benches, frame_to_callback, audio_frame, turn_end);
criterion_main!(benches);
