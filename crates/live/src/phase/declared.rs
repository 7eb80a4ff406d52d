use std::collections::BTreeSet;
use std::future::Future;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sessile_state::State;

use super::instruction::Instruction;

/// A phase of a conversation.
///
/// ```
/// use sessile_live::Phase;
///
/// let greeting = Phase::new("greeting")
///     .with_instruction("Greet {user:name?} and ask for the order's number.")
///     .with_tools(["find_order"])
///     .with_transition("order", |state| state.contains("order"));
/// let order = Phase::new("order").with_instruction("Help with order {order}.").terminal();
/// ```
pub struct Phase {
    pub(super) name: String,
    pub(super) instruction: Option<Instruction>,
    /// The tools that may be called; `None` allows all.
    pub(super) tools: Option<BTreeSet<String>>,
    pub(super) guard: Option<Guard>,
    pub(super) transitions: Vec<Transition>,
    pub(super) terminal: bool,
    pub(super) prompt_on_enter: bool,
    pub(super) on_enter: Option<Hook>,
    pub(super) on_exit: Option<Hook>,
}

pub(super) type Guard = Box<dyn Fn(&State) -> bool + Send + Sync>;
type Hook = Box<dyn Fn(State) -> BoxFuture<'static, ()> + Send + Sync>;

pub(super) struct Transition {
    pub(super) target: String,
    pub(super) guard: Guard,
}

impl Phase {
    /// A phase of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            instruction: None,
            tools: None,
            guard: None,
            transitions: Vec::new(),
            terminal: false,
            prompt_on_enter: false,
            on_enter: None,
            on_exit: None,
        }
    }

    /// The instruction of this phase, which follows that of the session. `{key}` is replaced from
    /// state.
    #[must_use]
    pub fn with_instruction(mut self, text: &str) -> Self {
        self.instruction = Some(Instruction::text(text));
        self
    }

    /// The instruction of this phase, computed from state.
    #[must_use]
    pub fn with_instruction_from(mut self, make: impl Fn(&State) -> String + Send + Sync + 'static) -> Self {
        self.instruction = Some(Instruction::computed(make));
        self
    }

    /// Allows only these tools; calls of others are answered with an error that names the phase.
    #[must_use]
    pub fn with_tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// A condition for entering this phase.
    #[must_use]
    pub fn with_guard(mut self, guard: impl Fn(&State) -> bool + Send + Sync + 'static) -> Self {
        self.guard = Some(Box::new(guard));
        self
    }

    /// Moves to another phase when this condition holds. The first possible transition is taken.
    #[must_use]
    pub fn with_transition(
        mut self,
        target: impl Into<String>,
        guard: impl Fn(&State) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.transitions.push(Transition { target: target.into(), guard: Box::new(guard) });
        self
    }

    /// Marks the last phase: it has no transitions.
    #[must_use]
    pub fn terminal(mut self) -> Self {
        self.terminal = true;
        self
    }

    /// Lets the model speak first in this phase.
    #[must_use]
    pub fn prompt_on_enter(mut self) -> Self {
        self.prompt_on_enter = true;
        self
    }

    /// Called when the conversation enters this phase.
    #[must_use]
    pub fn on_enter<Fut: Future<Output = ()> + Send + 'static>(
        mut self,
        hook: impl Fn(State) -> Fut + Send + Sync + 'static,
    ) -> Self {
        self.on_enter = Some(Box::new(move |state| hook(state).boxed()));
        self
    }

    /// Called when the conversation leaves this phase.
    #[must_use]
    pub fn on_exit<Fut: Future<Output = ()> + Send + 'static>(
        mut self,
        hook: impl Fn(State) -> Fut + Send + Sync + 'static,
    ) -> Self {
        self.on_exit = Some(Box::new(move |state| hook(state).boxed()));
        self
    }
}

impl std::fmt::Debug for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Phase").field("name", &self.name).finish_non_exhaustive()
    }
}
