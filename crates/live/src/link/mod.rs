//! The network lane: opens connections, reads and writes frames, and reconnects.

mod backoff;
mod dispatch;
mod open;
mod serve;

use std::sync::Arc;
use std::time::Duration;

use sessile_agent::FunctionDeclaration;
use tokio::sync::{mpsc, watch};

pub use backoff::Reconnect;
pub(crate) use open::Opened;

use crate::error::LiveError;
use crate::event::LiveEvent;
use crate::inbox::Control;
use crate::shared::{EndReason, Shared};
use crate::transport::Transport;
use crate::wire::{Outgoing, Setup, WirePhase};
use dispatch::Dispatch;
use serve::End;

/// The timeouts of the connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) connect: Duration,
    pub(crate) setup: Duration,
    /// A ping is sent at this interval. The connection is lost when the server has sent nothing for
    /// twice this time.
    pub(crate) keepalive: Duration,
    /// The timeout for sending one frame.
    pub(crate) write: Duration,
    pub(crate) reconnect: Reconnect,
}

/// The connection of a session, through all reconnects.
pub(crate) struct Link {
    pub(crate) shared: Arc<Shared>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) setup: Setup,
    /// The tools, and whether each runs in the background.
    pub(crate) tools: Vec<(FunctionDeclaration, bool)>,
    pub(crate) timing: Timing,
    pub(crate) outgoing: mpsc::Receiver<Outgoing>,
    /// A frame that was taken from the queue, but not sent yet. It survives a reconnect.
    pub(crate) unsent: Option<Outgoing>,
    pub(crate) stop: watch::Receiver<bool>,
}

impl Link {
    /// Serves the session until it is over.
    pub(crate) async fn run(mut self, mut opened: Opened) {
        let mut dispatch = Dispatch::new(self.shared.clone());
        let mut attempt = 0;
        let reason = loop {
            self.connected(opened.resumed).await;
            let served = self.serve(opened.connection, &mut dispatch).await;
            if served.received {
                attempt = 0;
            }
            let reason = match served.end {
                End::Stopped => break None,
                End::Finished(reason) => break Some(Arc::from(reason)),
                End::Lost(reason) => {
                    self.report(&reason);
                    reason
                }
                End::GoAway => "the server sent GoAway".to_owned(),
            };
            match self.reopen(&mut attempt, reason).await {
                Ok(again) => opened = again,
                Err(reason) => break reason,
            }
        };
        self.shared.enter(WirePhase::Disconnected);
        self.shared.signals.disconnected();
        self.shared.inbox.tell(Control::Disconnected(reason));
    }

    async fn connected(&mut self, resumed: bool) {
        if !resumed {
            self.shared.wire.begin_conversation();
        }
        let now = self.shared.clock.now() * 1000.0;
        self.shared.signals.connected(now.max(0.0).round() as u64);
        self.shared.enter(WirePhase::Active);
        self.shared.bus.emit(LiveEvent::Connected { resumed });
        self.shared.inbox.tell(Control::Connected { resumed });
    }

    /// Reconnects with retries; the error is the reason why the session is over.
    async fn reopen(&mut self, attempt: &mut u32, mut reason: String) -> Result<Opened, EndReason> {
        loop {
            *attempt += 1;
            if *attempt > self.timing.reconnect.attempts {
                let tries = self.timing.reconnect.attempts;
                return Err(Some(
                    format!("the connection was lost, and {tries} tries did not help: {reason}").into(),
                ));
            }
            let after = self.timing.reconnect.pause(*attempt);
            self.shared.enter(WirePhase::Connecting);
            self.shared.bus.emit(LiveEvent::Reconnecting { attempt: *attempt, after });
            let mut stop = self.stop.clone();
            let opened = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return Err(None),
                opened = async {
                    tokio::time::sleep(after).await;
                    self.open().await
                } => opened,
            };
            match opened {
                Ok(opened) => return Ok(opened),
                Err(error) => {
                    self.report(&error.to_string());
                    if let LiveError::Refused { code: Some(1007 | 1008), .. } = error {
                        return Err(Some(error.to_string().into()));
                    }
                    reason = error.to_string();
                }
            }
        }
    }

    fn report(&self, message: &str) {
        self.shared.problem(message);
    }
}
