//! Which part of a history is read.

use crate::stored_session::SessionEvent;
use crate::version::Version;

/// Which events are read. Filters combine; the last `last` of those that pass are read.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EventWindow {
    /// At most this many, the last ones.
    pub last: Option<usize>,
    /// Not older than this, in Unix seconds.
    pub after_time: Option<f64>,
    /// Later than this version.
    pub after_version: Option<Version>,
    /// Not later than this version.
    pub until_version: Option<Version>,
}

impl EventWindow {
    /// All events.
    pub const ALL: Self = Self { last: None, after_time: None, after_version: None, until_version: None };

    /// No events.
    pub const NONE: Self = Self { last: Some(0), ..Self::ALL };

    /// The last few events.
    pub const fn last(count: usize) -> Self {
        Self { last: Some(count), ..Self::ALL }
    }

    /// Events that are not older than a time in Unix seconds.
    pub const fn after_time(time: f64) -> Self {
        Self { after_time: Some(time), ..Self::ALL }
    }

    /// Events later than a version.
    pub const fn after_version(version: Version) -> Self {
        Self { after_version: Some(version), ..Self::ALL }
    }

    /// Whether an event passes all filters but `last`.
    pub fn admits(&self, event: &SessionEvent) -> bool {
        self.after_time.is_none_or(|time| event.time() >= time)
            && self.after_version.is_none_or(|version| event.version > version)
            && self.until_version.is_none_or(|version| event.version <= version)
    }
}

/// Which changes of shared state are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeWindow {
    /// Later than this version.
    pub after: Version,
    /// Not later than this version.
    pub until: Option<Version>,
    /// At most this many: the first in the order that is asked for.
    pub limit: usize,
    /// The oldest first; otherwise the newest.
    pub oldest_first: bool,
}

impl ChangeWindow {
    /// All changes, newest first.
    pub const ALL: Self = Self::newest(usize::MAX);

    /// The newest changes, newest first.
    pub const fn newest(limit: usize) -> Self {
        Self { after: 0, until: None, limit, oldest_first: false }
    }

    /// Whether a change passes both filters.
    pub fn admits(&self, version: Version) -> bool {
        version > self.after && self.until.is_none_or(|until| version <= until)
    }
}
