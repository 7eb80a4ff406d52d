//! Phases of a conversation: what the model is told, which tools it may call, and when it goes on.

mod declared;
mod instruction;
mod machine;

pub use declared::Phase;
pub(crate) use instruction::Instruction;
pub use machine::{PhaseChange, PhaseTrigger};
pub(crate) use machine::{PhaseMachine, check};
