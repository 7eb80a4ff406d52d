use std::collections::BTreeMap;
use std::sync::Arc;

use sessile_session::{Content, Event, FunctionCall, FunctionResponse, Guards, Part};
use sessile_state::Recorded;

use super::{StoreLink, Waiting};
use crate::shared::Shared;
use crate::tool_call::{LiveToolCall, ToolResponse};
use crate::transcript::{LiveTurn, TurnItem};

impl StoreLink {
    /// The events of a turn; the last one carries the changes of state. Changes that must be
    /// committed earlier have events of their own before it.
    pub(super) fn events(
        &self,
        shared: &Shared,
        turn: &LiveTurn,
        complete: bool,
        earlier: Vec<Recorded>,
        last: Recorded,
    ) -> Vec<Waiting> {
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
        if events.is_empty() && !last.delta.is_empty() {
            events.push(Event::new(self.author.as_str()));
        }
        let mut waiting: Vec<Waiting> =
            events.into_iter().map(|event| Waiting { event, guards: Guards::default() }).collect();
        if let Some(carrier) = waiting.last_mut() {
            carrier.event.turn_complete = complete.then_some(true);
            carrier.event.interrupted = turn.interrupted.then_some(true);
            carrier.guards = self.guards(&last);
            carrier.event.actions.state_delta = last.delta;
        }
        let before_last = waiting.len().saturating_sub(1);
        let earlier = earlier.into_iter().filter(|recorded| !recorded.delta.is_empty());
        for (index, recorded) in earlier.enumerate() {
            let mut event = Event::new(self.author.as_str());
            let guards = self.guards(&recorded);
            event.actions.state_delta = recorded.delta;
            waiting.insert(before_last + index, Waiting { event, guards });
        }
        let invocation = format!("live-{}", shared.ids.new_id());
        let mut time = shared.clock.now();
        for Waiting { event, .. } in &mut waiting {
            event.id = shared.ids.new_id();
            event.invocation_id.clone_from(&invocation);
            event.timestamp = Some(time);
            time += 1e-6; // google-adk sorts events with equal times by id
        }
        waiting
    }

    /// The values that the session had read before it set or removed keys.
    fn guards(&self, recorded: &Recorded) -> Guards {
        let mut guards = Guards::new(self.changes.on_overwrite);
        for (key, read) in &recorded.reads {
            guards.insert(key.clone(), read.clone());
        }
        guards
    }

    fn event_for(&self, item: &TurnItem) -> Event {
        let (author, role) = match item {
            TurnItem::User(_) => ("user", "user"),
            TurnItem::Model(_) | TurnItem::Call(_) => (self.author.as_str(), "model"),
            TurnItem::Answer(_) => (self.author.as_str(), "user"),
        };
        Event::new(author).with_content(Content { role: Some(role.to_owned()), ..Content::default() })
    }
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

fn function_call(call: &Arc<LiveToolCall>) -> FunctionCall {
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
