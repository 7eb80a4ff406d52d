use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sessile_session::OnOverwrite;
use sessile_state::{Change, Delta, Reducers, Scope, State};

use crate::agent::Agent;

/// Where in the tree of agents something runs, like a frame of a call stack.
pub(crate) struct Frame {
    pub(crate) parent: Option<Arc<Frame>>,
    /// The agent's name.
    pub(crate) agent: String,
    /// The branch that its events are on; none outside of parallel agents.
    pub(crate) branch: Option<String>,
    /// The state that the agent sees: that of the run, or a parallel branch's view of it.
    pub(crate) state: State,
    /// The rules of the contexts here.
    pub(crate) rules: Arc<Rules>,
    /// The stored keys that the branch last changed with operations or transactions, shared by all
    /// frames of the branch. A parallel agent must not correct them, because their stored values
    /// count the operations of all writers.
    operated: Arc<Mutex<BTreeSet<String>>>,
    /// Whether an event of this agent or one below asked the agents above to stop.
    pub(crate) escalated: AtomicBool,
    /// Whether it stops when that happens.
    stops: AtomicBool,
    /// The agent that goes on after this one.
    pub(crate) transfer: Mutex<Option<String>>,
}

/// How the contexts of an agent treat state, as the runner and the agents from the root down to it
/// declare it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    /// The keys whose sets become operations.
    pub(crate) reducers: Arc<Reducers>,
    /// What happens when a key that was read and then set holds another value at the commit.
    pub(crate) on_overwrite: OnOverwrite,
}

impl Rules {
    /// The rules of an agent below.
    fn below(self: &Arc<Self>, agent: &dyn Agent) -> Arc<Self> {
        let (reducers, on_overwrite) = (agent.reducers(), agent.on_overwrite());
        let reducers = reducers.filter(|reducers| !reducers.is_empty());
        if reducers.is_none() && on_overwrite.is_none_or(|on_overwrite| on_overwrite == self.on_overwrite) {
            return self.clone();
        }
        let mut rules = Self::clone(self);
        if let Some(own) = reducers {
            let own = own.iter().map(|(key, reducer)| (key.clone(), *reducer));
            Arc::make_mut(&mut rules.reducers).extend(own);
        }
        rules.on_overwrite = on_overwrite.unwrap_or(rules.on_overwrite);
        Arc::new(rules)
    }
}

impl Frame {
    pub(crate) fn root(state: State, rules: Arc<Rules>) -> Arc<Self> {
        Self::new(None, String::new(), None, state, rules, Arc::default())
    }

    /// The frame of an agent below, on the same branch and state.
    pub(crate) fn below(self: &Arc<Self>, agent: &dyn Agent) -> Arc<Self> {
        let (state, operated) = (self.state.clone(), self.operated.clone());
        let (name, rules) = (agent.name().to_owned(), self.rules.below(agent));
        Self::new(Some(self.clone()), name, self.branch.clone(), state, rules, operated)
    }

    /// The frame of a parallel branch, with its own view of the state.
    pub(crate) fn branch(self: &Arc<Self>, name: &str) -> Arc<Self> {
        let branch = match &self.branch {
            Some(branch) => format!("{branch}.{name}"),
            None => name.to_owned(),
        };
        let state = self.state.with_delta_tracking();
        let (agent, rules) = (self.agent.clone(), self.rules.clone());
        Self::new(Some(self.clone()), agent, Some(branch), state, rules, Arc::default())
    }

    fn new(
        parent: Option<Arc<Self>>,
        agent: String,
        branch: Option<String>,
        state: State,
        rules: Arc<Rules>,
        operated: Arc<Mutex<BTreeSet<String>>>,
    ) -> Arc<Self> {
        let (escalated, stops, transfer) = (AtomicBool::new(false), AtomicBool::new(false), Mutex::new(None));
        Arc::new(Self { parent, agent, branch, state, rules, operated, escalated, stops, transfer })
    }

    /// Notes which keys a committed event changed with operations, and which it set or removed.
    pub(crate) fn note_operations(&self, intended: &Delta) {
        let stored = intended.iter().filter(|(key, _)| Scope::of(key).0 != Scope::Temp);
        let mut operated = self.operated();
        for (key, change) in stored {
            match change {
                Change::Operate(_) => drop(operated.insert(key.to_owned())),
                Change::Set(_) | Change::Remove => drop(operated.remove(key)),
            }
        }
    }

    /// Notes that a transaction changed these keys: as with operations, the store computed their
    /// values.
    pub(crate) fn note_transaction<'a>(&self, keys: impl Iterator<Item = &'a str>) {
        self.operated().extend(keys.map(str::to_owned));
    }

    /// Notes what joined branches below changed: `merged` is all of it, `operated` the keys that
    /// they changed with operations.
    pub(crate) fn note_joined(&self, merged: &Delta, operated: BTreeSet<String>) {
        let mut known = self.operated();
        known.retain(|key| merged.get(key).is_none());
        known.extend(operated);
    }

    /// The stored keys that the branch last changed with operations.
    pub(crate) fn operated(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.operated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that this agent and all above were asked to stop.
    pub(crate) fn escalate(&self) {
        let mut frame = Some(self);
        while let Some(here) = frame {
            here.escalated.store(true, Ordering::Relaxed);
            frame = here.parent.as_deref();
        }
    }

    /// From here on, this agent stops when one below escalates.
    pub(crate) fn stop_on_escalation(&self) {
        self.stops.store(true, Ordering::Relaxed);
    }

    /// Whether this agent or one above it was asked to stop, and does.
    pub(crate) fn is_stopped(&self) -> bool {
        let mut frame = Some(self);
        while let Some(here) = frame {
            if here.stops.load(Ordering::Relaxed) && here.escalated.load(Ordering::Relaxed) {
                return true;
            }
            frame = here.parent.as_deref();
        }
        false
    }

    pub(crate) fn transfer(&self) -> MutexGuard<'_, Option<String>> {
        self.transfer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
