use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sessile_session::{Append, Event, EventActions, Guards, OnOverwrite, Session, SessionError};
use sessile_state::{Change, Delta, Reducer, Reducers, Scope};

use super::{Composite, composite};
use crate::agent::Agent;
use crate::context::{Frame, InvocationContext};
use crate::error::{AgentError, BuildError};
use crate::merge::{Branch, join_branches};

/// Runs agents concurrently, each on a branch of its own: a branch sees what was there before, and
/// its own events and changes. Events are committed as they are emitted. Where several branches set
/// the same key, the value of the last agent in the list counts, whichever was faster. Operations
/// such as `add` of all branches count; so do writes of keys that have a reducer, which turns them
/// into operations.
pub struct ParallelAgent {
    composite: Composite,
    reducers: Reducers,
}

impl ParallelAgent {
    /// Runs these agents concurrently.
    ///
    /// # Errors
    ///
    /// [`BuildError`] lists all names that are invalid or used twice.
    pub fn new<A: Agent + 'static>(
        name: impl Into<String>,
        agents: impl IntoIterator<Item = A>,
    ) -> Result<Self, BuildError> {
        Ok(Self { composite: Composite::new(name.into(), agents)?, reducers: Reducers::new() })
    }

    /// Turns what the agents below set under a key into an operation, so that all of them count.
    #[must_use]
    pub fn with_reducer(mut self, key: impl Into<String>, reducer: Reducer) -> Self {
        self.reducers.insert(key.into(), reducer);
        self
    }

    /// Joins what the branches changed, in their order.
    ///
    /// A key that a branch changed with operations or in a transaction keeps its stored value: the
    /// store computed it from the value at the commit, so the order of the branches does not
    /// matter.
    fn join(&self, branches: &[Arc<Frame>], session: &Session) -> Joined {
        let operated: BTreeSet<String> =
            branches.iter().flat_map(|branch| branch.operated().clone()).collect();
        let names = self.composite.sub_agents.iter().map(|agent| agent.name());
        let written = |(name, branch): (_, &Arc<Frame>)| {
            let mut delta = branch.state.delta();
            delta.retain(|key| !operated.contains(key));
            Branch { name, delta }
        };
        let written: Vec<Branch<'_>> = names.zip(branches).map(written).collect();
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for (key, _) in written.iter().flat_map(|branch| branch.delta.iter()) {
            *times.entry(key).or_default() += 1;
        }
        let contested = times.into_iter().filter(|(_, times)| *times > 1).map(|(key, _)| key);
        let mut merged = join_branches(&written);
        let corrections = corrections(session, &merged, contested);
        for key in &operated {
            match session.state().get_raw(key) {
                Some(value) => merged.set(key, value.clone()),
                None => merged.remove(key),
            }
        }
        Joined { merged, corrections, operated }
    }
}

/// The joined changes of all branches.
struct Joined {
    /// All changes, for the state that the parallel agent itself sees.
    merged: Delta,
    /// The changes that give keys that several branches set the value of the last branch, with
    /// guards of the values that they correct.
    corrections: (Delta, Guards),
    /// The keys that branches changed with operations.
    operated: BTreeSet<String>,
}

/// See [`Joined::corrections`].
fn corrections<'a>(
    session: &Session,
    merged: &Delta,
    contested: impl Iterator<Item = &'a str>,
) -> (Delta, Guards) {
    let (mut delta, mut guards) = (Delta::new(), Guards::new(OnOverwrite::Refuse));
    for key in contested.filter(|key| Scope::of(key).0 != Scope::Temp) {
        let stored = session.state().get_raw(key);
        match merged.get(key) {
            Some(Change::Set(value)) if stored != Some(value) => delta.set(key, value.clone()),
            Some(Change::Remove) if stored.is_some() => delta.remove(key),
            _ => continue,
        }
        guards.insert(key.to_owned(), stored.cloned());
    }
    (delta, guards)
}

/// Commits corrections. A key that another session has changed since the branches did keeps its
/// newer value.
async fn correct(
    ctx: &InvocationContext,
    name: &str,
    (mut delta, mut guards): (Delta, Guards),
) -> Result<(), AgentError> {
    while !delta.is_empty() && !ctx.is_cancelled() {
        let event = Event::new(name).with_actions(EventActions::from_delta(delta.clone()));
        match ctx.emit_as(Append::new(event).guarded(guards.clone())).await {
            Err(AgentError::Session(SessionError::Overwritten { current })) => {
                delta.retain(|key| !current.contains_key(key));
                guards.retain(|key| !current.contains_key(key));
            }
            outcome => return outcome.map(drop),
        }
    }
    Ok(())
}

composite!(ParallelAgent);

#[async_trait]
impl Agent for ParallelAgent {
    composite!(methods);

    fn reducers(&self) -> Option<&Reducers> {
        Some(&self.reducers)
    }

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        ctx.frame.stop_on_escalation();
        let name = &self.composite.name;
        let agents = &self.composite.sub_agents;
        let branches: Vec<Arc<Frame>> =
            agents.iter().map(|agent| ctx.frame.branch(&format!("{name}.{}", agent.name()))).collect();
        let mut running: FuturesUnordered<_> = agents
            .iter()
            .zip(&branches)
            .map(|(agent, branch)| {
                let ctx = ctx.at(branch.clone());
                async move { ctx.run(agent).await }
            })
            .collect();
        let mut outcome = Ok(());
        while let Some(done) = running.next().await {
            outcome = done;
            if outcome.is_err() {
                break;
            }
        }
        drop(running);
        // `with_session` waits for commits in progress, also for that of a branch that was stopped.
        let joined = ctx.with_session(|session| self.join(&branches, session)).await;
        let Joined { merged, corrections, operated } = joined;
        ctx.frame.state.try_apply(&merged).map_err(AgentError::other)?;
        ctx.frame.note_joined(&merged, operated);
        let corrected = correct(ctx, name, corrections).await;
        if let (Err(_), Err(error)) = (&outcome, &corrected) {
            tracing::error!(%error, session = %ctx.session_key(), "cannot store the joined changes of the branches");
        }
        outcome.and(corrected)
    }
}
