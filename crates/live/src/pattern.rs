//! Patterns in time: a condition holds for a while or for several turns, or an event is frequent.

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sessile_state::State;
use tokio::time::Instant;

use crate::event::LiveEvent;

/// A pattern, and the action to run when it matches. The action runs once per match: again only
/// after the pattern has stopped matching. [`with_cooldown`](Self::with_cooldown) adds a minimum
/// interval.
///
/// ```
/// use std::time::Duration;
/// use sessile_live::{LiveEvent, Pattern};
///
/// let annoyed = Pattern::rate(3, Duration::from_secs(60), |event| matches!(event, LiveEvent::Interrupted))
///     .then(|state| async move { state.set("annoyed", true) })
///     .with_cooldown(Duration::from_secs(300));
/// ```
pub struct Pattern {
    kind: Kind,
    cooldown: Duration,
    last: Option<Instant>,
    action: Action,
}

type Condition = Box<dyn Fn(&State) -> bool + Send + Sync>;
type Action = Box<dyn Fn(State) -> BoxFuture<'static, ()> + Send + Sync>;

enum Kind {
    Sustained { condition: Condition, time: Duration, since: Option<Instant>, fired: bool },
    Turns { condition: Condition, count: u32, held: u32 },
    Rate(Option<Rate>),
}

/// A pattern without an action; [`then`](Self::then) adds it.
pub struct PatternOf(Kind);

impl Pattern {
    /// Matches when the condition has held without interruption for this long.
    pub fn sustained(
        time: Duration,
        condition: impl Fn(&State) -> bool + Send + Sync + 'static,
    ) -> PatternOf {
        PatternOf(Kind::Sustained { condition: Box::new(condition), time, since: None, fired: false })
    }

    /// Matches when `count` events that satisfy `counts` happen within this time.
    pub fn rate(
        count: usize,
        within: Duration,
        counts: impl Fn(&LiveEvent) -> bool + Send + Sync + 'static,
    ) -> PatternOf {
        let rate = Rate { counts: Box::new(counts), count, within, times: VecDeque::new(), above: false };
        PatternOf(Kind::Rate(Some(rate)))
    }

    /// Matches when the condition holds at the end of `count` consecutive turns.
    pub fn turns(count: u32, condition: impl Fn(&State) -> bool + Send + Sync + 'static) -> PatternOf {
        PatternOf(Kind::Turns { condition: Box::new(condition), count, held: 0 })
    }

    /// Does not run the action again before this time has passed.
    #[must_use]
    pub fn with_cooldown(mut self, time: Duration) -> Self {
        self.cooldown = time;
        self
    }

    /// Why the configuration is not valid, if it is not.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        match &self.kind {
            Kind::Sustained { time, .. } if time.is_zero() => {
                Some("a sustained pattern needs a time above zero")
            }
            Kind::Turns { count: 0, .. } => Some("a pattern over turns needs at least one turn"),
            Kind::Rate(Some(rate)) if rate.count == 0 || rate.within.is_zero() => {
                Some("a rate needs at least one event and a time above zero")
            }
            _ => None,
        }
    }

    /// Moves out the counter of events; the [`Bus`](crate::bus::Bus) feeds it with every event.
    pub(crate) fn take_rate(&mut self) -> Option<Rate> {
        match &mut self.kind {
            Kind::Rate(rate) => rate.take(),
            _ => None,
        }
    }

    /// Checks a sustained pattern: time has passed, or state has changed.
    pub(crate) fn look(&mut self, state: &State, now: Instant) -> Option<BoxFuture<'static, ()>> {
        let Kind::Sustained { condition, time, since, fired } = &mut self.kind else { return None };
        if !condition(&state.without_read_tracking()) {
            (*since, *fired) = (None, false);
            return None;
        }
        let since = *since.get_or_insert(now);
        if *fired || now.duration_since(since) < *time {
            return None;
        }
        *fired = true;
        self.act(state, now)
    }

    /// Checks a pattern over turns: a turn has ended.
    pub(crate) fn turn_ended(&mut self, state: &State, now: Instant) -> Option<BoxFuture<'static, ()>> {
        let Kind::Turns { condition, count, held } = &mut self.kind else { return None };
        *held = if condition(&state.without_read_tracking()) { held.saturating_add(1) } else { 0 };
        if *held == *count { self.act(state, now) } else { None }
    }

    /// The action, unless the cooldown is still running.
    pub(crate) fn act(&mut self, state: &State, now: Instant) -> Option<BoxFuture<'static, ()>> {
        if self.last.is_some_and(|last| now.duration_since(last) < self.cooldown) {
            return None;
        }
        self.last = Some(now);
        Some((self.action)(state.clone()))
    }
}

impl PatternOf {
    /// The action to run. The conversation does not wait for it.
    pub fn then<Fut: Future<Output = ()> + Send + 'static>(
        self,
        action: impl Fn(State) -> Fut + Send + Sync + 'static,
    ) -> Pattern {
        let action: Action = Box::new(move |state| action(state).boxed());
        Pattern { kind: self.0, cooldown: Duration::ZERO, last: None, action }
    }
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pattern").field("kind", &self.kind.name()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for PatternOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PatternOf").field("kind", &self.0.name()).finish_non_exhaustive()
    }
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Self::Sustained { .. } => "sustained",
            Self::Turns { .. } => "turns",
            Self::Rate(_) => "rate",
        }
    }
}

/// Counts events within a sliding window of time.
pub(crate) struct Rate {
    counts: Box<dyn Fn(&LiveEvent) -> bool + Send + Sync>,
    count: usize,
    within: Duration,
    times: VecDeque<Instant>,
    /// Whether the pattern fired and still matches.
    above: bool,
}

impl Rate {
    /// Counts an event, and returns whether the pattern fires now.
    pub(crate) fn saw(&mut self, event: &LiveEvent) -> bool {
        if !(self.counts)(event) {
            return false;
        }
        let now = Instant::now();
        while self.times.front().is_some_and(|time| now.duration_since(*time) > self.within) {
            self.times.pop_front();
        }
        if self.times.len() + 1 < self.count {
            self.above = false;
        }
        if self.times.len() == self.count {
            self.times.pop_front();
        }
        self.times.push_back(now);
        self.times.len() == self.count && !std::mem::replace(&mut self.above, true)
    }
}
