//! For each anomaly a history in which it is found, and histories in which nothing is.

mod answered;
mod conditional;
mod repeated;
mod stored;

use std::collections::BTreeSet;

use serde_json::json;

use super::story::{DELETED, KEPT, Story, add};
use super::{Anomaly, judge};
use crate::change::{Op, Part, Scope};
use crate::history::{Kill, Via, Write};
use crate::http::Failure;
use crate::target::Target;

/// An anomaly, and how a history that has it comes about.
type Case = (Anomaly, fn(&mut Story));

const APP: Target = Target::App;

#[test]
fn every_anomaly_is_found() {
    let cases = [stored::CASES, answered::CASES, repeated::CASES, conditional::CASES].concat();
    let mut found = BTreeSet::new();
    for (number, (anomaly, tell)) in cases.into_iter().enumerate() {
        let mut story = Story::new();
        tell(&mut story);
        let all = judge(&story.history);
        assert!(
            all.iter().any(|one| one.anomaly == anomaly),
            "case {number} has no {anomaly:?} but {all:#?}"
        );
        found.insert(anomaly);
    }
    let without: Vec<_> = Anomaly::ALL.iter().filter(|anomaly| !found.contains(anomaly)).collect();
    assert!(without.is_empty(), "no case for {without:?}");
}

#[track_caller]
fn assert_clean(story: &Story) {
    let found = judge(&story.history);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_correct_history_has_no_anomaly() {
    let mut story = Story::new();
    story.apply(KEPT, both("1"));
    story.apply(KEPT, event("2"));
    story.repeat();
    story.read(KEPT);
    story.apply(APP, keyed(shared("3")));
    story.repeat();
    story.refuse(APP, keyed(shared("4")), 409, json!({}));
    story.apply(KEPT, take("5"));
    story.refuse(KEPT, take("6"), 409, json!({}));
    story.apply(KEPT, guarded("7", None));
    story.refuse(KEPT, guarded("8", None), 409, json!({"current": {"register": "7"}, "absent": []}));
    story.apply(KEPT, reporting(guarded("9", Some("0"))));
    let condition = story.condition(APP);
    story.apply(APP, Write { condition: condition.clone(), ..shared("10") });
    story.refuse(APP, Write { condition, ..shared("11") }, 412, json!({}));
    story.read(APP);
    story.read(KEPT);
    assert_clean(&story);
}

#[test]
fn what_is_unknown_may_have_been_done_or_not() {
    let mut story = Story::new();
    story.apply(APP, shared("1"));
    story.give_up();
    story.read(APP);
    story.refuse(APP, shared("2"), 503, json!({}));
    story.last().body()["detail"] = json!("the write is done or not done");
    story.read(APP);
    story.history.kills.push(Kill { server: 0, start: 0, end: 100 });
    story.read(APP).outcome = Err(Failure::Broken("reset".into()));
    assert_clean(&story);
}

#[test]
fn a_session_may_be_created_again() {
    let mut story = Story::new();
    story.create(DELETED, "c");
    let condition = story.condition(DELETED);
    story.apply(DELETED, own("1"));
    story.delete(DELETED, None);
    story.refuse(DELETED, own("2"), 404, json!({}));
    story.create(DELETED, "d");
    story.refuse(DELETED, Write { condition, ..own("3") }, 412, json!({}));
    story.apply(DELETED, both("4"));
    story.read(DELETED);
    assert_clean(&story);
}

/// A write to the session.
fn own(token: &str) -> Write {
    add(token, &[Scope::Session])
}

/// A write to the application.
fn shared(token: &str) -> Write {
    add(token, &[Scope::App])
}

/// A write to the session and the application, through the session.
fn both(token: &str) -> Write {
    add(token, &[Scope::Session, Scope::App])
}

/// With an idempotency key, which is always the same.
fn keyed(write: Write) -> Write {
    Write { key: Some("k".to_owned()), ..write }
}

fn event(token: &str) -> Write {
    Write { via: Via::Event, key: Some(format!("k-{token}")), ..own(token) }
}

/// Takes one of the session's stock, which is one.
fn take(token: &str) -> Write {
    let mut write = own(token);
    let take = Op::Add { by: json!(-1), min: Some(0), max: None };
    part_of(&mut write).ops.insert("stock".into(), vec![take]);
    write
}

/// Sets a register that held this value when it was read.
fn guarded(token: &str, read: Option<&str>) -> Write {
    let mut write = own(token);
    let part = part_of(&mut write);
    part.set.insert("register".into(), token.into());
    match read {
        Some(read) => drop(part.read.insert("register".into(), read.into())),
        None => part.absent.push("register".into()),
    }
    write
}

/// With `onOverwrite: report`.
fn reporting(mut write: Write) -> Write {
    write.change.report = true;
    write
}

fn part_of(write: &mut Write) -> &mut Part {
    write.change.parts.get_mut(&Scope::Session).expect("it changes the session")
}
