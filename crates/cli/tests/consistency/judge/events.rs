//! Whether sessions have the events that were written, each with what its commit made of the state.

use serde_json::{Map, Value, json};

use super::facts::{Facts, Fate, Seen};
use super::{Anomaly, Findings};
use crate::change::Scope;
use crate::history::{Kind, Via, short};
use crate::model::{same, same_or_absent};
use crate::view::version;

pub(crate) fn check(facts: &Facts<'_>, findings: &mut Findings) {
    for seen in facts.views.iter().filter(|seen| seen.record.call.target.scope() == Scope::Session) {
        check_session(facts, findings, seen);
    }
    for record in &facts.history.records {
        let write = record.call.write().filter(|write| write.via == Via::Event);
        if let (Some(write), Some(answer)) = (write, record.done())
            && let Some((anomaly, text)) = wrong(facts, &facts.fates[write.token.as_str()], &answer.body)
        {
            findings.say(anomaly, record, text);
        }
    }
}

/// The version of a session is the number of its events, and it comes with as many as were asked
/// for.
fn check_session(facts: &Facts<'_>, findings: &mut Findings, seen: &Seen<'_>) {
    let (log_key, events) = (seen.view.log_key(Scope::Session), &seen.view.events);
    let length = seen.lengths[&log_key];
    if version(&seen.view.etag) != Some(length) {
        findings.say(Anomaly::Version, seen.record, format!("the session has {length} events"));
    }
    let window = match &seen.record.call.kind {
        Kind::Read { window } => *window,
        Kind::Write(write) => write.window,
        Kind::Delete { .. } => None,
    };
    if events.len() != window.map_or(length, |window| window.min(length)) {
        let text = format!("{} events of {length}, asked for {window:?}", events.len());
        findings.say(Anomaly::Window, seen.record, text);
        return;
    }
    for (event, token) in events.iter().rev().zip(facts.logs[&log_key].tokens[..length].iter().rev()) {
        let Some(fate) = facts.fates.get(token.as_str()) else { continue };
        if let Some((anomaly, text)) = wrong(facts, fate, event) {
            findings.say(anomaly, seen.record, format!("the event of {token}: {text}"));
        }
    }
}

/// What is wrong with the stored event of a write.
fn wrong(facts: &Facts<'_>, fate: &Fate<'_>, event: &Value) -> Option<(Anomaly, String)> {
    if fate.write.key.as_ref().is_some_and(|key| event["id"] != *key.as_str()) {
        return Some((Anomaly::Event, format!("its id is {}", event["id"])));
    }
    let delta = &event["actions"]["stateDelta"];
    let (mut expected, mut overwrote) = (Map::new(), Map::new());
    for (scope, part) in &fate.write.change.parts {
        let (_, log, position) = facts.spot(&fate.write.token, *scope)?;
        for name in part.changed() {
            let (key, [before, after]) =
                (scope.key(name), [0, 1].map(|more| log.value(position + more, name)));
            // The removal of what was not there may be told or left out.
            if before.is_some() || after.is_some() || delta.get(&key).is_some_and(Value::is_null) {
                expected.insert(key, after.unwrap_or(Value::Null));
            }
        }
        for (name, read) in part.guards() {
            let found = log.value(position, name);
            if !same_or_absent(read, found.as_ref()) {
                let values = [("read", read.cloned()), ("found", found)];
                let values = values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
                overwrote.insert(scope.key(name), Value::Object(values.collect()));
            }
        }
    }
    let expected = Value::Object(expected);
    if !same(delta, &expected) {
        return Some((Anomaly::Event, format!("it stores {}, not {}", short(delta), short(&expected))));
    }
    if !event["customMetadata"]["sessile:ops"].is_object() {
        return Some((Anomaly::Event, "it does not tell its operations".to_owned()));
    }
    let reported = event["customMetadata"].get("sessile:overwrote").cloned().unwrap_or_else(|| json!({}));
    // A guarded write that is refused instead never gets here unless its guards held.
    let differs = fate.write.change.report && !same(&reported, &overwrote.clone().into());
    let invented = !fate.write.change.report && !same(&reported, &json!({}));
    (differs || invented).then(|| {
        (Anomaly::Overwrote, format!("it reports {reported}, and overwrote {}", Value::Object(overwrote)))
    })
}
