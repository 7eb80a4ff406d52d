//! Histories made by hand: a server of a few lines that answers one request after the other,
//! correctly. Cases spoil what it answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::change::{Change, LOG, Op, Part, Scope};
use crate::history::{Call, History, Kind, Record, Via, Write};
use crate::http::{Answer, Failure};
use crate::model::{State, applied, same_or_absent};
use crate::target::{CHURN, Condition, LogKey, Target};
use crate::view::View;

pub(crate) const KEPT: Target = Target::Session("ada", "one");
pub(crate) const DELETED: Target = Target::Session("ada", CHURN);

#[derive(Default)]
pub(crate) struct Story {
    pub(crate) history: History,
    born: BTreeMap<Target, String>,
    states: BTreeMap<LogKey, State>,
    events: BTreeMap<LogKey, Vec<Value>>,
}

impl Story {
    /// Begins with the session `KEPT`.
    pub(crate) fn new() -> Self {
        let mut story = Self::default();
        story.create(KEPT, "b");
        story
    }

    pub(crate) fn create(&mut self, target: Target, token: &str) -> &mut Record {
        self.born.insert(target, token.to_owned());
        let set: Map<_, _> =
            [("born".to_owned(), token.into()), ("stock".to_owned(), json!(1))].into_iter().collect();
        self.states.insert(target.log_key(Scope::Session, token), set.clone());
        let part = Part { set, ..Part::default() };
        let change = Change { parts: [(Scope::Session, part)].into(), report: false };
        let answer = self.show(target, None);
        self.push(target, Kind::Write(Write { via: Via::Create, ..write(token, change) }), Ok(answer))
    }

    pub(crate) fn read(&mut self, target: Target) -> &mut Record {
        let answer = self.show(target, None);
        self.push(target, Kind::Read { window: None }, Ok(answer))
    }

    pub(crate) fn delete(&mut self, target: Target, condition: Option<Condition>) -> &mut Record {
        self.push(target, Kind::Delete { condition }, Ok(answer(200, Value::Null)))
    }

    /// What a caller that reads now would send as its `If-Match`.
    pub(crate) fn condition(&self, target: Target) -> Option<Condition> {
        View::of(target, &self.show(target, None)).map(|view| view.condition())
    }

    /// Applies a write, whatever it requires, and answers with what it made.
    pub(crate) fn apply(&mut self, target: Target, write: Write) -> &mut Record {
        let (mut delta, mut overwrote) = (Map::new(), Map::new());
        for (scope, part) in &write.change.parts {
            let state = self.states.entry(self.born_log_key(target, *scope)).or_default();
            for (name, read) in part.guards() {
                if !same_or_absent(read, state.get(name)) {
                    let found = [("read", read.cloned()), ("found", state.get(name).cloned())];
                    let found = found.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
                    overwrote.insert(scope.key(name), Value::Object(found.collect()));
                }
            }
            *state = applied(part, state).unwrap_or_else(|_| state.clone());
            let changed = part.changed().map(|name| (scope.key(name), state.get(name).cloned()));
            delta.extend(changed.map(|(key, value)| (key, value.unwrap_or_default())));
        }
        let mut event = json!({ "id": write.key, "actions": { "stateDelta": delta } });
        event["customMetadata"] = json!({ "sessile:ops": {} });
        if write.change.report && !overwrote.is_empty() {
            event["customMetadata"]["sessile:overwrote"] = overwrote.into();
        }
        if target.scope() == Scope::Session {
            self.events.entry(self.born_log_key(target, Scope::Session)).or_default().push(event.clone());
        }
        let mut answer = self.show(target, write.window);
        if write.via == Via::Event {
            answer.body = event;
        }
        self.push(target, Kind::Write(write), Ok(answer))
    }

    /// A write that is answered with an error; nothing is applied.
    pub(crate) fn refuse(
        &mut self,
        target: Target,
        write: Write,
        status: u16,
        mut body: Value,
    ) -> &mut Record {
        body["detail"] = "refused".into();
        self.push(target, Kind::Write(write), Ok(answer(status, body)))
    }

    /// Makes of the last request one that has no answer: the caller did not wait for it.
    pub(crate) fn give_up(&mut self) {
        self.last().outcome = Err(Failure::GaveUp);
    }

    /// The last request again, answered in the same way.
    pub(crate) fn repeat(&mut self) -> &mut Record {
        let record = Record { fresh: false, ..self.last().clone() };
        self.history.records.push(record);
        self.renumber();
        self.last()
    }

    pub(crate) fn last(&mut self) -> &mut Record {
        self.history.records.last_mut().expect("there is one")
    }

    /// Gives the requests their times anew, after their order was changed.
    pub(crate) fn renumber(&mut self) {
        for (start, record) in (0..).step_by(2).zip(&mut self.history.records) {
            (record.start, record.end) = (start, start + 1);
        }
    }

    fn push(&mut self, target: Target, kind: Kind, outcome: Result<Answer, Failure>) -> &mut Record {
        let start = self.history.records.last().map_or(0, |record| record.start + 2);
        let call = Arc::new(Call { target, kind });
        self.history.records.push(Record {
            client: 0,
            server: 0,
            start,
            end: start + 1,
            call,
            fresh: true,
            outcome,
        });
        self.last()
    }

    fn born_log_key(&self, target: Target, scope: Scope) -> LogKey {
        target.log_key(scope, self.born.get(&target).map_or("", String::as_str))
    }

    fn show(&self, target: Target, window: Option<usize>) -> Answer {
        let state = |scope| self.states.get(&self.born_log_key(target, scope)).cloned().unwrap_or_default();
        if target.scope() != Scope::Session {
            let body = state(target.scope());
            let etag = format!("\"{}\"", body.get(LOG).and_then(Value::as_array).map_or(0, Vec::len));
            return Answer { etag: Some(etag), ..answer(200, body.into()) };
        }
        let mut all = Map::new();
        for scope in Scope::ALL {
            all.extend(state(scope).into_iter().map(|(name, value)| (scope.key(&name), value)));
        }
        let log_key = self.born_log_key(target, Scope::Session);
        let events = self.events.get(&log_key).map_or(&[][..], Vec::as_slice);
        let shown = &events[events.len() - window.unwrap_or(events.len()).min(events.len())..];
        let etag = format!("\"{}-{}\"", events.len(), log_key.owner);
        Answer { etag: Some(etag), ..answer(200, json!({ "state": all, "events": shown })) }
    }
}

fn answer(status: u16, body: Value) -> Answer {
    Answer { status, etag: None, body }
}

/// A PATCH that does what it is told.
pub(crate) fn write(token: &str, change: Change) -> Write {
    Write { token: token.to_owned(), via: Via::Patch, change, condition: None, key: None, window: None }
}

/// A PATCH that adds one to `count` in these scopes.
pub(crate) fn add(token: &str, scopes: &[Scope]) -> Write {
    let part = || {
        let mut part = Part::default();
        part.ops.insert(LOG.to_owned(), vec![Op::Append(vec![token.into()])]);
        part.ops.insert("count".to_owned(), vec![Op::Add { by: json!(1), min: None, max: None }]);
        part
    };
    write(token, Change { parts: scopes.iter().map(|scope| (*scope, part())).collect(), report: false })
}

impl Record {
    /// The answer, to be spoiled.
    pub(crate) fn answer(&mut self) -> &mut Answer {
        self.outcome.as_mut().expect("it has an answer")
    }

    pub(crate) fn body(&mut self) -> &mut Value {
        &mut self.answer().body
    }
}
