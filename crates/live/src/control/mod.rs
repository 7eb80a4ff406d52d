//! The control lane: everything that may take time, one thing after the other, in the order of the
//! wire.
//!
//! Whenever something may have changed state, the session [settles](settle): computed variables,
//! watches, guards.

mod extract;
mod phases;
mod settle;
mod tools;
mod turn_end;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::callbacks::Callbacks;
use crate::computed::ComputedVariables;
use crate::event::LiveEvent;
use crate::extract::{Extractor, Trigger};
use crate::handle::{Alive, LiveHandle};
use crate::inbox::{Control, Messages};
use crate::pattern::Pattern;
use crate::phase::Instruction;
use crate::shared::{EndReason, Shared};
use crate::store::StoreLink;
use crate::tool::LiveTool;
use crate::transcript::LiveTurn;
use crate::watch::Watches;
use crate::wire;
pub(crate) use phases::instruction;
use sessile_session::Content;
pub(crate) use tools::ToolRuns;

/// The control lane of one session.
pub(crate) struct ControlLane {
    pub(crate) shared: Arc<Shared>,
    pub(crate) messages: Messages,
    pub(crate) callbacks: Callbacks,
    pub(crate) tools: BTreeMap<String, LiveTool>,
    pub(crate) computed: ComputedVariables,
    pub(crate) watches: Watches,
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) extractors: Vec<Extractor>,
    /// The instruction of the session, which applies in every phase.
    pub(crate) instruction: Option<Instruction>,
    pub(crate) greeting: Option<String>,
    pub(crate) store: Option<StoreLink>,
    /// A turn that has ended, but is not stored yet.
    pub(crate) ending: Option<Arc<LiveTurn>>,
    /// Complete turns, those of earlier connections included.
    pub(crate) turns: u32,
    /// Whether the session continues a stored one.
    pub(crate) restored: bool,
    /// To make the handle for `on_connected`. Weak, because a handle keeps the session alive.
    pub(crate) alive: Weak<Alive>,
    /// Completes `connect` once the session has begun.
    pub(crate) ready: Option<oneshot::Sender<()>>,
    pub(crate) runs: ToolRuns,
    /// Actions that the conversation does not wait for.
    pub(crate) aside: JoinSet<()>,
}

impl ControlLane {
    /// Processes messages until the session is over, and returns why.
    pub(crate) async fn run(&mut self) -> EndReason {
        loop {
            tokio::select! {
                message = self.messages.next() => match message {
                    Some(Control::Disconnected(reason)) => {
                        self.disconnected(reason.clone()).await;
                        return reason;
                    }
                    Some(message) => self.handle(message).await,
                    None => return None,
                },
                Some(finished) = self.runs.next() => self.tool_finished(finished).await,
                Some(result) = self.aside.join_next() => {
                    if let Err(error) = result {
                        self.problem(format!("an action failed: {error}")).await;
                    }
                    self.settle().await;
                }
            }
        }
    }

    async fn handle(&mut self, message: Control) {
        match message {
            Control::Connected { resumed } => self.connected(resumed).await,
            Control::UserText(text) => self.shared.conversation.transcript().user(&text),
            Control::ModelText(text) => self.shared.conversation.transcript().model(&text),
            Control::ToolCalls { calls, conversation } => self.tool_calls(calls, conversation).await,
            Control::ToolCancellation(ids) => self.cancel(&ids).await,
            Control::Interrupted => {
                self.shared.conversation.transcript().interrupted();
                if let Some(callback) = &self.callbacks.interrupted {
                    callback(self.shared.state.clone()).await;
                    self.settle().await;
                }
            }
            Control::GenerationComplete => {
                self.extract(|trigger| trigger == Trigger::OnGenerationComplete).await;
                self.settle().await;
            }
            Control::TurnComplete => self.turn_end().await,
            Control::GoAway(time_left) => {
                if let Some(callback) = &self.callbacks.go_away {
                    callback(time_left).await;
                    self.settle().await;
                }
            }
            Control::Error(message) => self.tell_error(message).await,
            Control::Fired(number) => self.fired(number),
            Control::Tick => self.settle().await,
            Control::Transition(phase, reply) => self.forced_transition(phase, reply).await,
            Control::Instruction(text) => {
                self.instruction = Some(Instruction::text(&text));
                self.refresh_instruction().await;
            }
            Control::Disconnected(_) => unreachable!("the loop above ends with it"),
        }
    }

    async fn connected(&mut self, resumed: bool) {
        let first = self.ready.take();
        if first.is_some() {
            self.begin().await;
        } else if !resumed {
            self.abandon_calls("the connection was lost before the tool answered").await;
        }
        if let (Some(callback), Some(alive)) = (&self.callbacks.connected, self.alive.upgrade()) {
            callback(LiveHandle::new(self.shared.clone(), alive)).await;
        }
        self.settle().await;
        if let Some(ready) = first {
            let fresh = !resumed && !self.restored;
            if let Some(greeting) = self.greeting.as_ref().filter(|_| fresh) {
                self.send(wire::content(&[Content::text("user", greeting)], true)).await;
            }
            if ready.send(()).is_err() {
                tracing::debug!("the future of `connect` was dropped");
            }
        }
    }

    async fn disconnected(&mut self, reason: EndReason) {
        if let Some(ready) = self.ready.take() {
            drop(ready);
        }
        self.abandon_calls("the session ended before the tool answered").await;
        self.settle().await;
        self.store_rest().await;
        if let Some(callback) = &self.callbacks.disconnected {
            callback(reason).await;
        }
        self.aside.shutdown().await;
    }

    /// Sends a frame. It is dropped after the end of the session.
    async fn send(&self, frame: wire::Outgoing) {
        if self.shared.wire.send(frame).await.is_err() {
            tracing::debug!("frame dropped: the session is over");
        }
    }

    /// Reports a problem, and calls `on_error`.
    async fn problem(&self, message: String) {
        let message = self.shared.report(message);
        self.tell_error(message).await;
    }

    async fn tell_error(&self, message: Arc<str>) {
        if let Some(callback) = &self.callbacks.error {
            callback(message).await;
        }
    }

    fn emit(&self, event: LiveEvent) {
        self.shared.bus.emit(event);
    }
}
