//! Patterns in time: something holds for a while, happens often, or lasts for several turns.

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sessile_state::State;
use tokio::time::Instant;

use crate::event::LiveEvent;

/// A pattern, and what to do when it is seen. It acts once, and again only after it was not seen
/// for a moment; [`with_cooldown`](Self::with_cooldown) adds a pause.
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

/// A pattern that does not know yet what to do.
pub struct PatternOf(Kind);

impl Pattern {
    /// The condition holds without a break for this long.
    pub fn sustained(
        time: Duration,
        condition: impl Fn(&State) -> bool + Send + Sync + 'static,
    ) -> PatternOf {
        PatternOf(Kind::Sustained { condition: Box::new(condition), time, since: None, fired: false })
    }

    /// So many events of a kind within this time.
    pub fn rate(
        count: usize,
        within: Duration,
        counts: impl Fn(&LiveEvent) -> bool + Send + Sync + 'static,
    ) -> PatternOf {
        let rate = Rate { counts: Box::new(counts), count, within, times: VecDeque::new(), above: false };
        PatternOf(Kind::Rate(Some(rate)))
    }

    /// The condition holds at the end of so many turns, one after the other.
    pub fn turns(count: u32, condition: impl Fn(&State) -> bool + Send + Sync + 'static) -> PatternOf {
        PatternOf(Kind::Turns { condition: Box::new(condition), count, held: 0 })
    }

    /// Not again before this time has passed.
    #[must_use]
    pub fn with_cooldown(mut self, time: Duration) -> Self {
        self.cooldown = time;
        self
    }

    /// What is wrong with it, if anything is.
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

    /// The part that counts events, to be fed with each of them.
    pub(crate) fn take_rate(&mut self) -> Option<Rate> {
        match &mut self.kind {
            Kind::Rate(rate) => rate.take(),
            _ => None,
        }
    }

    /// Time has passed, or state has changed.
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

    /// A turn has ended.
    pub(crate) fn turn_ended(&mut self, state: &State, now: Instant) -> Option<BoxFuture<'static, ()>> {
        let Kind::Turns { condition, count, held } = &mut self.kind else { return None };
        *held = if condition(&state.without_read_tracking()) { held.saturating_add(1) } else { 0 };
        if *held == *count { self.act(state, now) } else { None }
    }

    /// The action, unless it is too soon.
    pub(crate) fn act(&mut self, state: &State, now: Instant) -> Option<BoxFuture<'static, ()>> {
        if self.last.is_some_and(|last| now.duration_since(last) < self.cooldown) {
            return None;
        }
        self.last = Some(now);
        Some((self.action)(state.clone()))
    }
}

impl PatternOf {
    /// What to do. It runs beside the conversation.
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

/// Counts the events of a kind.
pub(crate) struct Rate {
    counts: Box<dyn Fn(&LiveEvent) -> bool + Send + Sync>,
    count: usize,
    within: Duration,
    times: VecDeque<Instant>,
    /// Whether it was seen, and is still to be seen.
    above: bool,
}

impl Rate {
    /// Takes in an event, and tells whether there now are enough.
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
