//! Creating a session.

use std::cell::RefCell;
use std::sync::Arc;

use rusqlite::params;
use rusqlite::types::Value;
use sessile_session::{
    ChangedBy, EvaluatedScope, NewSession, OverwriteNotes, ScopeKey, ScopeWrite, SessionError, SessionEvent,
    StateMap, StoredSession, Version, apply, evaluate_scope,
};
use sessile_state::{Delta, Scope};

use crate::batch::{Batch, is_refusal};
use crate::cache::ScopeSlot;
use crate::event_row::{self, EventColumns};
use crate::failure::failed_to;
use crate::history::{ChangeNote, by_json};
use crate::layout::Layout;
use crate::prepared_commit::texts_of;
use crate::rows::{Owner, StoredState};
use crate::session_row::SessionRow;
use crate::state_text::{StateText, TextChanges};

/// A new session with its texts, which the caller's task makes to keep the writing thread free.
pub(crate) struct PreparedSession {
    new: NewSession,
    /// Its own state after its events.
    session: Arc<StateMap>,
    /// The texts of its state at version 0 and after its events.
    initial: String,
    text: String,
    /// The size of its state; only counted if it is limited.
    size: usize,
    create_time: Value,
    update_time: f64,
    events: Vec<EventColumns>,
}

impl PreparedSession {
    pub(crate) fn new(new: NewSession, layout: Layout) -> Result<Self, SessionError> {
        let text =
            |state: &StateMap| serde_json::to_string(state).map_err(failed_to("write a session's state"));
        let mut session = new.session.clone();
        let mut update_time = layout.round(new.time);
        let mut events = Vec::with_capacity(new.events.len());
        for (event, results) in &new.events {
            apply(&mut session, results);
            update_time = layout.next_update_time(update_time, event.time());
            events.push(EventColumns::new(event, layout)?);
        }
        let initial = text(&new.session)?;
        Ok(Self {
            text: if events.is_empty() { initial.clone() } else { text(&session)? },
            initial,
            size: new.max_scope_bytes.map_or(0, |_| size_of(&session)),
            session: Arc::new(session),
            create_time: layout.write_time(new.time).map_err(failed_to("write a time"))?,
            update_time,
            events,
            new,
        })
    }

    fn check_size(&self) -> Result<(), SessionError> {
        match self.new.max_scope_bytes.filter(|limit| self.size > *limit) {
            Some(limit) => Err(SessionError::TooLarge { scope: Scope::Session, size: self.size, limit }),
            None => Ok(()),
        }
    }

    /// The session as it is stored, with the shared state as of its creation.
    pub(crate) fn stored(&self, shared: &CreateAnswer) -> Result<StoredSession, SessionError> {
        let new = &self.new;
        let events = new.events.iter().zip(1..);
        let events = events.map(|((event, _), version)| SessionEvent { version, event: event.clone() });
        Ok(StoredSession {
            key: new.key.clone(),
            incarnation: new.incarnation,
            version: new.events.len() as Version,
            app_version: shared.app_version,
            user_version: shared.user_version,
            update_time: self.update_time,
            session: self.session.clone(),
            app: shared.app.values()?,
            user: shared.user.values()?,
            initial: Some(Arc::new(new.session.clone())),
            events: Arc::new(events.collect()),
        })
    }
}

/// The lengths of all keys and values.
fn size_of(state: &StateMap) -> usize {
    state.iter().map(|(key, value)| key.len() + value.json_size()).sum()
}

/// The shared state as of a creation, as texts: the caller's task parses them, to keep the writing
/// thread free.
pub(crate) struct CreateAnswer {
    app: StoredState,
    app_version: Version,
    user: StoredState,
    user_version: Version,
}

/// A change of shared state by a creation, before it is written.
struct SharedPlan {
    scope: ScopeSlot,
    evaluated: EvaluatedScope,
    texts: TextChanges,
}

