//! Phases of a conversation: each has an instruction, allowed tools, and transitions.

mod declared;
mod instruction;
mod machine;

pub use declared::Phase;
pub(crate) use instruction::Instruction;
pub use machine::{PhaseChange, PhaseTrigger};
pub(crate) use machine::{PhaseMachine, check};
