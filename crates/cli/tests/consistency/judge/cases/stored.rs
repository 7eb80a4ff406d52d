//! What is stored is wrong, or is read at the wrong time.

use serde_json::json;

use super::super::Anomaly;
use super::super::story::{DELETED, KEPT};
use super::{APP, Case, both, event, own, shared};

pub(super) const CASES: &[Case] = &[
    (Anomaly::ThinAir, |story| story.read(APP).body()["log"] = json!(["z"])),
    (Anomaly::ThinAir, |story| {
        story.apply(APP, shared("1"));
        story.read(KEPT).body()["state"]["log"] = json!(["1"]);
    }),
    (Anomaly::FromFailed, |story| {
        story.refuse(APP, shared("1"), 409, json!({}));
        story.read(APP).body()["log"] = json!(["1"]);
    }),
    (Anomaly::DeniedYetDone, |story| {
        story.refuse(APP, shared("1"), 503, json!({}));
        story.read(APP).body()["log"] = json!(["1"]);
    }),
    (Anomaly::Twice, |story| {
        story.apply(APP, shared("1"));
        story.read(APP).body()["log"] = json!(["1", "1"]);
    }),
    (Anomaly::TwoHistories, |story| {
        story.apply(APP, shared("1"));
        story.apply(APP, shared("2"));
        story.read(APP).body()["log"] = json!(["2", "1"]);
    }),
    (Anomaly::Lost, |story| {
        story.apply(KEPT, event("1"));
        story.read(KEPT).body()["state"] = json!({"born": "b", "stock": 1});
    }),
    (Anomaly::StaleRead, |story| {
        story.apply(APP, shared("1"));
        *story.read(APP).body() = json!({});
    }),
    (Anomaly::NonMonotonic, |story| {
        story.apply(APP, shared("1"));
        story.give_up();
        story.read(APP);
        *story.read(APP).body() = json!({});
    }),
    (Anomaly::Future, |story| {
        story.apply(APP, shared("1"));
        story.read(APP);
        story.history.records.swap(1, 2);
        story.renumber();
    }),
    (Anomaly::Order, |story| {
        story.apply(APP, shared("1"));
        story.give_up();
        story.apply(APP, shared("2"));
        story.read(APP);
        story.history.records.swap(1, 2);
        story.renumber();
    }),
    (Anomaly::Value, |story| {
        story.apply(APP, shared("1"));
        story.read(APP).body()["count"] = json!(2);
    }),
    (Anomaly::Value, |story| story.read(KEPT).body()["state"]["stock"] = json!(2)),
    (Anomaly::Value, |story| story.read(KEPT).body()["state"]["app:extra"] = json!(2)),
    (Anomaly::Half, |story| {
        story.apply(KEPT, both("1"));
        story.give_up();
        story.read(KEPT).body()["state"]["app:log"] = json!([]);
        story.read(KEPT);
    }),
    (Anomaly::Fork, |story| {
        story.apply(KEPT, own("1"));
        story.give_up();
        story.apply(APP, shared("2"));
        story.give_up();
        story.read(KEPT).body()["state"]["log"] = json!([]);
        story.read(KEPT).body()["state"]["app:log"] = json!([]);
        story.read(KEPT);
    }),
    (Anomaly::Incarnation, |story| {
        story.create(DELETED, "c");
        story.delete(DELETED, None);
        story.read(DELETED);
    }),
    (Anomaly::Incarnation, |story| {
        let first = story.create(DELETED, "c").clone();
        story.create(DELETED, "d");
        story.read(DELETED).outcome = first.outcome;
        story.read(DELETED);
    }),
];
