use std::sync::{Mutex, MutexGuard};

use crate::lock::lock;
use crate::phase::PhaseMachine;
use crate::transcript::Transcript;
use crate::turn_gate::TurnGate;

/// What the user and the model are doing: the turns, the phase and the current instruction.
///
/// The mutexes are those of std, not Tokio's: they are never held across an `.await`.
pub(crate) struct Conversation {
    pub(crate) gate: TurnGate,
    transcript: Mutex<Transcript>,
    phases: Mutex<Option<PhaseMachine>>,
    /// The instruction that the model was last given.
    instruction: Mutex<Option<String>>,
}

impl Conversation {
    pub(crate) fn new(phases: Option<PhaseMachine>) -> Self {
        Self {
            gate: TurnGate::default(),
            transcript: Mutex::default(),
            phases: Mutex::new(phases),
            instruction: Mutex::default(),
        }
    }

    pub(crate) fn transcript(&self) -> MutexGuard<'_, Transcript> {
        lock(&self.transcript)
    }

    /// The phases, if the session has any.
    pub(crate) fn phases(&self) -> MutexGuard<'_, Option<PhaseMachine>> {
        lock(&self.phases)
    }

    pub(crate) fn instruction(&self) -> Option<String> {
        lock(&self.instruction).clone()
    }

    /// Replaces the instruction, and returns the one before.
    pub(crate) fn replace_instruction(&self, text: Option<String>) -> Option<String> {
        std::mem::replace(&mut *lock(&self.instruction), text)
    }
}
