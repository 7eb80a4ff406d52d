use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};
use sessile_state::{Delta, SharedValue, State, StateError, merge_scopes};

use crate::commit::{Appended, Expect};
use crate::key::SessionKey;
use crate::state_map::{StateMap, apply};
use crate::stored_session::{SessionEvent, StoredSession};
use crate::version::{Incarnation, Version};

/// A session as it was when it was read.
///
/// It has no setters: state changes only by appending events, so that no change can be made without
/// being stored. Appending through the service updates it.
#[derive(Debug, Clone)]
pub struct Session {
    key: SessionKey,
    incarnation: Incarnation,
    version: Version,
    scope_versions: ScopeVersions,
    update_time: f64,
    state: SessionState,
    /// Copy on write: the list is copied if an event is added while it is shared; the events
    /// themselves never are.
    events: Arc<Vec<SessionEvent>>,
}

/// The versions of the shared state that a session was read with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScopeVersions {
    pub(crate) app: Version,
    pub(crate) user: Version,
}

impl Session {
    /// Its address.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Distinguishes it from earlier and later sessions with the same address.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Its revision: 0 at creation, one more with every event.
    pub fn version(&self) -> Version {
        self.version
    }

    /// When it was last changed, in Unix seconds.
    pub fn last_update_time(&self) -> f64 {
        self.update_time
    }

    /// Its state: its own keys, and those of its user (`user:`) and application (`app:`).
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// The events that were read, in the order in which they were committed.
    pub fn events(&self) -> &[SessionEvent] {
        &self.events
    }

    /// What it was read as: its incarnation and the versions of the three scopes, for
    /// [`Append::expecting`](crate::Append::expecting).
    pub fn versions(&self) -> Expect {
        let ScopeVersions { app, user } = self.scope_versions;
        Expect {
            incarnation: Some(self.incarnation),
            session: Some(self.version),
            user: Some(user),
            app: Some(app),
        }
    }

    /// Applies an event that was appended to this session, and those that other writers appended
    /// before it.
    pub(crate) fn take_in(&mut self, appended: Appended) {
        let Appended { version, update_time, event, between, .. } = appended;
        if version <= self.version {
            return; // it was there when the session was read
        }
        let own = SessionEvent { version, event };
        for event in between.into_iter().chain([own]) {
            apply(Arc::make_mut(&mut self.state.0), &event.actions.state_delta);
            Arc::make_mut(&mut self.events).push(event);
        }
        (self.version, self.update_time) = (version, update_time);
    }

    /// Shows the results of an event in the state.
    pub(crate) fn apply(&mut self, results: &Delta) {
        apply(Arc::make_mut(&mut self.state.0), results);
    }
}

impl From<StoredSession> for Session {
    fn from(stored: StoredSession) -> Self {
        fn entries(map: &StateMap) -> impl Iterator<Item = (&String, SharedValue)> {
            map.iter().map(|(key, value)| (key, value.clone()))
        }
        let state = merge_scopes(entries(&stored.app), entries(&stored.user), entries(&stored.session));
        Self {
            key: stored.key,
            incarnation: stored.incarnation,
            version: stored.version,
            scope_versions: ScopeVersions { app: stored.app_version, user: stored.user_version },
            update_time: stored.update_time,
            state: SessionState(Arc::new(state)),
            events: stored.events,
        }
    }
}

/// As ADK's clients expect it: `id`, `appName`, `userId`, `state`, `events`, `lastUpdateTime`.
impl Serialize for Session {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Events<'a>(&'a [SessionEvent]);

        impl Serialize for Events<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(self.0.iter().map(|event| &*event.event))
            }
        }

        let mut map = serializer.serialize_map(Some(6))?;
        map.serialize_entry("id", self.key.id())?;
        map.serialize_entry("appName", self.key.app())?;
        map.serialize_entry("userId", self.key.user())?;
        map.serialize_entry("state", &*self.state.0)?;
        map.serialize_entry("events", &Events(&self.events))?;
        map.serialize_entry("lastUpdateTime", &self.update_time)?;
        map.end()
    }
}

/// The state of a session when it was read: keys with their prefixes, read only.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionState(Arc<StateMap>);

impl SessionState {
    /// The value of a key, if there is one and it reads as a `T`.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.0.get(key)?.read().ok()
    }

    /// The value of a key as a `T`, or `None` if the key is absent.
    ///
    /// # Errors
    ///
    /// [`StateError::WrongType`] if there is a value and it does not read as a `T`.
    pub fn try_get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, StateError> {
        match self.0.get(key) {
            Some(value) => State::from_iter([(key, value.clone())]).try_get(key),
            None => Ok(None),
        }
    }

    /// The value of a key as it is stored.
    pub fn get_raw(&self, key: &str) -> Option<&SharedValue> {
        self.0.get(key)
    }

    /// Whether the key is there; a null is there.
    pub fn contains(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// The keys, in key order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Keys and values, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SharedValue)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// A copy as a JSON object.
    pub fn to_map(&self) -> Map<String, Value> {
        self.iter().map(|(key, value)| (key.to_owned(), Value::clone(value))).collect()
    }

    /// A new [`State`] with these keys, to compute with.
    pub fn to_state(&self) -> State {
        self.iter().map(|(key, value)| (key, value.clone())).collect()
    }
}
