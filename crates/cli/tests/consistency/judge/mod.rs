//! Finds in a history what no correct server could have answered. Nothing here does I/O or looks at
//! a clock.
//!
//! To add a check: give its anomaly a name below, write the check as a function of [`Facts`], and
//! add a history in which it is found to `cases/`; a name without such a case fails the tests.

mod answers;
mod conditions;
mod events;
mod facts;
mod lives;
mod log;
mod origins;
mod real_time;
mod refusals;
mod snapshots;
mod statuses;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod story;

use std::fmt;

use facts::Facts;

use crate::history::{History, Record};

/// All anomalies of a history; none, if it is consistent.
pub(crate) fn judge(history: &History) -> Vec<Found> {
    let facts = Facts::of(history);
    let mut findings = Findings::default();
    statuses::check(&facts, &mut findings);
    origins::check(&facts, &mut findings);
    real_time::check(&facts, &mut findings);
    snapshots::check(&facts, &mut findings);
    answers::check(&facts, &mut findings);
    events::check(&facts, &mut findings);
    conditions::check(&facts, &mut findings);
    refusals::check(&facts, &mut findings);
    lives::check(&facts, &mut findings);
    findings.0
}

macro_rules! anomalies {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What can be wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Anomaly { $($(#[$doc])* $name,)* }

        #[cfg(test)]
        impl Anomaly {
            /// Every name, so that the tests notice one without a case.
            const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

anomalies! {
    /// A status or a form of answer that the contract does not have for this request.
    Status,
    /// The connection broke although the server was not killed.
    Broken,
    /// A token that no write sent there.
    ThinAir,
    /// The token of a write that was answered with 4xx.
    FromFailed,
    /// The token of a write that was answered with a 503 that says that nothing was done.
    DeniedYetDone,
    /// A write was applied twice.
    Twice,
    /// Two reads of one log, neither of which is the beginning of the other.
    TwoHistories,
    /// An acknowledged write is nowhere.
    Lost,
    /// A read without a write that was acknowledged before the read began.
    StaleRead,
    /// A read that shows less than a read that ended before it began.
    NonMonotonic,
    /// A read that shows a write that began after it.
    Future,
    /// Two writes, one after the other, were applied in the reverse order.
    Order,
    /// A state that is not what its writes make of it: the sum of a counter is wrong, for instance.
    Value,
    /// One commit, seen in one scope and not in the other.
    Half,
    /// Two snapshots, each of which shows a write that the other lacks.
    Fork,
    /// The answer to a write does not show that write as the last one.
    Answer,
    /// The answers to one write, sent twice, differ; or the repeat is refused.
    Repeat,
    /// A version that is not the number of events.
    Version,
    /// One ETag of two states.
    EtagReused,
    /// More or fewer events than were asked for.
    Window,
    /// An event that is not what was written at its version.
    Event,
    /// `sessile:overwrote` does not tell what was overwritten.
    Overwrote,
    /// A guarded write went through although the key had another value.
    Guard,
    /// A bounded addition went beyond its bound.
    Bound,
    /// A conditional write went through although there was another version.
    IfMatch,
    /// An ETag of a session that is gone matched its successor.
    OldEtag,
    /// Two different writes were done under one idempotency key or event id.
    KeyReused,
    /// A 409 or 412 for which there was no reason, or that gives a wrong one.
    Unexplained,
    /// Two incarnations of a session at once, or one that is there after its deletion.
    Incarnation,
}

/// An anomaly, and where it shows.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) anomaly: Anomaly,
    text: String,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.anomaly, self.text)
    }
}

#[derive(Default)]
struct Findings(Vec<Found>);

impl Findings {
    fn say(&mut self, anomaly: Anomaly, record: &Record, text: impl fmt::Display) {
        self.0.push(Found { anomaly, text: format!("{text}\n    {record}") });
    }
}
