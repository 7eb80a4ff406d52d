//! The conversation as a model reads it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use sessile_session::{Compaction, Content, Event, FunctionResponse, Part, SessionEvent};

use crate::history::{is_long_running, newest_first};

/// The agent that reads, and how much it reads.
pub(super) struct Reader<'a> {
    pub(super) agent: &'a str,
    pub(super) branch: Option<&'a str>,
    pub(super) only_this_turn: bool,
    pub(super) thoughts_of_others: bool,
}

/// An entry of the conversation.
enum Said<'a> {
    Event(&'a Event),
    Other(Content),
    Summary(&'a Content),
}

impl Reader<'_> {
    /// The contents that the agent reads, oldest first.
    pub(super) fn contents(&self, events: &[SessionEvent]) -> Vec<Content> {
        let said = self.said(events);
        with_responses(said)
    }

    /// The events that the agent sees, and summaries instead of the events that they cover.
    fn said<'a>(&self, events: &'a [SessionEvent]) -> Vec<Said<'a>> {
        let mut said = Vec::new();
        let mut summaries: Vec<Summary<'a>> = Vec::new();
        for event in newest_first(events) {
            if let Some(compaction) = &event.actions.compaction {
                summaries.extend(
                    Summary::new(compaction).filter(|new| !summaries.iter().any(|old| old.holds(new))),
                );
                continue;
            }
            if let Some(summary) = summaries.iter_mut().find(|summary| summary.covers(event.time())) {
                said.extend(summary.content.take().map(Said::Summary));
                continue;
            }
            if !self.sees(event) {
                continue;
            }
            let is_own = event.author == self.agent || event.author == "user";
            match is_own {
                true => said.push(Said::Event(event)),
                false => said.extend(self.quoted(event).map(Said::Other)),
            }
            if self.only_this_turn && self.begins(event) {
                break;
            }
        }
        said.extend(summaries.into_iter().filter_map(|summary| summary.content).map(Said::Summary));
        said.reverse();
        said
    }

    /// Whether the turn that this agent answers begins with the event: it is by the user or another
    /// agent, and neither a tool's result nor a transfer.
    fn begins(&self, event: &Event) -> bool {
        event.author != self.agent
            && event.function_responses().next().is_none()
            && event.actions.transfer_to_agent.is_none()
            && (event.author == "user" || event.function_calls().next().is_none())
    }

    fn sees(&self, event: &Event) -> bool {
        let on_branch = match (self.branch, event.branch.as_deref()) {
            (Some(own), Some(other)) => {
                own.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            }
            _ => true,
        };
        on_branch
            && event.isolation_scope.is_none()
            && event.content.as_ref().is_some_and(|content| content.parts().iter().any(is_visible))
            && !is_protocol(event)
    }

    /// What another agent said and did, as a content of the user.
    fn quoted(&self, event: &Event) -> Option<Content> {
        let mut parts = vec![Part::text("For your information, this is what another agent said and did:")];
        let author = &event.author;
        for part in event.content.iter().flat_map(Content::parts) {
            let is_thought = part.thought == Some(true);
            if is_thought && !self.thoughts_of_others {
                continue;
            }
            if let Some(text) = part.text.as_deref().filter(|text| !text.trim().is_empty()) {
                parts.push(Part::text(format!("[{author}] said:\n{}", fenced(text))));
            } else if let Some(call) = &part.function_call {
                let name = call.name.as_deref().unwrap_or_default();
                let args = to_json(&call.args);
                parts.push(Part::text(format!(
                    "[{author}] called tool `{name}` with parameters:\n{}",
                    fenced(&args)
                )));
            } else if let Some(response) = &part.function_response {
                let name = response.name.as_deref().unwrap_or_default();
                let result = to_json(&response.response);
                parts.push(Part::text(format!(
                    "[{author}] `{name}` tool returned result:\n{}",
                    fenced(&result)
                )));
            } else if part.text.is_none() {
                parts.push(part.clone());
            }
        }
        (parts.len() > 1).then(|| Content {
            role: Some("user".to_owned()),
            parts: Some(parts),
            ..Content::default()
        })
    }
}

