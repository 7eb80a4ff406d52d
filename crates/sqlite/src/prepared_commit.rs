//! A commit with its texts, as far as they do not depend on what is stored. The caller's task makes
//! them, to keep the writing thread free.

use std::sync::Arc;

use rusqlite::types::Value;
use sessile_session::{ChangedBy, Commit, JsonAroundDelta, SessionError};
use sessile_state::Delta;

use crate::event_row;
use crate::failure::failed_to;
use crate::history::{ChangeNote, by_json};
use crate::layout::Layout;
use crate::state_text::TextChanges;

pub(crate) struct PreparedCommit {
    /// The event's time, as its column stores it.
    pub(crate) time: Value,
    pub(crate) data: PreparedEvent,
    /// What changes in the session's state, unless there are operations.
    pub(crate) session: Option<TextChanges>,
    pub(crate) user: Option<PreparedChange>,
    pub(crate) app: Option<PreparedChange>,
}

/// The event's JSON.
pub(crate) enum PreparedEvent {
    Whole(String),
    /// The results of its operations are not known yet.
    Around(JsonAroundDelta),
}

/// A change of shared state.
pub(crate) struct PreparedChange {
    /// What changes, unless there are operations.
    pub(crate) texts: Option<TextChanges>,
    pub(crate) note: ChangeNote,
}

impl PreparedCommit {
    pub(crate) fn new(commit: &mut Commit, layout: Layout) -> Result<Self, SessionError> {
        let data = match commit.event.actions.state_delta.has_operations() {
            true => PreparedEvent::Around(event_row::json_around_delta(Arc::make_mut(&mut commit.event))?),
            false => PreparedEvent::Whole(event_row::json_of(&commit.event)?),
        };
        let Commit { event, delta, .. } = commit;
        let by = match delta.user.is_empty() && delta.app.is_empty() {
            true => String::new(),
            false => by_json(&ChangedBy::event(&commit.key, event))?,
        };
        Ok(Self {
            time: event_row::time_of(event, layout)?,
            data,
            session: texts_without_operations(&delta.session)?,
            user: PreparedChange::new(event.time(), &by, &delta.user)?,
            app: PreparedChange::new(event.time(), &by, &delta.app)?,
        })
    }
}

impl PreparedChange {
    fn new(time: f64, by: &str, delta: &Delta) -> Result<Option<Self>, SessionError> {
        if delta.is_empty() {
            return Ok(None);
        }
        let note = ChangeNote::new(time, by, delta)?;
        Ok(Some(Self { texts: texts_without_operations(delta)?, note }))
    }
}

fn texts_without_operations(delta: &Delta) -> Result<Option<TextChanges>, SessionError> {
    match delta.has_operations() {
        true => Ok(None),
        false => texts_of(delta).map(Some),
    }
}

/// Results, which have no operations, as texts.
pub(crate) fn texts_of(results: &Delta) -> Result<TextChanges, SessionError> {
    TextChanges::new(results).map_err(failed_to("write state"))
}
