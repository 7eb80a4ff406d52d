use std::collections::VecDeque;
use std::sync::Arc;

use crate::tool_call::{LiveToolCall, ToolResponse};

/// One turn of a conversation: its messages and tool calls, in order.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct LiveTurn {
    /// Its number, from 1.
    pub number: u32,
    /// What happened, in order.
    pub items: Vec<TurnItem>,
    /// Whether the user interrupted the model; the items until then are kept.
    pub interrupted: bool,
}

/// One thing that happened in a turn.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TurnItem {
    /// The user said or wrote this.
    User(String),
    /// The model said or wrote this.
    Model(String),
    /// The model called a tool.
    Call(Arc<LiveToolCall>),
    /// A tool call was answered.
    Answer(Arc<ToolResponse>),
}

impl LiveTurn {
    /// The whole text of the user.
    pub fn user(&self) -> String {
        self.said(|item| match item {
            TurnItem::User(text) => Some(text),
            _ => None,
        })
    }

    /// The whole text of the model.
    pub fn model(&self) -> String {
        self.said(|item| match item {
            TurnItem::Model(text) => Some(text),
            _ => None,
        })
    }

    /// Whether nothing happened in it.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn said(&self, text: impl Fn(&TurnItem) -> Option<&String>) -> String {
        self.items.iter().filter_map(text).map(String::as_str).collect()
    }
}

/// The current turn, and the last ones before it.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    current: LiveTurn,
    past: VecDeque<Arc<LiveTurn>>,
}

/// How many past turns are kept, so that memory stays bounded however long a session lasts.
const KEPT: usize = 50;

impl Transcript {
    pub(crate) fn user(&mut self, piece: &str) {
        match self.current.items.last_mut() {
            Some(TurnItem::User(text)) => text.push_str(piece),
            _ if piece.is_empty() => {}
            _ => self.current.items.push(TurnItem::User(piece.to_owned())),
        }
    }

    pub(crate) fn model(&mut self, piece: &str) {
        match self.current.items.last_mut() {
            Some(TurnItem::Model(text)) => text.push_str(piece),
            _ if piece.is_empty() => {}
            _ => self.current.items.push(TurnItem::Model(piece.to_owned())),
        }
    }

    pub(crate) fn call(&mut self, call: Arc<LiveToolCall>) {
        self.current.items.push(TurnItem::Call(call));
    }

    pub(crate) fn answer(&mut self, response: Arc<ToolResponse>) {
        self.current.items.push(TurnItem::Answer(response));
    }

    pub(crate) fn interrupted(&mut self) {
        self.current.interrupted = true;
    }

    /// Ends the current turn. An empty one is not kept.
    pub(crate) fn end(&mut self, number: u32) -> Arc<LiveTurn> {
        let turn = Arc::new(LiveTurn { number, ..std::mem::take(&mut self.current) });
        if !turn.is_empty() {
            if self.past.len() == KEPT {
                self.past.pop_front();
            }
            self.past.push_back(turn.clone());
        }
        turn
    }

    /// The last turns that ended, oldest first.
    pub(crate) fn last(&self, count: usize) -> Vec<Arc<LiveTurn>> {
        self.past.iter().skip(self.past.len().saturating_sub(count)).cloned().collect()
    }

    /// The last turns including the current one.
    pub(crate) fn last_with_current(&self, count: usize) -> Vec<Arc<LiveTurn>> {
        if self.current.is_empty() {
            return self.last(count);
        }
        let mut turns = self.last(count.saturating_sub(1));
        turns.push(Arc::new(self.current.clone()));
        turns
    }
}
