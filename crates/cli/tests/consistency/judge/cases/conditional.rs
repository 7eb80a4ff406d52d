//! A write goes through and should not, or is refused and should not be.

use serde_json::json;

use super::super::Anomaly;
use super::super::story::{DELETED, KEPT};
use super::{APP, Case, both, guarded, own, shared, take};
use crate::history::Write;

pub(super) const CASES: &[Case] = &[
    (Anomaly::Guard, |story| {
        story.apply(KEPT, guarded("1", None));
        story.apply(KEPT, guarded("2", None));
    }),
    (Anomaly::Guard, |story| {
        story.apply(KEPT, guarded("1", Some("0")));
    }),
    (Anomaly::Bound, |story| {
        story.apply(KEPT, take("1"));
        story.apply(KEPT, take("2"));
        story.read(KEPT).body()["state"]["log"] = json!(["1", "2"]);
    }),
    (Anomaly::IfMatch, |story| {
        let condition = story.condition(KEPT);
        story.apply(KEPT, own("1"));
        story.apply(KEPT, Write { condition, ..own("2") });
    }),
    (Anomaly::IfMatch, |story| {
        let condition = story.condition(APP);
        story.apply(KEPT, both("1"));
        story.apply(APP, Write { condition, ..shared("2") });
    }),
    (Anomaly::OldEtag, |story| {
        story.create(DELETED, "c");
        let condition = story.condition(DELETED);
        story.delete(DELETED, None);
        story.create(DELETED, "d");
        story.apply(DELETED, Write { condition, ..own("1") });
    }),
    (Anomaly::OldEtag, |story| {
        story.create(DELETED, "c");
        let condition = story.condition(DELETED);
        story.delete(DELETED, None);
        story.create(DELETED, "d");
        story.delete(DELETED, condition);
    }),
    (Anomaly::Unexplained, |story| {
        story.refuse(APP, shared("1"), 409, json!({}));
    }),
    (Anomaly::Unexplained, |story| {
        story.refuse(KEPT, take("1"), 409, json!({}));
    }),
    (Anomaly::Unexplained, |story| {
        let condition = story.condition(KEPT);
        story.refuse(KEPT, Write { condition, ..own("1") }, 412, json!({}));
    }),
    (Anomaly::Unexplained, |story| {
        story.apply(KEPT, guarded("1", None));
        story.apply(KEPT, guarded("2", Some("1")));
        story.refuse(KEPT, guarded("3", None), 409, json!({"current": {"register": "1"}}));
    }),
    (Anomaly::Unexplained, |story| {
        story.apply(KEPT, guarded("1", None));
        story.refuse(KEPT, guarded("2", Some("1")), 409, json!({"current": {"register": "1"}}));
    }),
];
