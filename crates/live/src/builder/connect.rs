use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::LiveBuilder;
use crate::bus::Bus;
use crate::computed::ComputedVariables;
use crate::control::{ControlLane, ToolRuns, instruction};
use crate::error::LiveError;
use crate::event::LiveEvent;
use crate::handle::{Alive, LiveHandle};
use crate::inbox::{Control, inbox};
use crate::link::{Link, Opened};
use crate::phase::{PhaseMachine, PhaseTrigger};
use crate::shared::{Conversation, Ending, Shared, Wire};
use crate::signals::Signals;
use crate::store::{Restored, StoreLink, keys};
use crate::transport::{Transport, WebSocket};
use crate::watch::Watches;

/// The capacity of the queue of outgoing frames. When it is full, senders wait.
const OUTGOING: usize = 256;

/// Connecting.
impl LiveBuilder {
    /// Connects to Google AI with an API key.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_google_ai(self, key: &str) -> Result<LiveHandle, LiveError> {
        self.connect(WebSocket::google_ai(key)).await
    }

    /// Connects to Vertex AI with an access token.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_vertex(
        self,
        project: &str,
        location: &str,
        token: &str,
    ) -> Result<LiveHandle, LiveError> {
        self.connect(WebSocket::vertex(project, location, token)).await
    }

    /// Begins the session: checks the configuration, restores a stored session, connects, sends the
    /// setup, enters the first phase and calls `on_connected`.
    ///
    /// # Errors
    ///
    /// - [`LiveError::Invalid`] with every problem of the configuration; nothing was connected;
    /// - [`LiveError::Session`] if the stored session cannot be read or created;
    /// - [`LiveError::Transport`], [`LiveError::Refused`] or [`LiveError::Timeout`] if the server
    ///   cannot be reached, rejects the session or does not answer;
    /// - [`LiveError::Closed`] if the session ended at once.
    pub async fn connect(mut self, transport: impl Transport + 'static) -> Result<LiveHandle, LiveError> {
        let mut problems = Vec::new();
        self.check(&mut problems);
        self.check_platform(transport.platform(), &mut problems);
        let computed = ComputedVariables::new(std::mem::take(&mut self.computed), &mut problems);
        if !problems.is_empty() {
            return Err(LiveError::Invalid { problems });
        }
        let (store, restored) = match self.session.take() {
            Some((service, key)) => {
                let name = self.name.clone();
                let (store, restored) =
                    StoreLink::attach(service, key, name, &self.state, self.on_overwrite).await?;
                (Some(store), restored)
            }
            None => (None, Restored::default()),
        };
        let (ready, begun) = oneshot::channel();
        let (mut link, mut lane, alive) = self.assemble(Arc::new(transport), computed, store, restored)?;
        lane.ready = Some(ready);
        let shared = lane.shared.clone();
        let opened = link.open().await?;
        tokio::spawn(run_link(link, opened));
        tokio::spawn(run_lane(lane));
        begun.await.map_err(|_| LiveError::Closed)?;
        Ok(LiveHandle::new(shared, alive))
    }

    /// Builds the two lanes and what they share.
    fn assemble(
        self,
        transport: Arc<dyn Transport>,
        computed: ComputedVariables,
        store: Option<StoreLink>,
        restored: Restored,
    ) -> Result<(Link, ControlLane, Arc<Alive>), LiveError> {
        let (inbox, messages) = inbox();
        let (outgoing, to_send) = mpsc::channel(OUTGOING);
        let mut fast = self.fast;
        let mut patterns = self.patterns;
        let rates = patterns.iter_mut().enumerate();
        let rates = rates.filter_map(|(number, pattern)| Some((number, pattern.take_rate()?))).collect();
        let bus = Bus::new(std::mem::take(&mut fast.event), rates, inbox.clone());
        let shared = Arc::new(Shared {
            signals: Signals::new(self.state.clone()),
            bus,
            fast,
            inbox,
            wire: Wire::new(
                transport.platform().clone(),
                self.setup.voice_detection.as_ref().is_some_and(|detection| detection.disabled),
                self.input_rate,
                outgoing,
                restored.resume_handle,
            ),
            conversation: Conversation::new(PhaseMachine::new(self.phases, self.initial_phase)),
            ending: Ending::new(),
            lane: OnceLock::new(),
            clock: self.clock,
            ids: self.ids,
            state: self.state,
        });
        shared.signals.turn_count(restored.turns);
        enter_first_phase(&shared, restored.phase)?;
        let text = instruction(&shared, self.instruction.as_ref())
            .map_err(|problem| LiveError::Invalid { problems: vec![problem] })?;
        shared.conversation.replace_instruction(text);
        let link = Link {
            shared: shared.clone(),
            transport,
            tools: self
                .tools
                .iter()
                .map(|tool| (tool.declaration.clone(), tool.background.is_some()))
                .collect(),
            setup: self.setup,
            timing: self.timing,
            outgoing: to_send,
            unsent: None,
            stop: shared.ending.stop_requested(),
        };
        let alive = Arc::new(Alive::new(shared.clone()));
        let lane = ControlLane {
            messages,
            callbacks: self.callbacks,
            tools: self.tools.into_iter().map(|tool| (tool.name().to_owned(), tool)).collect(),
            computed,
            watches: Watches::new(self.watches, &shared.state),
            patterns,
            extractors: self.extractors,
            instruction: self.instruction,
            greeting: self.greeting,
            store,
            ending: None,
            turns: restored.turns,
            restored: restored.existed && restored.turns > 0,
            alive: Arc::downgrade(&alive),
            ready: None,
            runs: ToolRuns::default(),
            aside: JoinSet::new(),
            shared,
        };
        Ok((link, lane, alive))
    }
}

