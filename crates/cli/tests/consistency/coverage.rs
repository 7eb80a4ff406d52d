//! What a run exercised. A run in which everything is refused would have no anomalies, and would
//! say nothing.

use std::collections::BTreeMap;

use crate::change::Scope;
use crate::history::{History, Kind, Record, Verdict, Via, Write};

/// What must have happened at least once.
const NEEDED: [&str; 11] = [
    "PATCH done",
    "event done",
    "shared state changed",
    "creation done",
    "If-Match done",
    "If-Match refused",
    "guard refused",
    "bound refused",
    "key refused",
    "overwriting reported",
    "repeat answered",
];

#[derive(Debug, Default)]
pub(crate) struct Coverage(BTreeMap<&'static str, usize>);

impl Coverage {
    pub(crate) fn add(&mut self, history: &History) {
        for record in &history.records {
            self.count("requests", true);
            self.count("unknown", record.verdict() == Verdict::Unknown);
            self.count("denied", record.verdict() == Verdict::Denied);
            if let Kind::Write(write) = &record.call.kind {
                self.add_write(record, write);
            }
        }
        *self.0.entry("kills").or_default() += history.kills.len();
    }

    fn add_write(&mut self, record: &Record, write: &Write) {
        let done = record.verdict() == Verdict::Done;
        let status = record.outcome.as_ref().map_or(0, |answer| answer.status);
        let in_session = record.call.target.scope() == Scope::Session;
        let parts = || write.change.parts.values();
        let guarded = parts().any(|part| part.guards().next().is_some());
        let bounded = parts().any(|part| part.ops.contains_key("stock") || part.ops.contains_key("seats"));
        let conflict = status == 409 && write.via != Via::Create;
        let overwrote =
            || record.done().is_some_and(|answer| answer.body.to_string().contains("sessile:overwrote"));
        self.count("PATCH done", done && in_session && write.via == Via::Patch);
        self.count("event done", done && write.via == Via::Event);
        self.count("shared state changed", done && !in_session);
        self.count("creation done", done && write.via == Via::Create);
        self.count("If-Match done", done && write.condition.is_some());
        self.count("If-Match refused", status == 412);
        self.count("guard refused", conflict && guarded);
        self.count("bound refused", conflict && bounded);
        self.count("key refused", conflict && !guarded && !bounded);
        self.count("overwriting reported", write.change.report && overwrote());
        self.count("repeat answered", done && !record.fresh);
    }

    fn count(&mut self, what: &'static str, happened: bool) {
        *self.0.entry(what).or_default() += usize::from(happened);
    }

    /// What the checker is for and the run has not seen yet.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        NEEDED.into_iter().filter(|what| self.0.get(what).is_none_or(|count| *count == 0)).collect()
    }
}
