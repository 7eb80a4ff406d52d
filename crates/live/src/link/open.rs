use tokio::time::timeout;

use super::Link;
use crate::error::LiveError;
use crate::transport::{Connection, Received};
use crate::wire::{SetupFacts, WirePhase, decode};

/// A connection whose setup the server accepted.
pub(crate) struct Opened {
    pub(super) connection: Connection,
    /// Whether an earlier conversation was resumed.
    pub(super) resumed: bool,
}

impl Link {
    /// Opens a connection and sends the setup. If the server rejects the resume handle, a new
    /// conversation is begun without it.
    pub(crate) async fn open(&mut self) -> Result<Opened, LiveError> {
        let handle = self.shared.wire.resume_handle();
        match (self.open_with(handle.as_deref()).await, handle) {
            (Err(LiveError::Refused { code, reason }), Some(_)) => {
                self.report(&format!(
                    "the server cannot resume the earlier conversation ({}: {reason}); a new one begins",
                    code.unwrap_or_default()
                ));
                self.shared.wire.set_resume_handle(None);
                self.open_with(None).await
            }
            (opened, _) => opened,
        }
    }

    async fn open_with(&mut self, handle: Option<&str>) -> Result<Opened, LiveError> {
        let timing = self.timing;
        self.shared.enter(WirePhase::Connecting);
        let mut connection = timeout(timing.connect, self.transport.connect())
            .await
            .map_err(|_| LiveError::Timeout { what: "accept a connection", after: timing.connect })??;
        let instruction = self.shared.conversation.instruction();
        let facts = SetupFacts {
            platform: &self.shared.wire.platform,
            instruction: instruction.as_deref(),
            tools: &self.tools,
            resume: handle,
        };
        connection.sender.send(&self.setup.frame(&facts)).await?;
        self.shared.enter(WirePhase::SetupSent);
        let resumed = timeout(timing.setup, self.accepted(&mut connection, handle.is_some()))
            .await
            .map_err(|_| LiveError::Timeout { what: "accept the setup", after: timing.setup })??;
        Ok(Opened { connection, resumed })
    }

    /// Waits until the server accepts the setup, and returns whether it resumed a conversation.
    async fn accepted(&self, connection: &mut Connection, asked_to_resume: bool) -> Result<bool, LiveError> {
        loop {
            let frame = match connection.receiver.receive().await? {
                Received::Frame(frame) => frame,
                Received::SignOfLife => continue,
                Received::Closed { code, reason } => return Err(LiveError::Refused { code, reason }),
            };
            let decoded = decode(&frame);
            decoded.problems.iter().for_each(|problem| self.report(problem));
            let Some(complete) = decoded.frame.setup_complete else {
                if decoded.problems.is_empty() {
                    self.report(
                        "the server sent a message before it accepted the setup; the message is ignored",
                    );
                }
                continue;
            };
            let resumption = complete.session_resumption.unwrap_or_default();
            if let Some(handle) = resumption.handle {
                self.shared.wire.set_resume_handle(Some(handle));
            }
            return Ok(resumption.resumed.unwrap_or(asked_to_resume) && asked_to_resume);
        }
    }
}