/// Enters the first phase, or the stored one.
fn enter_first_phase(shared: &Shared, stored: Option<String>) -> Result<(), LiveError> {
    let mut phases = shared.conversation.phases();
    let Some(phases) = &mut *phases else { return Ok(()) };
    let turn = shared.state.get(keys::TURN_COUNT).unwrap_or(0);
    let (phase, trigger) = match stored {
        Some(phase) if phases.contains(&phase) => (phase, PhaseTrigger::Restored),
        _ => (phases.initial().to_owned(), PhaseTrigger::Start),
    };
    phases.go(&phase, turn, trigger);
    shared.state.try_set(keys::PHASE, &phase)?;
    Ok(())
}

/// Runs the network lane. A panic in a callback ends the session with an error.
async fn run_link(link: Link, opened: Opened) {
    let shared = link.shared.clone();
    if AssertUnwindSafe(link.run(opened)).catch_unwind().await.is_err() {
        let reason = shared.report("a synchronous callback panicked; the session is over");
        shared.signals.disconnected();
        shared.inbox.tell(Control::Disconnected(Some(reason)));
    }
}

/// Runs the control lane, and announces the end of the session.
async fn run_lane(mut lane: ControlLane) {
    let shared = lane.shared.clone();
    if let Some(task) = tokio::task::try_id() {
        shared.lane.get_or_init(|| task);
    }
    let reason = match AssertUnwindSafe(lane.run()).catch_unwind().await {
        Ok(reason) => reason,
        Err(_) => {
            let reason = shared.report("a callback panicked; the session is over");
            shared.ending.stop();
            let lost = lane.abandon_calls("the session ended before the tool answered");
            let lost = AssertUnwindSafe(lost).catch_unwind().await;
            let stored = AssertUnwindSafe(lane.store_rest()).catch_unwind().await;
            if lost.is_err() || stored.is_err() {
                shared.report("a callback panicked again while the rest of the session was stored");
            }
            Some(reason)
        }
    };
    drop(lane);
    shared.ending.stop();
    shared.bus.emit(LiveEvent::Disconnected { reason: reason.clone() });
    shared.bus.close();
    shared.ending.end(reason);
}
