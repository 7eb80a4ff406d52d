//! Appending an event. Its results are computed from what is stored before anything is written, so
//! that a refused commit leaves no trace in the transaction.

use std::borrow::Cow;
use std::cell::RefCell;

use sessile_session::{
    Commit, Evaluated, EvaluatedScope, OverwriteNotes, SessionError, SessionEvent, Undo, Version, evaluate,
};

use crate::append_answer::AppendAnswer;
use crate::batch::{Batch, is_refusal};
use crate::cache::{ScopeSlot, SessionSlot};
use crate::event_row;
use crate::failure::failed_to;
use crate::history::ChangeNote;
use crate::prepared_commit::{PreparedChange, PreparedCommit, PreparedEvent, texts_of};
use crate::state_text::TextChanges;
use crate::stored_event::StoredEvent;

/// The computed results of a commit, before they are written.
struct Plan<'a> {
    update_time: f64,
    stored: StoredEvent,
    data: Cow<'a, str>,
    session: Cow<'a, TextChanges>,
    user: Option<SharedChange<'a>>,
    app: Option<SharedChange<'a>>,
    between: Vec<SessionEvent>,
}

/// A change of shared state.
struct SharedChange<'a> {
    scope: ScopeSlot,
    texts: Cow<'a, TextChanges>,
    note: &'a ChangeNote,
    undo: Undo,
}

impl Batch<'_> {
    pub(crate) fn append(
        &mut self,
        commit: &Commit,
        prepared: &PreparedCommit,
    ) -> Result<AppendAnswer, SessionError> {
        let key = &commit.key;
        let Some(slot) = self.cache.session(self.connection, self.layout, key)? else {
            return Err(SessionError::NotFound { key: key.clone() });
        };
        let plan = match self.plan(slot, commit, prepared) {
            Ok(plan) => plan,
            // Appending is idempotent: an event that is stored already is answered as it was, even
            // if the commit would now be refused.
            Err(refusal) if is_refusal(&refusal) => return self.known(slot, commit)?.ok_or(refusal),
            Err(error) => return Err(error),
        };
        let StoredEvent { version, event, .. } = &plan.stored;
        if !event_row::insert(&mut self.insert_event, key, *version, event, &prepared.time, &plan.data)? {
            let missing =
                || failed_to("insert an event")("its id is taken, but the stored event cannot be found");
            return self.known(slot, commit)?.ok_or_else(missing);
        }
        self.carry_out(slot, commit, plan)
    }

    /// Computes the results of a commit without changing anything.
    fn plan<'a>(
        &mut self,
        slot: SessionSlot,
        commit: &Commit,
        prepared: &'a PreparedCommit,
    ) -> Result<Plan<'a>, SessionError> {
        let Commit { key, delta, guards, expect, answer, max_scope_bytes: limit, .. } = commit;
        let row = &self.cache[slot];
        let (version, before) = (row.version + 1, row.update_time);
        expect.check_session(key, row.incarnation, row.version)?;
        let needs_user = !delta.user.is_empty() || !guards.user.is_empty() || expect.user.is_some();
        let user = match needs_user || answer.state {
            true => Some(self.cache.user_of(self.connection, slot)?),
            false => None,
        };
        let needs_app = !delta.app.is_empty() || !guards.app.is_empty() || expect.app.is_some();
        let app = match needs_app || answer.state {
            true => Some(self.cache.app_of(self.connection, slot)?),
            false => None,
        };
        let version_of = |scope: Option<ScopeSlot>| scope.map_or(0, |scope| self.cache[scope].version);
        expect.check_shared(key, version_of(user), version_of(app))?;
        if answer.state {
            self.check_readable(slot)?;
        }
        let evaluated = self.evaluate(slot, user, app, commit)?;
        let (stored, data) = stored_event(commit, prepared, version, &evaluated)?;
        let session = texts(prepared.session.as_ref(), &evaluated.session)?;
        self.cache[slot].state.check_size(&session, *limit)?;
        let user = self.shared_change(user, prepared.user.as_ref(), evaluated.user, *limit)?;
        let app = self.shared_change(app, prepared.app.as_ref(), evaluated.app, *limit)?;
        let between = self.between(slot, commit, version)?;
        self.cache[slot].count_bytes(self.connection, key)?;
        let update_time = self.layout.next_update_time(before, commit.event.time());
        Ok(Plan { update_time, stored, data, session, user, app, between })
    }

    fn evaluate(
        &mut self,
        slot: SessionSlot,
        user: Option<ScopeSlot>,
        app: Option<ScopeSlot>,
        commit: &Commit,
    ) -> Result<Evaluated, SessionError> {
        if !commit.delta.session.is_empty() || !commit.guards.session.is_empty() {
            self.cache[slot].state.keys()?;
        }
        for scope in [user, app].into_iter().flatten() {
            self.cache[scope].state.keys()?;
        }
        let failed = RefCell::new(None);
        let value_of = |scope: ScopeSlot| self.cache[scope].state.value_of(&failed);
        let (session, user, app) =
            (self.cache[slot].state.value_of(&failed), user.map(value_of), app.map(value_of));
        let of_user = |name: &str| user.as_ref().and_then(|value_of| value_of(name));
        let of_app = |name: &str| app.as_ref().and_then(|value_of| value_of(name));
        let evaluated = evaluate(commit, &session, &of_user, &of_app);
        match failed.take() {
            Some(corrupt) => Err(corrupt),
            None => evaluated,
        }
    }

    /// The change of shared state, if there is one.
    fn shared_change<'a>(
        &mut self,
        scope: Option<ScopeSlot>,
        prepared: Option<&'a PreparedChange>,
        evaluated: EvaluatedScope,
        limit: Option<usize>,
    ) -> Result<Option<SharedChange<'a>>, SessionError> {
        let (Some(scope), Some(prepared)) = (scope, prepared) else { return Ok(None) };
        let texts = texts(prepared.texts.as_ref(), &evaluated)?;
        self.cache[scope].state.check_size(&texts, limit)?;
        Ok(Some(SharedChange { scope, texts, note: &prepared.note, undo: evaluated.undo }))
    }

    /// Applies the plan to the cached rows, after the event is inserted.
    fn carry_out(
        &mut self,
        slot: SessionSlot,
        commit: &Commit,
        plan: Plan<'_>,
    ) -> Result<AppendAnswer, SessionError> {
        let Plan { update_time, stored, data, session, user, app, between } = plan;
        let row = self.cache.session_to_change(slot);
        row.advance(&session, &stored, update_time, data.len())?;
        for SharedChange { scope, texts, note, undo } in app.into_iter().chain(user) {
            self.cache.scope_to_change(scope).change(&texts, note, &undo, &OverwriteNotes::new())?;
        }
        self.answer(slot, commit, stored, between, None)
    }
}

