use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sessile_state::State;
use tokio::time::Instant;

use super::declared::Phase;
use super::instruction::Instruction;

/// One change of phase.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PhaseChange {
    /// The phase before; none at the beginning.
    pub from: Option<String>,
    /// The phase after.
    pub to: String,
    /// How many turns were complete by then.
    pub turn: u32,
    /// The reason for it.
    pub trigger: PhaseTrigger,
    /// How long the phase before lasted.
    pub lasted: Duration,
}

/// The reason for a change of phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PhaseTrigger {
    /// The session began.
    Start,
    /// A stored session was restored.
    Restored,
    /// The conditions of the transition with this index held.
    Guard(usize),
    /// The application forced it.
    Forced,
}

/// How many changes are kept.
const KEPT: usize = 100;

/// The phases of a session, and which one it is in.
pub(crate) struct PhaseMachine {
    phases: BTreeMap<String, Phase>,
    initial: String,
    current: Option<String>,
    since: Instant,
    history: VecDeque<PhaseChange>,
}

impl PhaseMachine {
    /// A machine of checked phases; `None` if there are none.
    pub(crate) fn new(phases: Vec<Phase>, initial: Option<String>) -> Option<Self> {
        let initial = initial.or_else(|| Some(phases.first()?.name.clone()))?;
        let phases = phases.into_iter().map(|phase| (phase.name.clone(), phase)).collect();
        Some(Self { phases, initial, current: None, since: Instant::now(), history: VecDeque::new() })
    }

    pub(crate) fn initial(&self) -> &str {
        &self.initial
    }

    pub(crate) fn contains(&self, phase: &str) -> bool {
        self.phases.contains_key(phase)
    }

    pub(crate) fn current(&self) -> Option<&str> {
        self.current.as_deref()
    }

    pub(crate) fn history(&self) -> Vec<PhaseChange> {
        self.history.iter().cloned().collect()
    }

    pub(crate) fn instruction(&self) -> Option<Instruction> {
        self.phase()?.instruction.clone()
    }

    pub(crate) fn prompts(&self) -> bool {
        self.phase().is_some_and(|phase| phase.prompt_on_enter)
    }

    /// Whether a tool may be called now.
    pub(crate) fn allows(&self, tool: &str) -> bool {
        self.phase().and_then(|phase| phase.tools.as_ref()).is_none_or(|tools| tools.contains(tool))
    }

    /// The target and the index of the first possible transition.
    pub(crate) fn next(&self, state: &State) -> Option<(String, usize)> {
        let phase = self.phase().filter(|phase| !phase.terminal)?;
        let possible = phase.transitions.iter().enumerate().find(|(_, transition)| {
            let target = self.phases.get(&transition.target);
            let enters = target.is_some_and(|target| target.guard.as_ref().is_none_or(|guard| guard(state)));
            enters && (transition.guard)(state)
        });
        possible.map(|(number, transition)| (transition.target.clone(), number))
    }

    /// The hook to await before leaving the current phase.
    pub(crate) fn exit(&self, state: &State) -> Option<BoxFuture<'static, ()>> {
        self.phase()?.on_exit.as_ref().map(|hook| hook(state.clone()))
    }

    /// The hook to await after entering the current phase.
    pub(crate) fn enter(&self, state: &State) -> Option<BoxFuture<'static, ()>> {
        self.phase()?.on_enter.as_ref().map(|hook| hook(state.clone()))
    }

    /// Enters another phase.
    pub(crate) fn go(&mut self, to: &str, turn: u32, trigger: PhaseTrigger) -> PhaseChange {
        let lasted = if self.current.is_some() { self.since.elapsed() } else { Duration::ZERO };
        let from = self.current.replace(to.to_owned());
        self.since = Instant::now();
        let change = PhaseChange { from, to: to.to_owned(), turn, trigger, lasted };
        if self.history.len() == KEPT {
            self.history.pop_front();
        }
        self.history.push_back(change.clone());
        change
    }

    fn phase(&self) -> Option<&Phase> {
        self.phases.get(self.current.as_deref()?)
    }
}

/// Adds everything that is wrong with the phases of a session to `problems`.
pub(crate) fn check(
    phases: &[Phase],
    initial: Option<&str>,
    tools: &BTreeSet<&str>,
    problems: &mut Vec<String>,
) {
    let names: BTreeSet<_> = phases.iter().map(|phase| phase.name.as_str()).collect();
    if names.len() < phases.len() {
        problems.push("two phases have the same name".to_owned());
    }
    match initial {
        Some(initial) if !names.contains(initial) => {
            problems.push(format!("the initial phase {initial:?} is not declared"));
        }
        _ => {}
    }
    for phase in phases {
        if phase.name.trim().is_empty() {
            problems.push("a phase has no name".to_owned());
        }
        for transition in &phase.transitions {
            if !names.contains(transition.target.as_str()) {
                problems.push(format!(
                    "the phase {:?} has a transition to {:?}, which is not declared",
                    phase.name, transition.target
                ));
            }
        }
        if phase.terminal && !phase.transitions.is_empty() {
            problems.push(format!("the phase {:?} is terminal and has transitions", phase.name));
        }
        for tool in phase.tools.iter().flatten() {
            if !tools.contains(tool.as_str()) {
                problems.push(format!(
                    "the phase {:?} allows the tool {tool:?}, which is not declared",
                    phase.name
                ));
            }
        }
    }
}
