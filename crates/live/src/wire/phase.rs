use std::fmt;

/// What the connection is doing. The phase of the conversation is something else: see
/// [`Phase`](crate::Phase).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WirePhase {
    /// There is none.
    #[default]
    Disconnected,
    /// It is being opened.
    Connecting,
    /// The setup was sent, the server has not agreed yet.
    SetupSent,
    /// Open, and nobody speaks.
    Active,
    /// The user speaks.
    UserSpeaking,
    /// The model speaks.
    ModelSpeaking,
    /// The user interrupts the model.
    Interrupted,
    /// The model waits for tools.
    ToolCallPending,
    /// It is being closed.
    Disconnecting,
}

/// The name that `session:phase` holds.
impl fmt::Display for WirePhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
