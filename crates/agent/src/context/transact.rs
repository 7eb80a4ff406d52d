use std::pin::Pin;
use std::sync::Arc;

use sessile_session::{Backoff, BoxError, Event, EventActions, SessionError};
use sessile_state::{Delta, Scope, State};

use super::callback::CallbackContext;
use super::invocation::InvocationContext;
use super::outer::Outer;
use super::readonly::ReadonlyContext;
use crate::error::AgentError;

impl CallbackContext {
    /// Reads the newest stored state, lets `change` compute on it, and commits what it changed at
    /// once, in an event of its own; if what it read has changed meanwhile, again. Returns what
    /// `change` returned: for a tool whose answer quotes the value.
    ///
    /// `change` may run many times. It does not see changes that are pending in
    /// [`state`](Self::state). The keys that it wrote count as read there, with their new values.
    /// They stay stored if the callback or tool fails afterwards.
    ///
    /// ```
    /// use sessile_agent::{FunctionTool, ToolContext};
    /// use sessile_session::BoxError;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Ticket {}
    ///
    /// let tool = FunctionTool::new("take_a_number", "", async |_: Ticket, ctx: ToolContext| {
    ///     let number = ctx.transact(|state| Ok(state.try_modify("app:tickets", 0, |n| n + 1)?)).await?;
    ///     Ok::<_, BoxError>(number) // no other call gets the same one
    /// });
    /// ```
    ///
    /// # Errors
    ///
    /// - [`AgentError::Session`] with [`SessionError::GivenUp`] if `change` returns an error, and
    ///   with the reasons of
    ///   [`SessionService::transact`](sessile_session::SessionService::transact); nothing is
    ///   committed then;
    /// - [`AgentError::Cancelled`] if the run is over.
    pub async fn transact<T: Send>(
        &self,
        mut change: impl FnMut(&State) -> Result<T, BoxError> + Send,
    ) -> Result<T, AgentError> {
        let mut result = None;
        let mut keeping = |state: &State| {
            result = Some(change(state)?);
            Ok(())
        };
        self.transact_event(&mut keeping).await?;
        match result {
            Some(result) => Ok(result),
            None => unreachable!("the closure ran, or the transaction failed"),
        }
    }

    /// Makes a transaction; returns its event, or `None` if it changed nothing that is stored.
    fn transact_event<'a>(&'a self, change: Compute<'a>) -> Transaction<'a> {
        Box::pin(async move {
            let context = &self.changes.context;
            let stored = match &context.invocation.services.outer {
                None => commit(context, change).await?,
                // The session of this run is a copy: the transaction is one of the session that was
                // copied.
                Some(outer) => match outer.ctx.transact_event(change).await? {
                    Some(stored) => Some(repeat(context, outer, &stored).await?),
                    None => None,
                },
            };
            let Some(stored) = stored else { return Ok(None) };
            let delta = &stored.actions.state_delta;
            for (key, change) in delta.iter() {
                let value = change.apply(None).map_err(AgentError::other)?; // results only: set or removed
                self.changes.state.mark_read(key, value);
            }
            context.frame.note_transaction(delta.iter().map(|(key, _)| key));
            Ok(Some(stored))
        })
    }
}

impl InvocationContext {
    /// [`CallbackContext::transact`], for agents.
    ///
    /// # Errors
    ///
    /// As [`CallbackContext::transact`].
    pub async fn transact<T: Send>(
        &self,
        change: impl FnMut(&State) -> Result<T, BoxError> + Send,
    ) -> Result<T, AgentError> {
        self.changes().transact(change).await
    }
}

/// The event of a transaction, or `None` if it changed nothing that is stored.
type Transaction<'a> = Pin<Box<dyn Future<Output = Result<Option<Arc<Event>>, AgentError>> + Send + 'a>>;

/// What a transaction computes.
type Compute<'a> = &'a mut (dyn FnMut(&State) -> Result<(), BoxError> + Send);

/// Tries until what was read is still what is stored at the commit.
async fn commit(context: &ReadonlyContext, change: Compute<'_>) -> Result<Option<Arc<Event>>, AgentError> {
    let (invocation, frame) = (&context.invocation, &context.frame);
    let mut backoff = Backoff::default();
    loop {
        let attempt = invocation.services.sessions.attempt(&invocation.key).await?;
        let temporary = temporary(&frame.state);
        attempt.state().try_apply(&temporary).map_err(AgentError::other)?;
        change(attempt.state())
            .map_err(|source| SessionError::GivenUp { key: invocation.key.clone(), source })?;
        // `temp:` keys that were only lent to the closure are not changes.
        let is_change = |delta: &Delta, key: &str| delta.get(key) != temporary.get(key);
        let Some(mut append) = attempt.append(Event::default())? else {
            let mut delta = attempt.state().delta();
            let all = delta.clone();
            delta.retain(|key| is_change(&all, key));
            frame.state.try_apply(&delta).map_err(AgentError::other)?;
            return Ok(None);
        };
        let all = append.event.actions.state_delta.clone();
        append.event.actions.state_delta.retain(|key| is_change(&all, key));
        match invocation.emit(frame, append).await {
            Ok(stored) => return Ok(Some(stored)),
            Err(AgentError::Session(SessionError::Overwritten { .. } | SessionError::Conflict { .. }))
                if backoff.pause().await => {}
            Err(error) => return Err(error),
        }
    }
}

/// Tells in the session of this run what a transaction of the session that was copied has stored.
async fn repeat(context: &ReadonlyContext, outer: &Outer, stored: &Event) -> Result<Arc<Event>, AgentError> {
    let (invocation, frame) = (&context.invocation, &context.frame);
    let id = invocation.services.sessions.new_id();
    outer.note_stored(&id);
    let actions = EventActions::from_delta(stored.actions.state_delta.clone());
    let event = Event { id, ..Event::default() }.with_actions(actions);
    invocation.emit(frame, event.into()).await
}

/// The `temp:` keys of a state.
fn temporary(state: &State) -> Delta {
    let state = state.snapshot();
    state.iter().filter(|(key, _)| Scope::of(key).0 == Scope::Temp).collect()
}
