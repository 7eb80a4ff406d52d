use std::fmt;

/// The phase of the connection. For the phases of the conversation see [`Phase`](crate::Phase).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WirePhase {
    /// There is no connection.
    #[default]
    Disconnected,
    /// The connection is being opened.
    Connecting,
    /// The setup was sent, and the server has not accepted it yet.
    SetupSent,
    /// The connection is open, and neither side is speaking.
    Active,
    /// The user speaks.
    UserSpeaking,
    /// The model speaks.
    ModelSpeaking,
    /// The user interrupts the model.
    Interrupted,
    /// The model waits for tools.
    ToolCallPending,
    /// The connection is being closed.
    Disconnecting,
}

/// The name that `session:phase` holds.
impl fmt::Display for WirePhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
