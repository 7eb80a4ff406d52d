//! The format of exported sessions: JSON lines.
//!
//! The first line names the format. Then come `appState` and `userState` lines with the shared
//! state; then each session: a `session` line, an `event` line for each event in the order of
//! versions, and an `end` line, without which the session is incomplete. Numbers keep every digit.

use serde::{Deserialize, Serialize};
use sessile_session::{Event, SessionState, StateMap};

/// The version of the format that this program writes and reads.
pub(super) const FORMAT: u32 = 1;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(super) enum Line {
    /// The first line of a file.
    SessileExport { format: u32 },
    /// The state of an application, keys without prefix.
    AppState { app: String, state: StateMap },
    /// The state of a user, keys without prefix.
    UserState { app: String, user: String, state: StateMap },
    /// A session begins.
    Session(SessionLine),
    /// One of its events.
    Event { version: u64, event: Box<Event> },
    /// A session is complete.
    End { events: u64 },
}

/// A session without its events.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SessionLine {
    pub(super) app: String,
    pub(super) user: String,
    pub(super) id: String,
    pub(super) version: u64,
    pub(super) update_time: f64,
    /// Its own state at version 0.
    pub(super) initial: StateMap,
    /// Its own state now: the initial one with the changes of all events.
    pub(super) state: StateMap,
}

/// A value that is written as a JSON object.
pub(crate) struct AsMap<T>(T);

/// A type that can be written as a JSON object.
pub(crate) trait Map: Sized {
    fn as_map(&self) -> AsMap<&Self> {
        AsMap(self)
    }
}

impl Map for SessionState {}

impl Serialize for AsMap<&SessionState> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter())
    }
}
