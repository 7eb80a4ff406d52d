//! Begins a run: from a request to the agent that answers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sessile_session::{
    Append, Content, CreateSession, Event, EventActions, EventWindow, Guards, InvalidId, Session,
    SessionError, SessionEvent, SessionKey,
};
use tokio::sync::RwLock;

use super::run_agents::run_agents;
use super::{Inner, recover};
use crate::agent::Agent;
use crate::agent::tree::Tree;
use crate::context::{Frame, Invocation, InvocationContext, ReadonlyContext};
use crate::error::{AgentError, RunError};
use crate::event_queue::EventQueue;
use crate::history::{ABORTED, call_event, newest_first};
use crate::run_request::{RunConfig, RunRequest};
use crate::turn::{Busy, Turn};

/// The number of events to read if no agent looks back on earlier turns: enough to find the agent
/// that answers, and the calls that an interrupted run left open.
const LAST_EVENTS: usize = 50;

impl Inner {
    pub(super) async fn begin_run(
        self: Arc<Self>,
        key: Result<SessionKey, InvalidId>,
        request: RunRequest,
        queue: Arc<EventQueue>,
        turn: Arc<Turn>,
    ) -> Result<(), RunError> {
        let key = key.map_err(SessionError::from)?;
        let message = request.message.map(checked).transpose()?;
        if let Err(Busy) = self.seats.take(&key, &turn, self.when_busy).await {
            return Err(RunError::Busy { key });
        }
        let (session, whole) = self.load(&key, &request.config).await?;
        let run = Invocation {
            id: String::new(),
            user_content: message,
            config: request.config,
            services: self.services.clone(),
            tree: self.tree.clone(),
            turn,
            queue,
            state: session.state().to_state(),
            session: Arc::new(RwLock::new(session)),
            whole: AtomicBool::new(whole),
            model_calls: self.model_calls.clone().unwrap_or_default(),
            key: key.clone(),
        };
        let ids = (request.invocation_id, request.new_invocation_id);
        match self.run(run, ids, request.state_delta, request.guards).await {
            Ok(()) => Ok(()),
            Err(Ended::Refused(error)) => Err(error),
            Err(Ended::Failed(error)) => Err(run_error(error, key)),
        }
    }

    async fn run(
        &self,
        mut run: Invocation,
        (invocation_id, new_id): (Option<String>, Option<String>),
        delta: sessile_state::Delta,
        guards: Guards,
    ) -> Result<(), Ended> {
        let answered: BTreeSet<&str> = run.user_content.iter().flat_map(response_ids).collect();
        let mut answers = self.answered_call(&run, &answered).await?;
        let root = Frame::root(run.state.clone(), self.rules.clone());
        let interrupted = recover::interrupted(run.session.read().await.events(), &answered);
        for event in interrupted {
            run.commit(&root, event.into()).await?;
        }
        let goes_on = invocation_id.is_some();
        let resumed = answers.as_mut().map(|call| std::mem::take(&mut call.invocation_id));
        run.id = match invocation_id.or(resumed) {
            Some(id) => id,
            None => new_id.unwrap_or_else(|| format!("e-{}", self.services.sessions.new_id())),
        };
        let agent = match &answers {
            Some(call) => self.tree.find(&call.author).unwrap_or(self.tree.root()).clone(),
            None => who_answers(&self.tree, run.session.read().await.events()),
        };
        let mut event = Event::new("user").with_actions(EventActions::from_delta(delta));
        event.content.clone_from(&run.user_content);
        event.branch = answers.and_then(|call| call.branch);
        if event.content.is_some() || !event.actions.state_delta.is_empty() {
            let append = Append::new(event).guarded(guards);
            self.commit_message(&run, &root, append, goes_on).await?;
        }
        let ctx = InvocationContext { context: ReadonlyContext { invocation: Arc::new(run), frame: root } };
        Ok(run_agents(&ctx, agent).await?)
    }

    /// Stores the message, unless it is stored already because an invocation is continued.
    async fn commit_message(
        &self,
        run: &Invocation,
        root: &Arc<Frame>,
        mut append: Append,
        goes_on: bool,
    ) -> Result<(), AgentError> {
        let event = &mut append.event;
        let is_same = |other: &SessionEvent| {
            other.author == "user" && other.invocation_id == run.id && other.content == event.content
        };
        let is_stored =
            goes_on && event.content.is_some() && run.session.read().await.events().iter().any(is_same);
        if is_stored && event.actions.state_delta.is_empty() {
            return Ok(());
        }
        if is_stored {
            event.content = None;
        }
        if run.config.yield_user_message {
            run.emit(root, append).await?;
        } else {
            append.event = run.complete(root, append.event);
            run.commit(root, append).await?;
        }
        Ok(())
    }

