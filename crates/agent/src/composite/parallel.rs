use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sessile_session::{Event, EventActions, Session};
use sessile_state::{Change, Delta, Scope, Snapshot};

use super::{Composite, composite};
use crate::agent::Agent;
use crate::context::{Frame, InvocationContext};
use crate::error::{AgentError, BuildError};
use crate::merge::{Reducer, Reducers, Written, merge};

/// Runs agents side by side, each on a branch of its own: it sees what was there before and what it
/// said and changed itself. Their events come as they are made. Where several set the same key, the
/// outcome does not depend on which was faster: a reducer joins the values, or the last agent's counts.
/// Operations such as `add` need no reducer: the store applies those of all branches.
pub struct ParallelAgent {
    composite: Composite,
    reducers: Reducers,
}

impl ParallelAgent {
    /// Runs these agents side by side.
    ///
    /// # Errors
    ///
    /// [`BuildError`] names all names that cannot be or are used twice.
    pub fn new<A: Agent + 'static>(
        name: impl Into<String>,
        agents: impl IntoIterator<Item = A>,
    ) -> Result<Self, BuildError> {
        Ok(Self { composite: Composite::new(name.into(), agents)?, reducers: Reducers::new() })
    }

    /// With a rule for how writes of several agents to a key become one value.
    #[must_use]
    pub fn with_reducer(mut self, key: impl Into<String>, reducer: Reducer) -> Self {
        self.reducers.insert(key.into(), reducer);
        self
    }

    /// Joins what the branches changed since `before`, in their order.
    ///
    /// A key that a branch changed with operations is as it is stored: the store applied every operation to what it
    /// held then, so neither the reducers nor the order of the branches have a say in it.
    fn join(&self, before: &Snapshot, branches: &[Arc<Frame>], session: &Session) -> Joined {
        let operated: BTreeSet<String> =
            branches.iter().flat_map(|branch| branch.operated().clone()).collect();
        let names = self.composite.sub_agents.iter().map(|agent| agent.name());
        let written = |(writer, branch): (_, &Arc<Frame>)| {
            let mut delta = branch.state.delta();
            delta.retain(|key| !operated.contains(key));
            Written { writer, delta }
        };
        let writers: Vec<Written<'_>> = names.zip(branches).map(written).collect();
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for (key, _) in writers.iter().flat_map(|writer| writer.delta.iter()) {
            *times.entry(key).or_default() += 1;
        }
        let contested = times.into_iter().filter(|(_, times)| *times > 1).map(|(key, _)| key);
        let mut merged = merge(before, &writers, &self.reducers);
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

/// What branches come to.
struct Joined {
    /// All changes, for the state that the parallel agent itself sees.
    merged: Delta,
    /// The changes that make the stored values of contested keys what the order of the branches says.
    corrections: Delta,
    /// The keys that branches changed with operations.
    operated: BTreeSet<String>,
}

/// See [`Joined::corrections`].
fn corrections<'a>(session: &Session, merged: &Delta, contested: impl Iterator<Item = &'a str>) -> Delta {
    let mut delta = Delta::new();
    for key in contested.filter(|key| Scope::of(key).0 != Scope::Temp) {
        match (merged.get(key), session.state().get_raw(key)) {
            (Some(Change::Set(value)), stored) if stored != Some(value) => delta.set(key, value.clone()),
            (Some(Change::Remove), Some(_)) => delta.remove(key),
            _ => {}
        }
    }
    delta
}

composite!(ParallelAgent);

#[async_trait]
impl Agent for ParallelAgent {
    composite!(methods);

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        ctx.frame.stop_on_escalation();
        let name = &self.composite.name;
        let agents = &self.composite.sub_agents;
        let before = ctx.state();
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
        let joined = ctx.with_session(|session| self.join(&before, &branches, session)).await;
        let Joined { merged, corrections, operated } = joined;
        ctx.frame.state.try_apply(&merged).map_err(AgentError::other)?;
        ctx.frame.note_joined(&merged, operated);
        if corrections.is_empty() || ctx.is_cancelled() {
            return outcome;
        }
        let corrected = ctx.emit(Event::new(name).with_actions(EventActions::from_delta(corrections))).await;
        if let (Err(_), Err(error)) = (&outcome, &corrected) {
            tracing::error!(%error, session = %ctx.session_key(), "cannot store what the branches come to");
        }
        outcome.and(corrected.map(drop))
    }
}