/// The event as it is to be stored, and its JSON.
fn stored_event<'a>(
    commit: &Commit,
    prepared: &'a PreparedCommit,
    version: Version,
    evaluated: &Evaluated,
) -> Result<(StoredEvent, Cow<'a, str>), SessionError> {
    let event = commit.event.clone();
    if evaluated.overwrites() {
        // The notes on what it overwrote are in a part of the event that was not prepared.
        let event = evaluated.committed(event);
        let data = event_row::json_of(&event)?;
        return Ok((StoredEvent { version, event, results: None }, Cow::Owned(data)));
    }
    match &prepared.data {
        PreparedEvent::Whole(data) => {
            Ok((StoredEvent { version, event, results: None }, Cow::Borrowed(data)))
        }
        PreparedEvent::Around(json) => {
            let results = evaluated.results(&event);
            let data = json.with(&results).map_err(failed_to("write an event"))?;
            Ok((StoredEvent { version, event, results: Some(results) }, Cow::Owned(data)))
        }
    }
}

/// The results of a scope as texts: the prepared ones, unless operations had to be computed.
fn texts<'a>(
    prepared: Option<&'a TextChanges>,
    evaluated: &EvaluatedScope,
) -> Result<Cow<'a, TextChanges>, SessionError> {
    match prepared {
        Some(texts) => Ok(Cow::Borrowed(texts)),
        None => texts_of(&evaluated.results).map(Cow::Owned),
    }
}
