//! Transitions between phases, and the instruction of the current one.

use std::sync::Arc;

use sessile_session::Content;
use tokio::sync::oneshot;

use super::ControlLane;
use crate::error::LiveError;
use crate::event::LiveEvent;
use crate::extract::Trigger;
use crate::phase::{Instruction, PhaseTrigger};
use crate::shared::Shared;
use crate::store::keys;
use crate::wire;

impl ControlLane {
    /// Announces the phase in which the session begins, and runs its hook unless it was restored.
    pub(super) async fn begin(&mut self) {
        let (change, hook) = {
            let phases = self.shared.conversation.phases();
            let Some(phases) = &*phases else { return };
            let hook = (!self.restored).then(|| phases.enter(&self.shared.state)).flatten();
            (phases.history().pop(), hook)
        };
        if let Some(change) = change {
            self.emit(LiveEvent::Phase(Arc::new(change)));
        }
        if let Some(hook) = hook {
            hook.await;
        }
    }

    /// Moves to another phase.
    pub(super) async fn transition(&mut self, to: &str, trigger: PhaseTrigger) {
        let state = self.shared.state.clone();
        let exit = self.shared.conversation.phases().as_ref().and_then(|phases| phases.exit(&state));
        if let Some(hook) = exit {
            hook.await;
        }
        let (change, enter, prompts) = {
            let mut phases = self.shared.conversation.phases();
            let Some(phases) = &mut *phases else { return };
            let change = phases.go(to, self.turns, trigger);
            (change, phases.enter(&state), phases.prompts())
        };
        if let Err(error) = state.try_set(keys::PHASE, to) {
            self.problem(format!("the phase {to:?} cannot be written to state: {error}")).await;
        }
        self.emit(LiveEvent::Phase(Arc::new(change)));
        if let Some(hook) = enter {
            hook.await;
        }
        self.recompute().await;
        self.refresh_instruction().await;
        if prompts {
            self.send(wire::content(&[], true)).await;
        }
        self.extract(|trigger| trigger == Trigger::OnPhaseChange).await;
        self.recompute().await;
    }

    /// Moves to a phase on request of the application.
    pub(super) async fn forced_transition(
        &mut self,
        phase: String,
        reply: oneshot::Sender<Result<(), LiveError>>,
    ) {
        let known = self.shared.conversation.phases().as_ref().is_some_and(|phases| phases.contains(&phase));
        let result = if known {
            self.transition(&phase, PhaseTrigger::Forced).await;
            self.settle().await;
            Ok(())
        } else {
            Err(LiveError::NotPossible(format!("there is no phase {phase:?}; declare it with `phase`")))
        };
        if reply.send(result).is_err() {
            tracing::debug!("the caller of `transition` is gone");
        }
    }

    /// Sends the instruction to the model, if it has changed.
    pub(super) async fn refresh_instruction(&mut self) {
        let text = match instruction(&self.shared, self.instruction.as_ref()) {
            Ok(text) => text,
            Err(problem) => return self.problem(problem).await,
        };
        let before = self.shared.conversation.replace_instruction(text.clone());
        match text {
            Some(text) if before.as_deref() != Some(&text) => {
                let role = self.shared.wire.platform.instruction_role();
                let text = if role == "system" { text } else { format!("[New instruction]\n{text}") };
                self.send(wire::content(&[Content::text(role, text)], false)).await;
            }
            _ => {}
        }
    }
}

/// The instruction of the session and that of its phase, rendered with the current state.
pub(crate) fn instruction(shared: &Shared, base: Option<&Instruction>) -> Result<Option<String>, String> {
    let phase = shared.conversation.phases().as_ref().and_then(|phases| phases.instruction());
    let texts: Vec<_> = [base, phase.as_ref()]
        .into_iter()
        .flatten()
        .map(|text| text.render(&shared.quiet()))
        .collect::<Result<_, _>>()?;
    Ok((!texts.is_empty()).then(|| texts.join("\n\n")))
}
