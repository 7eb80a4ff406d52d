use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::dispatch::Dispatch;
use super::{Link, Timing};
use crate::shared::Shared;
use crate::transport::{Connection, FrameReceiver, FrameSender, Received, TransportError};
use crate::wire::Outgoing;
use crate::wire::WirePhase;

/// Why a connection is not served any more.
pub(super) enum End {
    /// The application wants to end the session.
    Stopped,
    /// The server ended the session, and it cannot go on.
    Finished(String),
    /// The connection was lost.
    Lost(String),
    /// The server wants to be left, and this is a good moment.
    GoAway,
}

pub(super) struct Served {
    pub(super) end: End,
    /// Whether the server said anything.
    pub(super) heard: bool,
}

/// How often the signals that run with time are written.
const TICK: Duration = Duration::from_millis(100);
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);

impl Link {
    /// Reads and writes until the connection ends.
    pub(super) async fn serve(&mut self, connection: Connection, dispatch: &mut Dispatch) -> Served {
        let Connection { mut sender, mut receiver } = connection;
        let mut heard = false;
        let mut stop = self.stop.clone();
        let end = tokio::select! {
            end = read(&self.shared, &mut *receiver, dispatch, self.timing, &mut heard) => end,
            error = write(&self.shared, &mut *sender, &mut self.outgoing, &mut self.unsent, self.timing) => error,
            _ = stop.wait_for(|stop| *stop) => End::Stopped,
        };
        if !matches!(end, End::Lost(_)) {
            self.shared.enter(WirePhase::Disconnecting);
            let all = matches!(end, End::Stopped);
            if timeout(GOODBYE, self.goodbye(&mut *sender, all)).await.is_err() {
                tracing::debug!("the server did not wait for the goodbye");
            }
        }
        Served { end, heard }
    }

    /// Sends what is still to be sent, if that is wanted, and closes.
    async fn goodbye(&mut self, sender: &mut dyn FrameSender, all: bool) {
        while all && let Some(frame) = self.unsent.take().or_else(|| self.outgoing.try_recv().ok()) {
            if !self.shared.wire.is_current(&frame) {
                left_out(&self.shared);
            } else if let Err(error) = sender.send(&frame.text).await {
                return self.report(&format!("the last messages were not sent: {error}"));
            }
        }
        if let Err(error) = sender.close().await {
            tracing::debug!(%error, "the connection was closed already");
        }
    }
}

async fn read(
    shared: &Shared,
    receiver: &mut dyn FrameReceiver,
    dispatch: &mut Dispatch,
    timing: Timing,
    heard: &mut bool,
) -> End {
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut last_sign = Instant::now();
    // When the server will disconnect at the latest, with time to spare; `None` inside if it did
    // not say.
    let mut leaving: Option<Option<Instant>> = None;
    loop {
        tokio::select! {
            received = receiver.receive() => {
                last_sign = Instant::now();
                match received {
                    Ok(Received::Frame(frame)) => {
                        *heard = true;
                        let seen = dispatch.frame(&frame).await;
                        if let Some(time_left) = seen.go_away {
                            leaving = Some(time_left.map(|left| last_sign + left.mul_f64(0.9)));
                        }
                        if leaving.is_some() && seen.turn_complete {
                            return End::GoAway;
                        }
                    }
                    Ok(Received::SignOfLife) => {}
                    Ok(Received::Closed { code, reason }) => return closed(shared, code, reason, leaving.is_some()),
                    Err(error) => return lost(&error),
                }
            }
            _ = tick.tick() => {
                shared.signals.flush();
                shared.inbox.tick();
                if last_sign.elapsed() > timing.keepalive * 2 {
                    return End::Lost(format!("the server was silent for {:?}", timing.keepalive * 2));
                }
                if let Some(Some(deadline)) = leaving && Instant::now() >= deadline {
                    return End::GoAway;
                }
            }
        }
    }
}

/// What a close by the server means: the conversation can go on if there is a handle, or if it was
/// no ordinary end.
fn closed(shared: &Shared, code: Option<u16>, reason: String, leaving: bool) -> End {
    let said = match (code, reason.as_str()) {
        (Some(code), "") => format!("the server closed the connection ({code})"),
        (Some(code), reason) => format!("the server closed the connection ({code}): {reason}"),
        (None, _) => "the server closed the connection".to_owned(),
    };
    match code {
        Some(1007 | 1008) => End::Finished(said),
        Some(1000) if !leaving && shared.wire.resume_handle().is_none() => End::Finished(said),
        _ if leaving => End::GoAway,
        _ => End::Lost(said),
    }
}

fn lost(error: &TransportError) -> End {
    End::Lost(format!("the connection was lost: {error}"))
}

/// Says that an answer came too late for the conversation that asked.
fn left_out(shared: &Shared) {
    shared
        .problem("an answer of a tool was left out: the conversation began anew, and does not know the call");
}

/// Sends frame by frame. A frame stays in `unsent` until it is sent, so that a lost connection
/// loses none.
async fn write(
    shared: &Shared,
    sender: &mut dyn FrameSender,
    outgoing: &mut mpsc::Receiver<Outgoing>,
    unsent: &mut Option<Outgoing>,
    timing: Timing,
) -> End {
    let mut ping = interval(timing.keepalive);
    ping.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ping.reset();
    loop {
        if unsent.take_if(|frame| !shared.wire.is_current(frame)).is_some() {
            left_out(shared);
        }
        if let Some(frame) = unsent {
            match within(timing.write, sender.send(&frame.text)).await {
                Ok(Ok(())) => *unsent = None,
                Ok(Err(error)) => return lost(&error),
                Err(_) => return End::Lost(format!("a message could not be sent within {:?}", timing.write)),
            }
        }
        tokio::select! {
            biased; // a ping is seldom due, and must not wait for ever behind what is sent
            _ = ping.tick() => match timeout(timing.write, sender.ping()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return lost(&error),
                Err(_) => return End::Lost(format!("a message could not be sent within {:?}", timing.write)),
            },
            frame = outgoing.recv() => match frame {
                Some(frame) => *unsent = Some(frame),
                None => return End::Stopped,
            },
        }
    }
}

/// As [`timeout`], but reads no clock if there is nothing to wait for.
async fn within<F: Future>(time: Duration, future: F) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    match poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => timeout(time, future).await,
    }
}
