//! Something is wrong when a write is sent again.

use serde_json::json;

use super::super::Anomaly;
use super::super::story::KEPT;
use super::{APP, Case, event, keyed, shared};

pub(super) const CASES: &[Case] = &[
    (Anomaly::Repeat, |story| {
        story.apply(APP, keyed(shared("1")));
        story.repeat().body()["count"] = json!(2);
    }),
    (Anomaly::Repeat, |story| {
        story.apply(APP, keyed(shared("1")));
        story.repeat().answer().etag = Some("\"2\"".into());
    }),
    (Anomaly::Repeat, |story| {
        story.apply(KEPT, event("1"));
        story.repeat().body()["timestamp"] = json!(2);
        story.read(KEPT);
    }),
    (Anomaly::Repeat, |story| {
        story.apply(APP, keyed(shared("1")));
        story.repeat().answer().status = 409;
    }),
    (Anomaly::KeyReused, |story| {
        story.apply(APP, keyed(shared("1")));
        story.apply(APP, keyed(shared("2")));
    }),
];