impl Batch<'_> {
    pub(crate) fn create(&mut self, prepared: &PreparedSession) -> Result<CreateAnswer, SessionError> {
        let PreparedSession { new, .. } = prepared;
        let key = &new.key;
        let taken = || SessionError::AlreadyExists { key: key.clone() };
        let (app, user) = match self.plan_creation(prepared) {
            Ok(plans) => plans,
            Err(refusal) if is_refusal(&refusal) && self.exists(key)? => return Err(taken()),
            Err(error) => return Err(error),
        };
        if !self.insert_session(prepared)? {
            return Err(taken());
        }
        event_row::delete_all(self.connection, key)?; // which may be left over, if another program deleted a session without them
        for ((version, (event, _)), columns) in (1..).zip(&new.events).zip(&prepared.events) {
            let EventColumns { time, data } = columns;
            if !event_row::insert(&mut self.insert_event, key, version, event, time, data)? {
                return Err(SessionError::EventConflict { key: key.clone(), id: event.id.clone() });
            }
        }
        let (app_slot, user_slot) = (app.scope, user.scope);
        for (plan, intent) in [(app, &new.app), (user, &new.user)] {
            let shared = self.cache.scope_to_change(plan.scope);
            if !intent.is_empty() {
                let note = ChangeNote::new(new.time, &by_json(&ChangedBy::creation(key))?, intent)?;
                shared.change(&plan.texts, &note, &plan.evaluated.undo, &OverwriteNotes::new())?;
            } else if self.layout == Layout::V1 {
                shared.exist(new.time); // google-adk needs both rows, also empty ones, to append an event
            }
        }
        Ok(CreateAnswer {
            app_version: self.cache[app_slot].version,
            app: self.cache[app_slot].state.copy(),
            user_version: self.cache[user_slot].version,
            user: self.cache[user_slot].state.copy(),
        })
    }

    /// Computes the changes of the application's and of the user's state, without making them.
    fn plan_creation(
        &mut self,
        prepared: &PreparedSession,
    ) -> Result<(SharedPlan, SharedPlan), SessionError> {
        let PreparedSession { new, .. } = prepared;
        prepared.check_size()?;
        let mut app = self.evaluate_shared(ScopeKey::app_of(&new.key), &new.app, new.time)?;
        let mut user = self.evaluate_shared(ScopeKey::user_of(&new.key), &new.user, new.time)?;
        for plan in [&mut app, &mut user] {
            let state = &mut self.cache[plan.scope].state;
            state.check_size(&plan.texts, new.max_scope_bytes)?;
            state.check_readable()?;
        }
        Ok((app, user))
    }

    fn evaluate_shared(
        &mut self,
        scope: ScopeKey,
        delta: &Delta,
        time: f64,
    ) -> Result<SharedPlan, SessionError> {
        let slot = self.cache.scope(self.connection, &scope)?;
        let write = ScopeWrite::unconditional(scope, delta.clone(), time);
        let evaluated = self.evaluate_scope(slot, &write)?;
        let texts = texts_of(&evaluated.results)?;
        Ok(SharedPlan { scope: slot, evaluated, texts })
    }

    /// Computes the results of a write of shared state.
    pub(crate) fn evaluate_scope(
        &mut self,
        slot: ScopeSlot,
        write: &ScopeWrite,
    ) -> Result<EvaluatedScope, SessionError> {
        if !write.delta.is_empty() || !write.guards.is_empty() {
            self.cache[slot].state.keys()?;
        }
        let failed = RefCell::new(None);
        let evaluated = evaluate_scope(write, &self.cache[slot].state.value_of(&failed));
        match failed.take() {
            Some(corrupt) => Err(corrupt),
            None => evaluated,
        }
    }
}

const INSERT_SESSION: &str = "
    INSERT INTO sessions (app_name, user_id, id, state, create_time, update_time,
                          sessile_version, sessile_initial, sessile_incarnation, sessile_bytes)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
    ON CONFLICT DO NOTHING
";

impl Batch<'_> {
    /// Inserts the row of a session unless its key is taken; returns whether it did.
    fn insert_session(&mut self, prepared: &PreparedSession) -> Result<bool, SessionError> {
        let PreparedSession { new, text, initial, create_time, update_time, events, .. } = prepared;
        let key = &new.key;
        let changed = self.layout.write_time(*update_time).map_err(failed_to("write a time"))?;
        let (version, bytes) = (events.len(), events.iter().map(|columns| columns.data.len()).sum());
        let (app, user, id, incarnation) = (key.app(), key.user(), key.id(), new.incarnation.0);
        let inserted = self
            .connection
            .prepare_cached(INSERT_SESSION)
            .and_then(|mut statement| {
                statement.execute(params![
                    app,
                    user,
                    id,
                    text,
                    create_time,
                    changed,
                    version,
                    initial,
                    incarnation,
                    bytes
                ])
            })
            .map_err(failed_to("create a session"))?;
        if inserted == 0 {
            return Ok(false);
        }
        let state = StateText::stored(StoredState { owner: Owner::Session(key.clone()), text: text.clone() });
        let row = SessionRow::created(new.incarnation, version as Version, *update_time, state, bytes);
        self.cache.add_session(key, row);
        Ok(true)
    }
}
