//! What is stored is right, and the answer is not.

use serde_json::json;

use super::super::Anomaly;
use super::super::story::{DELETED, KEPT};
use super::{APP, Case, event, guarded, own, reporting, shared};
use crate::history::Write;
use crate::http::Failure;

pub(super) const CASES: &[Case] = &[
    (Anomaly::Status, |story| {
        story.refuse(KEPT, own("1"), 404, json!({}));
    }),
    (Anomaly::Status, |story| {
        story.refuse(KEPT, own("1"), 500, json!({}));
    }),
    (Anomaly::Status, |story| {
        story.refuse(KEPT, own("1"), 412, json!({}));
    }),
    (Anomaly::Status, |story| story.read(APP).answer().etag = None),
    (Anomaly::Broken, |story| story.read(APP).outcome = Err(Failure::Broken("reset".into()))),
    (Anomaly::Answer, |story| {
        *story.apply(APP, shared("1")).body() = json!({});
        story.read(APP);
    }),
    (Anomaly::Version, |story| {
        story.apply(KEPT, event("1")).answer().etag = Some("\"2-b\"".into());
        story.read(KEPT);
    }),
    (Anomaly::Version, |story| story.read(KEPT).answer().etag = Some("\"1-b\"".into())),
    (Anomaly::EtagReused, |story| {
        story.apply(APP, shared("1"));
        story.apply(APP, shared("2")).answer().etag = Some("\"1\"".into());
    }),
    (Anomaly::EtagReused, |story| {
        let etag = story.create(DELETED, "c").answer().etag.clone();
        story.delete(DELETED, None);
        story.create(DELETED, "d").answer().etag = etag;
    }),
    (Anomaly::Window, |story| {
        story.apply(KEPT, own("1"));
        story.read(KEPT).body()["events"] = json!([]);
    }),
    (Anomaly::Window, |story| {
        story.apply(KEPT, own("1"));
        let all = story.apply(KEPT, own("2")).body()["events"].clone();
        story.apply(KEPT, Write { window: Some(1), ..own("3") }).body()["events"] = all;
    }),
    (Anomaly::Event, |story| {
        story.apply(KEPT, event("1"));
        story.read(KEPT).body()["events"][0]["actions"]["stateDelta"]["count"] = json!(2);
    }),
    (Anomaly::Event, |story| {
        story.apply(KEPT, event("1")).body()["id"] = json!("other");
        story.read(KEPT);
    }),
    (Anomaly::Event, |story| {
        story.apply(KEPT, event("1"));
        story.read(KEPT).body()["events"][0]["customMetadata"] = json!({});
    }),
    (Anomaly::Overwrote, |story| {
        story.apply(KEPT, guarded("1", None));
        story.apply(KEPT, reporting(guarded("2", None)));
        let event = &mut story.read(KEPT).body()["events"][1];
        event["customMetadata"]["sessile:overwrote"]["register"]["found"] = json!("0");
    }),
    (Anomaly::Overwrote, |story| {
        story.apply(KEPT, reporting(guarded("1", None)));
        let event = &mut story.read(KEPT).body()["events"][0];
        event["customMetadata"]["sessile:overwrote"] = json!({"register": {"found": "0"}});
    }),
];
