//! The responses of concurrent calls, and what they changed, in one event.

use std::collections::BTreeMap;
use std::sync::Arc;

use sessile_session::{Append, Backoff, Content, Event, EventActions, FunctionResponse, SessionError};
use sessile_state::{Scope, SharedValue, Snapshot};

use crate::actions::join_actions;
use crate::context::{InvocationContext, Taken};
use crate::error::AgentError;
use crate::merge::{Joined, Refused, Written, join};

/// The outcome of concurrent calls, until an event carries it.
pub(super) struct Answers {
    author: String,
    answers: Vec<Answer>,
    /// The state that the calls began with; a single call does not need it.
    before: Option<Snapshot>,
    /// Values that a refused commit found instead of those in `before`.
    newer: BTreeMap<String, Option<SharedValue>>,
    /// Whether the last event was computed from known values: if the store holds others, it is
    /// computed again from those, and no call fails.
    is_exact: bool,
}

/// What came of a call.
pub(super) struct Answer {
    tool: String,
    call_id: String,
    /// None: it will come later.
    response: Option<BTreeMap<String, SharedValue>>,
    taken: Taken,
}

impl Answers {
    pub(super) fn new(author: &str, answers: Vec<Answer>, before: Option<Snapshot>) -> Self {
        Self { author: author.to_owned(), answers, before, newer: BTreeMap::new(), is_exact: false }
    }

    /// Commits the answers in one event, in the order of the calls. If a commit is refused because
    /// of a key, the answer of the call that caused it becomes an error, its changes are dropped,
    /// and the others are committed without it. `None` if there is nothing to commit.
    pub(super) async fn commit(
        mut self,
        ctx: &InvocationContext,
        first: Append,
    ) -> Result<Option<Arc<Event>>, AgentError> {
        let mut append = first;
        let mut backoff = Backoff::default();
        loop {
            if append.event.content.is_none() && append.event.actions == EventActions::default() {
                return Ok(None);
            }
            let error = match ctx.emit_as(append).await {
                Ok(event) => return Ok(Some(event)),
                Err(AgentError::Session(error)) => error,
                Err(error) => return Err(error),
            };
            let may_retry = match &error {
                SessionError::Overwritten { current } if self.is_exact => {
                    self.newer.extend(current.clone());
                    backoff.pause().await
                }
                error => self.refuse(error),
            };
            if !may_retry {
                return Err(error.into());
            }
            append = self.append()?;
        }
    }

    /// The event with all answers and what the calls changed. A call whose changes cannot be
    /// joined with those of the calls before it is answered with an error.
    pub(super) fn append(&mut self) -> Result<Append, AgentError> {
        let joined = loop {
            match self.joined() {
                Ok(joined) => break joined,
                Err(Refused { writer, reason }) => self.answers[writer].fail(reason),
            }
        };
        self.is_exact = joined.is_exact;
        let mut event = Event::new(&self.author);
        for answer in &self.answers {
            join_actions(&mut event.actions, answer.taken.actions.clone()).map_err(AgentError::other)?;
        }
        event.actions.state_delta = joined.delta;
        let parts: Vec<_> = self.answers.iter().filter_map(Answer::part).map(Into::into).collect();
        if !parts.is_empty() {
            event.content =
                Some(Content { role: Some("user".to_owned()), parts: Some(parts), ..Content::default() });
        }
        Ok(Append::new(event).guarded(joined.guards).overwriting(joined.overwrote))
    }

    fn joined(&self) -> Result<Joined, Refused> {
        let known = |key: &str| match self.newer.get(key) {
            Some(newer) => newer.clone(),
            None => self.before.as_ref().and_then(|before| before.get_raw(key)),
        };
        let writers: Vec<_> = self.answers.iter().map(Answer::written).collect();
        join(&known, &writers)
    }

    /// Finds the call that caused a refused commit, and answers it with an error. Returns `false`
    /// if no call caused it. An overwrite was caused by the last call that had read the key,
    /// everything else by the last call that changed the key or the scope.
    fn refuse(&mut self, error: &SessionError) -> bool {
        match error {
            SessionError::Overwritten { current } => {
                let mut any = false;
                for key in current.keys() {
                    let only = SessionError::Overwritten { current: [(key.clone(), None)].into() };
                    any |= self.fail_last(only.to_string(), |taken| taken.guards.get(key).is_some());
                }
                any
            }
            SessionError::Operation { key, .. } | SessionError::InvalidState { key, .. } => {
                self.fail_last(error.to_string(), |taken| taken.delta.get(key).is_some())
            }
            SessionError::TooLarge { scope, .. } => {
                let mut keys = |taken: &Taken| taken.delta.iter().any(|(key, _)| Scope::of(key).0 == *scope);
                self.fail_last(error.to_string(), &mut keys)
            }
            _ => false,
        }
    }

    fn fail_last(&mut self, reason: String, mut is_to_blame: impl FnMut(&Taken) -> bool) -> bool {
        match self.answers.iter_mut().rev().find(|answer| is_to_blame(&answer.taken)) {
            Some(answer) => {
                answer.fail(reason);
                true
            }
            None => false,
        }
    }
}

impl Answer {
    pub(super) fn new(
        tool: String,
        call_id: String,
        response: Option<BTreeMap<String, SharedValue>>,
        mut taken: Taken,
    ) -> Self {
        // Changes that were put into the actions come before those that were made in the state.
        let mut delta = std::mem::take(&mut taken.actions.state_delta);
        let merged = delta.merge(&taken.delta);
        taken.delta = delta;
        let mut answer = Self { tool, call_id, response, taken };
        if let Err(error) = merged {
            answer.fail(error.to_string());
        }
        answer
    }

    fn written(&self) -> Written<'_> {
        Written { writer: &self.tool, delta: &self.taken.delta, guards: &self.taken.guards }
    }

    fn part(&self) -> Option<FunctionResponse> {
        let response = Some(self.response.clone()?);
        let (id, name) = (Some(self.call_id.clone()), Some(self.tool.clone()));
        Some(FunctionResponse { id, name, response, ..FunctionResponse::default() })
    }

    /// The call failed: it changes nothing. Artifacts that were saved stay saved.
    fn fail(&mut self, reason: String) {
        let artifacts = std::mem::take(&mut self.taken.actions.artifact_delta);
        self.taken = Taken::default();
        if !artifacts.is_empty() {
            self.taken.actions.artifact_delta = artifacts;
        }
        tracing::info!(tool = self.tool, reason, "the changes of a tool call were refused");
        self.response =
            Some([("error".to_owned(), SharedValue::from(serde_json::Value::from(reason)))].into());
    }
}
