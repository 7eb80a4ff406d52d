use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sessile_session::{Event, Session};
use sessile_state::{Change, Delta, Scope, Snapshot};

use super::{Composite, composite};
use crate::agent::Agent;
use crate::context::{Frame, InvocationContext};
use crate::error::{AgentError, BuildError};
use crate::merge::{Reducer, Reducers, Written, merge};

/// Runs agents side by side, each on a branch of its own: it sees what was there before and what it
/// said and changed itself. Their events come as they are made. Where several wrote the same key, the
/// outcome does not depend on who was faster: a reducer joins the values, or the last agent's counts.
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

    /// What the branches changed since `before`, joined in their order, and the keys that several changed.
    fn merged(&self, before: &Snapshot, branches: &[Arc<Frame>]) -> (Delta, Vec<String>) {
        let names = self.composite.sub_agents.iter().map(|agent| agent.name());
        let writers: Vec<Written<'_>> = names
            .zip(branches)
            .map(|(writer, branch)| Written { writer, delta: branch.state.delta() })
            .collect();
        let mut times: HashMap<&str, usize> = HashMap::new();
        for (key, _) in writers.iter().flat_map(|writer| writer.delta.iter()) {
            *times.entry(key).or_default() += 1;
        }
        let mut contested: Vec<String> =
            times.into_iter().filter(|(_, times)| *times > 1).map(|(key, _)| key.to_owned()).collect();
        contested.sort_unstable();
        (merge(before, &writers, &self.reducers), contested)
    }

    /// The changes that make the stored values of contested keys what the branches' order says.
    fn corrections(session: &Session, merged: &Delta, contested: &[String]) -> Delta {
        let mut delta = Delta::new();
        for key in contested.iter().filter(|key| Scope::of(key).0 != Scope::Temp) {
            match (merged.get(key), session.state().get_raw(key)) {
                (Some(Change::Set(value)), stored) if stored != Some(value) => delta.set(key, value.clone()),
                (Some(Change::Remove), Some(_)) => delta.remove(key),
                _ => {}
            }
        }
        delta
    }
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
        // The session is free when no commit is under way any more, also none of a branch that was stopped.
        let join = |session: &Session| {
            let (merged, contested) = self.merged(&before, &branches);
            let corrections = Self::corrections(session, &merged, &contested);
            (merged, corrections)
        };
        let (merged, corrections) = ctx.with_session(join).await;
        ctx.frame.state.try_apply(&merged).map_err(AgentError::other)?;
        if corrections.is_empty() || ctx.is_cancelled() {
            return outcome;
        }
        let corrected = ctx.emit(Event::new(name).with_delta(&corrections)).await;
        if let (Err(_), Err(error)) = (&outcome, &corrected) {
            tracing::error!(%error, session = %ctx.session_key(), "cannot store what the branches come to");
        }
        outcome.and(corrected.map(drop))
    }
}
