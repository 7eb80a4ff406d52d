//! What an append answers, for a new event and for one that is stored already.

use std::sync::Arc;

use sessile_session::{
    Appended, Commit, Event, EventWindow, Scopes, SessionError, SessionEvent, Since, Version,
};
use sessile_state::Delta;

use crate::batch::Batch;
use crate::cache::SessionSlot;
use crate::event_row;
use crate::read::events;
use crate::rows::StoredState;
use crate::stored_event::{StoredEvent, with_results};

/// The result of an append. The states of the scopes are still texts, and an event with operations
/// is not assembled: the caller's task does both, to keep the writing thread free.
pub(crate) struct AppendAnswer {
    appended: Appended,
    results: Option<Delta>,
    state: Option<ScopeTexts>,
}

struct ScopeTexts {
    session: StoredState,
    user: StoredState,
    user_version: Version,
    app: StoredState,
    app_version: Version,
}

impl AppendAnswer {
    pub(crate) fn parsed(self) -> Result<Appended, SessionError> {
        let state = self.state.map(ScopeTexts::parsed).transpose()?;
        let event = with_results(self.appended.event, self.results);
        Ok(Appended { state, event, ..self.appended })
    }
}

impl ScopeTexts {
    fn parsed(self) -> Result<Scopes, SessionError> {
        Ok(Scopes {
            session: self.session.values()?,
            user: self.user.values()?,
            user_version: self.user_version,
            app: self.app.values()?,
            app_version: self.app_version,
        })
    }
}

impl Batch<'_> {
    /// The answer to a commit whose event is stored already, if it is.
    pub(crate) fn known(
        &mut self,
        slot: SessionSlot,
        commit: &Commit,
    ) -> Result<Option<AppendAnswer>, SessionError> {
        let found = event_row::find(self.connection, self.layout, &commit.key, &commit.event.id)?;
        let Some(SessionEvent { version, event }) = found else { return Ok(None) };
        let between = self.between(slot, commit, version)?;
        if commit.answer.state {
            self.check_readable(slot)?;
        }
        let (stored, sent) = (StoredEvent { version, event, results: None }, commit.event.clone());
        self.answer(slot, commit, stored, between, Some(sent)).map(Some)
    }

    /// The answer to a commit whose event is stored; `sent` is the one that was known already.
    pub(crate) fn answer(
        &mut self,
        slot: SessionSlot,
        commit: &Commit,
        StoredEvent { version, event, results }: StoredEvent,
        between: Vec<SessionEvent>,
        sent: Option<Arc<Event>>,
    ) -> Result<AppendAnswer, SessionError> {
        let state = match commit.answer.state {
            true => Some(self.states(slot)?),
            false => None,
        };
        let row = &self.cache[slot];
        let (incarnation, update_time) = (row.incarnation, row.update_time);
        let is_known = sent.is_some();
        let appended =
            Appended { is_known, sent, version, update_time, incarnation, event, between, state: None };
        Ok(AppendAnswer { appended, results, state })
    }

    /// The events between the point that the commit asks for and its own event. They are read
    /// before anything is written: a corrupt event refuses the commit, and does not fail it
    /// afterwards.
    pub(crate) fn between(
        &mut self,
        slot: SessionSlot,
        commit: &Commit,
        version: Version,
    ) -> Result<Vec<SessionEvent>, SessionError> {
        let Some(Since { incarnation, version: known }) = commit.answer.since else { return Ok(Vec::new()) };
        let row = &mut self.cache[slot];
        let after = if incarnation == row.incarnation { known } else { 0 };
        let until = version - 1;
        if after >= until {
            return Ok(Vec::new());
        }
        if let Some(recent) = row.recent(after, until) {
            return Ok(recent);
        }
        let window = EventWindow { until_version: Some(until), ..EventWindow::after_version(after) };
        events(self.connection, self.layout, &commit.key, window)
    }

    /// Makes sure that the states of all three scopes can be read after the commit.
    pub(crate) fn check_readable(&mut self, slot: SessionSlot) -> Result<(), SessionError> {
        self.cache[slot].state.check_readable()?;
        let user = self.cache.user_of(self.connection, slot)?;
        self.cache[user].state.check_readable()?;
        let app = self.cache.app_of(self.connection, slot)?;
        self.cache[app].state.check_readable()
    }

    fn states(&mut self, slot: SessionSlot) -> Result<ScopeTexts, SessionError> {
        let user = self.cache.user_of(self.connection, slot)?;
        let app = self.cache.app_of(self.connection, slot)?;
        Ok(ScopeTexts {
            session: self.cache[slot].state.copy(),
            user: self.cache[user].state.copy(),
            user_version: self.cache[user].version,
            app: self.cache[app].state.copy(),
            app_version: self.cache[app].version,
        })
    }
}
