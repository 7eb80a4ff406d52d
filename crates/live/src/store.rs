//! A live session as a stored one: at the end of each turn what was said, called and changed becomes events.

use std::collections::BTreeMap;
use std::sync::Arc;

use sessile_session::{
    Content, CreateSession, Event, EventWindow, FunctionCall, FunctionResponse, Part, SessionError,
    SessionKey, SessionService,
};
use sessile_state::{Change, Delta, SharedValue, State};

use crate::shared::{Shared, lock};
use crate::tool::{ToolCall, ToolResponse};
use crate::transcript::{Turn, TurnItem};

/// The keys in which a session keeps what it needs to go on later.
pub(crate) mod keys {
    /// The phase of the conversation.
    pub(crate) const PHASE: &str = "live:phase";
    /// How many turns were complete.
    pub(crate) const TURN_COUNT: &str = "live:turn_count";
    /// The handle with which the server goes on with the conversation.
    pub(crate) const RESUME_HANDLE: &str = "live:resume_handle";
}

/// The stored session that a live one is attached to.
pub(crate) struct StoreLink {
    service: SessionService,
    key: SessionKey,
    /// Who the model is, as the author of events.
    author: String,
    /// What the store holds, as far as this session knows.
    stored: BTreeMap<String, SharedValue>,
    /// Events that are not stored yet, oldest first. Each stays as it is until it is: should it have been stored without our
    /// hearing of it, the same event again changes nothing.
    waiting: Vec<Event>,
    /// Keys that cannot be stored, and the values that they have: told once, not with every turn.
    refused: BTreeMap<String, SharedValue>,
}

/// What a session goes on from.
#[derive(Default)]
pub(crate) struct Restored {
    /// Whether there was a session.
    pub(crate) existed: bool,
    pub(crate) phase: Option<String>,
    pub(crate) turns: u32,
    pub(crate) resume_handle: Option<String>,
}