    async fn load(&self, key: &SessionKey, config: &RunConfig) -> Result<(Session, bool), RunError> {
        let is_unlimited = config.window == EventWindow::ALL;
        let window = match is_unlimited && !self.tree.root().reads_history() {
            true => EventWindow::last(LAST_EVENTS),
            false => config.window,
        };
        let sessions = &self.services.sessions;
        let session = match sessions.get(key, window).await? {
            Some(session) => session,
            None if self.auto_create => {
                match sessions.create(CreateSession::new(key.app(), key.user()).with_id(key.id())).await {
                    // Another process created it in the meantime: use that session.
                    Err(SessionError::AlreadyExists { .. }) => {
                        let session = sessions.get(key, window).await?;
                        session.ok_or_else(|| SessionError::NotFound { key: key.clone() })?
                    }
                    created => created?,
                }
            }
            None => return Err(SessionError::NotFound { key: key.clone() }.into()),
        };
        let whole = window == config.window || session.version() <= LAST_EVENTS as u64;
        Ok((session, whole))
    }

    /// The event whose calls a message answers.
    async fn answered_call(
        &self,
        run: &Invocation,
        ids: &BTreeSet<&str>,
    ) -> Result<Option<AnsweredCall>, Ended> {
        let mut found: Option<AnsweredCall> = None;
        for id in ids {
            let mut call = find_call(&*run.session.read().await, id);
            if call.is_none() {
                run.load_all().await?;
                call = find_call(&*run.session.read().await, id);
            }
            let Some(call) = call else {
                return Err(invalid(format!("it answers the call {id:?}, and the session has no such call")));
            };
            if found.as_ref().is_some_and(|first| first.invocation_id != call.invocation_id) {
                return Err(invalid(
                    "it answers calls of different invocations; answer them one by one".to_owned(),
                ));
            }
            found = Some(call);
        }
        Ok(found)
    }
}

/// Why a run ended.
enum Ended {
    Refused(RunError),
    Failed(AgentError),
}

impl From<AgentError> for Ended {
    fn from(error: AgentError) -> Self {
        Self::Failed(error)
    }
}

struct AnsweredCall {
    invocation_id: String,
    author: String,
    branch: Option<String>,
}

fn find_call(session: &Session, id: &str) -> Option<AnsweredCall> {
    let event = call_event(session.events(), id)?;
    Some(AnsweredCall {
        invocation_id: event.invocation_id.clone(),
        author: event.author.clone(),
        branch: event.branch.clone(),
    })
}

fn invalid(reason: String) -> Ended {
    Ended::Refused(RunError::InvalidMessage { reason })
}

/// The message with the role of the user, if it can be answered.
fn checked(message: Content) -> Result<Content, RunError> {
    let invalid = |reason: &str| Err(RunError::InvalidMessage { reason: reason.to_owned() });
    let parts = message.parts();
    if parts.iter().any(|part| part.function_call.is_some()) {
        return invalid("it calls a tool; only models do, users answer with function responses");
    }
    let answers = parts.iter().filter(|part| part.function_response.is_some()).count();
    if answers > 0 && answers < parts.len() {
        return invalid("it mixes function responses with other parts; send them in messages of their own");
    }
    if parts.iter().filter_map(|part| part.function_response.as_deref()).any(|response| response.id.is_none())
    {
        return invalid("a function response has no id; repeat the id of the call that it answers");
    }
    Ok(Content { role: Some("user".to_owned()), ..message })
}

fn response_ids(message: &Content) -> impl Iterator<Item = &str> {
    message.parts().iter().filter_map(|part| part.function_response.as_deref()?.id.as_deref())
}

/// The agent that continues a conversation: the one that answered last, if it may
/// continue the conversation.
fn who_answers(tree: &Tree, events: &[SessionEvent]) -> Arc<dyn Agent> {
    let root = tree.root();
    for event in newest_first(events) {
        if event.author == "user" || event.error_code.as_deref() == Some(ABORTED) {
            continue;
        }
        let handed_to = event.actions.transfer_to_agent.as_deref().and_then(|target| tree.find(target));
        if let Some(target) = handed_to.filter(|target| may_continue(tree, target)) {
            return target.clone();
        }
        if event.content.is_none() {
            continue;
        }
        if event.author == root.name() {
            return root.clone();
        }
        if let Some(author) = tree.find(&event.author).filter(|author| may_continue(tree, author)) {
            return author.clone();
        }
    }
    root.clone()
}

/// Whether an agent may continue the conversation: it and all agents above it can transfer to their
/// parents, so the conversation can leave it again.
fn may_continue(tree: &Tree, agent: &Arc<dyn Agent>) -> bool {
    let mut agent = Some(agent);
    while let Some(here) = agent {
        if !here.as_llm().is_some_and(|llm| llm.may_transfer_to_parent()) {
            return false;
        }
        agent = tree.parent(here.name());
    }
    true
}

fn run_error(error: AgentError, key: SessionKey) -> RunError {
    match error {
        AgentError::Cancelled => RunError::Cancelled { key },
        AgentError::Session(error) => RunError::Session(error),
        AgentError::LimitExceeded { limit } => RunError::LimitExceeded { limit },
        AgentError::Failed { agent, code, message, source } => match *source {
            AgentError::LimitExceeded { limit } => RunError::LimitExceeded { limit },
            source => RunError::Agent { agent, code, message, source: Box::new(source) },
        },
        error => {
            let (code, message) = (error.code().to_owned(), error.to_string());
            RunError::Agent { agent: String::new(), code, message, source: Box::new(error) }
        }
    }
}
