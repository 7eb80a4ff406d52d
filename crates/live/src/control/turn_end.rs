//! The work at the end of a turn.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::ControlLane;
use crate::event::LiveEvent;
use crate::extract::Trigger;
use crate::store::keys;
use crate::transcript::LiveTurn;

/// The timeout of the store at the end of a turn. What is not stored by then is retried at the end
/// of the next turn.
const STORE: Duration = Duration::from_secs(10);

impl ControlLane {
    /// In this order: extractors, computed variables, watches, guards, patterns, the instruction,
    /// the application, the store.
    pub(super) async fn turn_end(&mut self) {
        self.turns = self.turns.saturating_add(1);
        let number = self.turns;
        let turn = self.shared.conversation.transcript().end(number);
        self.ending = Some(turn.clone());
        self.shared.signals.turn_count(number);
        if let Err(error) = self.shared.state.try_set(keys::TURN_COUNT, number) {
            self.problem(format!("the number of turns cannot be written to state: {error}")).await;
        }
        self.extract(|trigger| match trigger {
            Trigger::EveryTurn => true,
            Trigger::Interval(turns) => number.is_multiple_of(turns.max(1)),
            _ => false,
        })
        .await;
        self.settle().await;
        let now = Instant::now();
        for pattern in &mut self.patterns {
            if let Some(action) = pattern.turn_ended(&self.shared.state, now) {
                self.aside.spawn(action);
            }
        }
        self.refresh_instruction().await;
        if let Some(callback) = &self.callbacks.turn_complete {
            callback((turn.clone(), self.shared.state.clone())).await;
            self.settle().await;
        }
        self.store(&turn, true).await;
        self.ending = None;
        self.shared.conversation.gate.ended(&self.shared.state);
        self.emit(LiveEvent::TurnEnd(turn));
    }

    /// Stores the rest when the session ends during a turn, or while the end of one is processed.
    pub(crate) async fn store_rest(&mut self) {
        if let Some(turn) = self.ending.take() {
            self.store(&turn, true).await;
        }
        let turn = self.shared.conversation.transcript().end(self.turns.saturating_add(1));
        self.store(&turn, false).await;
    }

    async fn store(&mut self, turn: &Arc<LiveTurn>, complete: bool) {
        let Some(store) = &mut self.store else { return };
        let problems = match timeout(STORE, store.commit(&self.shared, turn, complete)).await {
            Ok(problems) => problems,
            Err(_) => vec![format!(
                "the turn could not be stored within {STORE:?}; it is tried again at the end of the next turn"
            )],
        };
        for problem in problems {
            self.problem(problem).await;
        }
    }
}