impl StoreLink {
    /// Reads the session, or makes it, and fills `state` from it.
    pub(crate) async fn attach(
        service: SessionService,
        key: SessionKey,
        author: String,
        state: &State,
    ) -> Result<(Self, Restored), SessionError> {
        let (session, existed) = match service.get(&key, EventWindow::NONE).await? {
            Some(session) => (session, true),
            None => {
                let new = CreateSession::new(key.app(), key.user()).with_id(key.id());
                match service.create(new).await {
                    Ok(session) => (session, false),
                    // Somebody made it just now.
                    Err(SessionError::AlreadyExists { key }) => {
                        let session = service.get(&key, EventWindow::NONE).await?;
                        (session.ok_or(SessionError::NotFound { key })?, true)
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        let stored: BTreeMap<_, _> = session
            .state()
            .iter()
            .filter(|(key, _)| is_stored(key))
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect();
        let restored = Restored {
            existed,
            phase: session.state().get(keys::PHASE),
            turns: session.state().get(keys::TURN_COUNT).unwrap_or(0),
            resume_handle: session.state().get(keys::RESUME_HANDLE),
        };
        let delta: Delta = stored.iter().map(|(key, value)| (key, value.clone())).collect();
        state.try_apply(&delta).map_err(|error| SessionError::Backend {
            action: "fill the live session's state",
            source: Box::new(error),
        })?;
        Ok((Self { service, key, author, stored, waiting: Vec::new(), refused: BTreeMap::new() }, restored))
    }

    /// Stores a turn and what changed, and takes in what others changed meanwhile. Returns what went wrong; that is tried
    /// again with the next turn.
    pub(crate) async fn commit(&mut self, shared: &Shared, turn: &Turn, complete: bool) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(handle) = lock(&shared.resume).clone()
            && let Err(error) = shared.state.try_set(keys::RESUME_HANDLE, handle)
        {
            problems.push(format!("the handle of the conversation cannot be noted: {error}"));
        }
        self.waiting.extend(self.events(shared, turn, complete));
        if let Err(error) = self.store_waiting(shared, &mut problems).await {
            problems.push(format!("the turn is not stored yet, and is tried again: {error}"));
            return problems;
        }
        if let Err(error) = self.take_in(&shared.state).await {
            problems.push(format!("what others changed in the session cannot be read: {error}"));
        }
        problems
    }

    /// The events of a turn; the last carries what changed.
    fn events(&self, shared: &Shared, turn: &Turn, complete: bool) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        let mut kind = None;
        for item in &turn.items {
            let this = std::mem::discriminant(item);
            if kind != Some(this) {
                events.push(self.event_for(item));
                kind = Some(this);
            }
            let content = events.last_mut().and_then(|event| event.content.as_mut());
            if let Some(content) = content {
                content.parts.get_or_insert_default().push(part(item));
            }
        }
        let delta = self.delta(&shared.state);
        if !delta.is_empty() {
            if events.is_empty() {
                events.push(Event::new(self.author.as_str()));
            }
            if let Some(last) = events.last_mut() {
                last.set_delta(&delta);
            }
        }
        if let Some(last) = events.last_mut() {
            last.turn_complete = complete.then_some(true);
            last.interrupted = turn.interrupted.then_some(true);
        }
        let invocation = format!("live-{}", shared.ids.new_id());
        let mut time = shared.clock.now();
        for event in &mut events {
            event.id = shared.ids.new_id();
            event.invocation_id.clone_from(&invocation);
            event.timestamp = time;
            time += 1e-6; // google-adk puts events of one time in the order of their ids
        }
        events
    }

    fn event_for(&self, item: &TurnItem) -> Event {
        let (author, role) = match item {
            TurnItem::User(_) => ("user", "user"),
            TurnItem::Model(_) | TurnItem::Call(_) => (self.author.as_str(), "model"),
            TurnItem::Answer(_) => (self.author.as_str(), "user"),
        };
        Event::new(author).with_content(Content { role: Some(role.to_owned()), ..Content::default() })
    }

    /// What is in state and not in the store, and the other way round.
    fn delta(&self, state: &State) -> Delta {
        let mut stored = self.stored.clone();
        for event in &self.waiting {
            apply(&mut stored, &event.delta());
        }
        let now = state.snapshot();
        let mut delta = Delta::new();
        for (key, value) in now.iter().filter(|(key, _)| is_stored(key)) {
            let before = stored.remove(key);
            if before.as_ref() != Some(&value) && self.refused.get(key) != Some(&value) {
                delta.set(key, value);
            }
        }
        stored.into_keys().for_each(|key| delta.remove(key));
        delta
    }

    async fn store_waiting(
        &mut self,
        shared: &Shared,
        problems: &mut Vec<String>,
    ) -> Result<(), SessionError> {
        while let Some(event) = self.waiting.first_mut() {
            match self.service.append_to(&self.key, event.clone()).await {
                Ok(_) => {
                    let event = self.waiting.remove(0);
                    apply(&mut self.stored, &event.delta());
                }
                // One key must not keep the rest from being stored.
                Err(SessionError::InvalidState { key, reason }) => {
                    problems.push(format!("the state key {key:?} is not stored: {reason}"));
                    let mut delta = event.delta();
                    let Some(Change::Set(value)) = delta.get(&key).cloned() else {
                        return Err(SessionError::InvalidState { key, reason });
                    };
                    delta.retain(|other| other != key);
                    event.set_delta(&delta);
                    event.id = shared.ids.new_id();
                    self.refused.insert(key, value);
                }
                // Nor what was said keep what comes after it.
                Err(SessionError::InvalidEvent { reason, .. }) if event.content.is_some() => {
                    problems.push(format!("what was said in this part of the turn is not stored: {reason}"));
                    event.content = None;
                    event.id = shared.ids.new_id();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Brings into state what others changed, where this session did not change it itself.
    async fn take_in(&mut self, state: &State) -> Result<(), SessionError> {
        let Some(session) = self.service.get(&self.key, EventWindow::NONE).await? else {
            return Err(SessionError::NotFound { key: self.key.clone() });
        };
        let theirs: BTreeMap<&str, &SharedValue> =
            session.state().iter().filter(|(key, _)| is_stored(key)).collect();
        let mut delta = Delta::new();
        for (key, value) in &theirs {
            if self.stored.get(*key) != Some(*value) {
                delta.set(*key, (*value).clone());
            }
        }
        for key in self.stored.keys().filter(|key| !theirs.contains_key(key.as_str())) {
            delta.remove(key);
        }
        delta.retain(|key| state.get_raw(key) == self.stored.get(key).cloned());
        state.try_apply(&delta).map_err(|error| SessionError::Backend {
            action: "bring the state up to date",
            source: Box::new(error),
        })?;
        apply(&mut self.stored, &delta);
        Ok(())
    }
}

fn apply(map: &mut BTreeMap<String, SharedValue>, delta: &Delta) {
    for (key, change) in delta.iter() {
        match change {
            Change::Set(value) => drop(map.insert(key.to_owned(), value.clone())),
            Change::Remove => drop(map.remove(key)),
        }
    }
}

/// Whether a key outlives the live session.
fn is_stored(key: &str) -> bool {
    !["session:", "turn:", "derived:", "temp:"].iter().any(|prefix| key.starts_with(prefix))
}

fn part(item: &TurnItem) -> Part {
    match item {
        TurnItem::User(text) | TurnItem::Model(text) => Part::text(text),
        TurnItem::Call(call) => Part { function_call: Some(function_call(call).into()), ..Part::default() },
        TurnItem::Answer(answer) => {
            Part { function_response: Some(function_response(answer).into()), ..Part::default() }
        }
    }
}

fn id(id: &str) -> Option<String> {
    (!id.is_empty()).then(|| id.to_owned())
}

fn function_call(call: &Arc<ToolCall>) -> FunctionCall {
    let args = call.args.iter().map(|(name, value)| (name.clone(), value.clone().into()));
    FunctionCall {
        id: id(&call.id),
        name: Some(call.name.clone()),
        args: Some(args.collect()),
        ..FunctionCall::default()
    }
}

fn function_response(answer: &Arc<ToolResponse>) -> FunctionResponse {
    let fields = match answer.response.as_object() {
        Some(object) => object.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect(),
        None => BTreeMap::from([("result".to_owned(), answer.response.clone().into())]),
    };
    FunctionResponse {
        id: id(&answer.id),
        name: Some(answer.name.clone()),
        response: Some(fields),
        scheduling: answer.scheduling.map(|scheduling| scheduling.name().to_owned()),
        ..FunctionResponse::default()
    }
}
