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
use crate::wire::{Outgoing, WirePhase};

/// Why serving a connection ended.
pub(super) enum End {
    /// The application asked to end the session.
    Stopped,
    /// The server ended the session, and it cannot be resumed.
    Finished(String),
    /// The connection was lost.
    Lost(String),
    /// The server sent GoAway, and the turn is over or the deadline is near: reconnect now.
    GoAway,
}

pub(super) struct Served {
    pub(super) end: End,
    /// Whether a frame arrived: then the connection worked, and attempts are counted anew.
    pub(super) received: bool,
}

/// How often the signals that depend on the time are written.
const TICK: Duration = Duration::from_millis(100);
/// The timeout for sending the last frames and closing the connection.
const CLOSING: Duration = Duration::from_secs(1);

impl Link {
    /// Reads and writes until the connection ends.
    pub(super) async fn serve(&mut self, connection: Connection, dispatch: &mut Dispatch) -> Served {
        let Connection { mut sender, mut receiver } = connection;
        let mut received = false;
        let mut stop = self.stop.clone();
        let end = tokio::select! {
            end = read(&self.shared, &mut *receiver, dispatch, self.timing, &mut received) => end,
            error = write(&self.shared, &mut *sender, &mut self.outgoing, &mut self.unsent, self.timing) => error,
            _ = stop.wait_for(|stop| *stop) => End::Stopped,
        };
        if !matches!(end, End::Lost(_)) {
            self.shared.enter(WirePhase::Disconnecting);
            let flush = matches!(end, End::Stopped);
            if timeout(CLOSING, self.close(&mut *sender, flush)).await.is_err() {
                tracing::debug!("closing the connection timed out");
            }
        }
        Served { end, received }
    }

    /// Closes the connection, after sending the queued frames if `flush` is set. Otherwise they
    /// stay queued for the next connection.
    async fn close(&mut self, sender: &mut dyn FrameSender, flush: bool) {
        while flush && let Some(frame) = self.unsent.take().or_else(|| self.outgoing.try_recv().ok()) {
            if !self.shared.wire.is_current(&frame) {
                report_stale_answer(&self.shared);
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
    received: &mut bool,
) -> End {
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut last_sign = Instant::now();
    // Set after GoAway: when to reconnect at the latest, which is before the server disconnects.
    // The inner `None` is a GoAway without a time.
    let mut leaving: Option<Option<Instant>> = None;
    loop {
        tokio::select! {
            message = receiver.receive() => {
                last_sign = Instant::now();
                match message {
                    Ok(Received::Frame(frame)) => {
                        *received = true;
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

/// Whether a close by the server ends the session: a policy or data error does, and so does an
/// ordinary close without a resume handle.
fn closed(shared: &Shared, code: Option<u16>, reason: String, leaving: bool) -> End {
    let message = match (code, reason.as_str()) {
        (Some(code), "") => format!("the server closed the connection ({code})"),
        (Some(code), reason) => format!("the server closed the connection ({code}): {reason}"),
        (None, _) => "the server closed the connection".to_owned(),
    };
    match code {
        Some(1007 | 1008) => End::Finished(message),
        Some(1000) if !leaving && shared.wire.resume_handle().is_none() => End::Finished(message),
        _ if leaving => End::GoAway,
        _ => End::Lost(message),
    }
}

fn lost(error: &TransportError) -> End {
    End::Lost(format!("the connection was lost: {error}"))
}

/// Reports that the answer of a tool is stale: the conversation of its call is over.
fn report_stale_answer(shared: &Shared) {
    shared.problem("an answer of a tool was left out: it belongs to a call of an earlier conversation");
}

/// Sends frames one by one. A frame stays in `unsent` until it is sent, so that it is not lost with
/// the connection.
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
            report_stale_answer(shared);
        }
        if let Some(frame) = unsent {
            match within(timing.write, sender.send(&frame.text)).await {
                Ok(Ok(())) => *unsent = None,
                Ok(Err(error)) => return lost(&error),
                Err(_) => return End::Lost(format!("a message could not be sent within {:?}", timing.write)),
            }
        }
        tokio::select! {
            biased; // a ping is rarely due, and must not starve while there are frames to send
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

/// As [`timeout`], but does not read the clock if the future is ready at once.
async fn within<F: Future>(time: Duration, future: F) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    match poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => timeout(time, future).await,
    }
}
