//! The server that both libraries talk to: frames from a channel, in memory, through each library's
//! own transport trait.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use sessile_live::{Connection, FrameReceiver, FrameSender, Platform, Received, TransportError};
use tokio::sync::{Notify, mpsc};

/// A connection that is used once.
pub struct Script {
    frames: mpsc::UnboundedReceiver<Vec<u8>>,
    probe: Arc<Probe>,
}

/// What happened at both ends of a session.
pub struct Probe {
    /// When the library was last handed a frame.
    received: Mutex<Instant>,
    /// The time from frames to their callbacks, in nanoseconds.
    latency: AtomicU64,
    called: Count,
    sent: Count,
}

/// Something that is counted, and waited for.
#[derive(Default)]
pub struct Count {
    number: AtomicU64,
    changed: Notify,
}

/// A script whose first frame agrees to the setup, and the way to send more.
pub fn script() -> (Script, mpsc::UnboundedSender<Vec<u8>>, Arc<Probe>) {
    let (sender, frames) = mpsc::unbounded_channel();
    sender.send(br#"{"setupComplete":{}}"#.to_vec()).expect("the receiver is held");
    let probe = Arc::new(Probe {
        received: Mutex::new(Instant::now()),
        latency: AtomicU64::new(0),
        called: Count::default(),
        sent: Count::default(),
    });
    (Script { frames, probe: probe.clone() }, sender, probe)
}

impl Probe {
    /// A callback of the application is called.
    pub fn called(&self) {
        let nanoseconds = self.received_at().elapsed().as_nanos();
        self.latency.fetch_add(u64::try_from(nanoseconds).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.called.up();
    }

    /// Takes the time that was spent between frames and callbacks.
    pub fn take_latency(&self) -> Duration {
        Duration::from_nanos(self.latency.swap(0, Ordering::Relaxed))
    }

    pub fn received_at(&self) -> Instant {
        *self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn calls(&self) -> &Count {
        &self.called
    }

    pub fn sent(&self) -> &Count {
        &self.sent
    }

    fn received(&self) {
        *self.received.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

impl Count {
    pub fn now(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Waits until it is this high.
    pub async fn reach(&self, number: u64) {
        while self.now() < number {
            self.changed.notified().await;
        }
    }

    fn up(&self) {
        self.number.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_one();
    }
}

/// Sessile's side: the script waits to be connected to.
pub struct Waiting(pub tokio::sync::Mutex<Option<Script>>);

struct Sink(Arc<Probe>);

#[async_trait]
impl sessile_live::Transport for Waiting {
    fn platform(&self) -> &Platform {
        &Platform::GoogleAi
    }

    async fn connect(&self) -> Result<Connection, TransportError> {
        let used =
            || TransportError::Address { address: "memory".to_owned(), reason: "it is used up".to_owned() };
        let script = self.0.lock().await.take().ok_or_else(used)?;
        Ok(Connection { sender: Box::new(Sink(script.probe.clone())), receiver: Box::new(script) })
    }
}

#[async_trait]
impl FrameReceiver for Script {
    async fn receive(&mut self) -> Result<Received, TransportError> {
        let frame = self.frames.recv().await;
        self.probe.received();
        Ok(match frame {
            Some(frame) => Received::Frame(Bytes::from(frame)),
            None => Received::Closed { code: Some(1000), reason: String::new() },
        })
    }
}

#[async_trait]
impl FrameSender for Sink {
    async fn send(&mut self, _: &str) -> Result<(), TransportError> {
        self.0.sent.up();
        Ok(())
    }

    async fn ping(&mut self) -> Result<(), TransportError> {
        Ok(())
    }

    async fn close(&mut self) -> Result<(), TransportError> {
        Ok(())
    }
}

#[async_trait]
impl gemini_genai_40::transport::Transport for Script {
    type Error = Infallible;

    async fn connect(&mut self, _: &str, _: Vec<(String, String)>) -> Result<(), Infallible> {
        Ok(())
    }

    async fn send(&mut self, _: Vec<u8>) -> Result<(), Infallible> {
        self.probe.sent.up();
        Ok(())
    }

    async fn recv(&mut self) -> Result<Option<Vec<u8>>, Infallible> {
        let frame = self.frames.recv().await;
        self.probe.received();
        Ok(frame)
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
