//! The reactions to a change of state.

use tokio::time::Instant;

use super::ControlLane;
use crate::phase::PhaseTrigger;

impl ControlLane {
    /// Runs everything that reacts to state: computed variables, then watches, then patterns and
    /// guards. A watch sees each change once. Its own changes are seen by computed variables and
    /// guards now, and by watches the next time.
    pub(super) async fn settle(&mut self) {
        self.recompute().await;
        let triggered = self.watches.look(&self.shared.state);
        let acted = !triggered.blocking.is_empty();
        for action in triggered.blocking {
            action.await;
        }
        for action in triggered.concurrent {
            self.aside.spawn(action);
        }
        if acted {
            self.recompute().await;
        }
        let now = Instant::now();
        for pattern in &mut self.patterns {
            if let Some(action) = pattern.look(&self.shared.state, now) {
                self.aside.spawn(action);
            }
        }
        let next =
            self.shared.conversation.phases().as_ref().and_then(|phases| phases.next(&self.shared.quiet()));
        if let Some((phase, number)) = next {
            self.transition(&phase, PhaseTrigger::Guard(number)).await;
        }
    }

    /// Recomputes the variables whose inputs changed.
    pub(super) async fn recompute(&mut self) {
        let mut problems = Vec::new();
        self.computed.recompute(&self.shared.quiet(), &mut problems);
        for problem in problems {
            self.problem(problem).await;
        }
    }

    /// Runs the action of a pattern that counts events.
    pub(super) fn fired(&mut self, number: usize) {
        let action =
            self.patterns.get_mut(number).and_then(|pattern| pattern.act(&self.shared.state, Instant::now()));
        if let Some(action) = action {
            self.aside.spawn(action);
        }
    }
}
