use crate::error::SessionError;
use crate::key::SessionKey;
use crate::state_map::StateMap;
use crate::stored_session::StoredSession;

/// A page of sessions as a store reads it, without their events.
#[derive(Debug, Default)]
pub struct StoredPage {
    /// The readable sessions, in the order of the list. Their initial state may be left out.
    pub sessions: Vec<StoredSession>,
    /// The sessions of the page that cannot be decoded.
    pub unreadable: Vec<Unreadable>,
    /// Where the page ends, if there are more sessions after it.
    pub next: Option<ListPlace>,
}

/// A session whose stored data cannot be decoded. It does not prevent others from being listed.
#[derive(Debug)]
pub struct Unreadable {
    /// Where it is.
    pub key: SessionKey,
    /// The reason, which names the row.
    pub error: SessionError,
}

/// Which sessions are listed, in the order of their last change.
#[derive(Debug, Clone)]
pub struct ListQuery {
    /// Of this application.
    pub app: String,
    /// Of this user only.
    pub user: Option<String>,
    /// At most this many; at least one is returned.
    pub limit: usize,
    /// Roughly how many bytes of JSON the states on a page may take. A page always has at least one
    /// session.
    pub max_bytes: usize,
    /// After this position.
    pub after: Option<ListPlace>,
    /// The most recently changed first; otherwise last.
    pub newest_first: bool,
}

/// A position in a list of sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPlace {
    /// When the session there was last changed.
    pub update_time: f64,
    /// Its user.
    pub user: String,
    /// Its id.
    pub id: String,
}

/// Assembles a page row by row, and stops when it is full. A store calls [`takes`](Self::takes)
/// before each row, and can stop reading if that returns false.
///
/// A row whose position in the list is corrupt is reported like any other corrupt row, but a page
/// cannot end at it.
#[derive(Debug)]
pub struct PageWriter {
    limit: usize,
    max_bytes: usize,
    count: usize,
    bytes: usize,
    full: bool,
    last: Option<ListPlace>,
    page: StoredPage,
}

impl PageWriter {
    /// An empty page for a query.
    pub fn new(query: &ListQuery) -> Self {
        Self {
            limit: query.limit,
            max_bytes: query.max_bytes,
            count: 0,
            bytes: 0,
            full: false,
            last: None,
            page: StoredPage::default(),
        }
    }

    /// Whether there is room for one more session, whose states take this many bytes as JSON: its
    /// own, and what it shares, which every session of the page repeats. There is always room for
    /// one session.
    pub fn takes(&mut self, bytes: usize) -> bool {
        let bytes = self.bytes.saturating_add(bytes);
        self.full = self.count > 0 && (self.count >= self.limit || bytes > self.max_bytes);
        if !self.full {
            self.bytes = bytes;
            self.count += 1;
        }
        !self.full
    }

    /// Marks that there are more sessions after this page, for a store whose database limits the
    /// page.
    pub fn ends_here(&mut self) {
        self.full = true;
    }

    /// Adds a session that [`takes`](Self::takes) accepted, and its position if that is known.
    pub fn add(&mut self, place: Option<ListPlace>, session: Result<StoredSession, Unreadable>) {
        self.last = place.or(self.last.take());
        match session {
            Ok(session) => self.page.sessions.push(session),
            Err(unreadable) => self.page.unreadable.push(unreadable),
        }
    }

    /// The page.
    ///
    /// # Errors
    ///
    /// That of the first unreadable session, if there are more sessions after the page and no
    /// position on it is known: the list could not be continued.
    pub fn finish(mut self) -> Result<StoredPage, SessionError> {
        if self.full {
            if self.last.is_none() && !self.page.unreadable.is_empty() {
                return Err(self.page.unreadable.swap_remove(0).error);
            }
            self.page.next = self.last;
        }
        Ok(self.page)
    }
}

/// The approximate size of a state as JSON in bytes, without serializing it.
pub(crate) fn json_bytes(state: &StateMap) -> usize {
    fn value(json: &serde_json::Value) -> usize {
        use serde_json::Value;
        match json {
            Value::Null | Value::Bool(_) | Value::Number(_) => 8,
            Value::String(text) => text.len() + 2,
            Value::Array(items) => items.iter().map(|item| value(item) + 1).sum::<usize>() + 2,
            Value::Object(fields) => {
                fields.iter().map(|(name, item)| name.len() + value(item) + 4).sum::<usize>() + 2
            }
        }
    }
    state.iter().map(|(key, json)| key.len() + value(json) + 4).sum::<usize>() + 2
}