const BEGIN: &str = "<<<BEGIN_QUOTED_AGENT_CONTENT>>>";
const END: &str = "<<<END_QUOTED_AGENT_CONTENT>>>";

/// A text between marks, without the marks that it may hold itself.
fn fenced(text: &str) -> String {
    let mut text = Cow::Borrowed(text);
    for mark in [BEGIN, END] {
        if text.contains(mark) {
            text = Cow::Owned(text.replace(mark, ""));
        }
    }
    format!("{BEGIN}\n{text}\n{END}")
}

fn to_json(map: &Option<std::collections::BTreeMap<String, sessile_state::SharedValue>>) -> String {
    match map {
        Some(map) => serde_json::to_string(map).expect("shared values are JSON"),
        None => "{}".to_owned(),
    }
}

fn is_visible(part: &Part) -> bool {
    match &part.text {
        Some(text) => (!text.is_empty() && part.thought != Some(true)) || part.thought_signature.is_some(),
        None => *part != Part::default(),
    }
}

/// Whether the event is part of asking the user for a credential, a confirmation or an input.
fn is_protocol(event: &Event) -> bool {
    let calls = event.function_calls().filter_map(|call| call.name.as_deref());
    let responses = event.function_responses().filter_map(|response| response.name.as_deref());
    calls.chain(responses).any(|name| name.starts_with("adk_request_"))
}

struct Summary<'a> {
    start: f64,
    end: f64,
    /// Taken when the summary is put into the conversation.
    content: Option<&'a Content>,
}

impl<'a> Summary<'a> {
    fn new(compaction: &'a Compaction) -> Option<Self> {
        let (start, end) = (compaction.start_timestamp?, compaction.end_timestamp?);
        Some(Self { start, end, content: Some(compaction.compacted_content.as_ref()?) })
    }

    fn covers(&self, time: f64) -> bool {
        (self.start..=self.end).contains(&time)
    }

    fn holds(&self, other: &Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// Puts the newest response to each call directly after it. Responses without a call are left out,
/// and so are calls without a response, unless the tool is long-running or the call has no id.
fn with_responses(said: Vec<Said<'_>>) -> Vec<Content> {
    let mut responses: HashMap<&str, &FunctionResponse> = HashMap::new();
    for event in said.iter().filter_map(Said::event) {
        responses.extend(
            event.function_responses().filter_map(|response| Some((response.id.as_deref()?, response))),
        );
    }
    let mut answered: HashSet<&str> = HashSet::new();
    let mut contents = Vec::with_capacity(said.len());
    for said in &said {
        let event = match said {
            Said::Summary(content) => {
                contents.push((*content).clone());
                continue;
            }
            Said::Other(content) => {
                contents.push(content.clone());
                continue;
            }
            Said::Event(event) => event,
        };
        let Some(content) = &event.content else { continue };
        if event.function_responses().next().is_some() {
            let idless = event.function_responses().all(|response| response.id.is_none());
            if idless {
                contents.push(content.clone());
            }
            continue;
        }
        if event.function_calls().next().is_none() {
            contents.push(content.clone());
            continue;
        }
        let mut answers: Vec<Part> = Vec::new();
        let mut parts: Vec<Part> = Vec::with_capacity(content.parts().len());
        for part in content.parts() {
            let id = part.function_call.as_ref().and_then(|call| call.id.as_deref());
            let response = id.and_then(|id| responses.get(id));
            if let (Some(id), Some(response)) = (id, response)
                && answered.insert(id)
            {
                answers.push((*response).clone().into());
            }
            if id.is_none_or(|id| response.is_some() || is_long_running(event, id)) {
                parts.push(part.clone());
            }
        }
        if parts.iter().any(is_visible) {
            contents.push(Content { parts: Some(parts), role: content.role.clone(), ..Content::default() });
        }
        if !answers.is_empty() {
            contents.push(Content {
                role: Some("user".to_owned()),
                parts: Some(answers),
                ..Content::default()
            });
        }
    }
    contents
}

impl<'a> Said<'a> {
    fn event(&self) -> Option<&'a Event> {
        match self {
            Said::Event(event) => Some(event),
            Said::Other(_) | Said::Summary(_) => None,
        }
    }
}
